"""What t2t-decoder can do with a file beyond translating it: one model for all tests, loaded and traced once."""
# Nearest tests of: t2t_lite/decoding/command/decode_files.py, t2t_lite/decoding/command/decode_records.py
# Nearest tests of: t2t_lite/decoding/command/tuning.py, t2t_lite/decoding/command/job.py

import json
import os
import shutil

import pytest

from t2t_lite.decoding.command.job import DecodingJob
from t2t_lite.decoding.translator import Translator
from t2t_lite.files.resumable import ResumableFiles
from t2t_lite.runs.opening import open_runs
from t2t_lite.settings.config import parse_assignments
from tests.decoding.runs import SENTENCES, make_run

LINES = ["the red house.", "", "a tree was new.", "old", "Grün und neu", "the red house."]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), steps=(100, 200), seed=10)


@pytest.fixture(scope="module")
def translator(made):
    return Translator.load(str(made))


@pytest.fixture
def decode(call_command, made, translator, tmp_path, monkeypatch):
    """Calls t2t-decoder on `in` with settings that are quick; returns its result and the lines of `out`."""
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    monkeypatch.setattr(Translator, "load", lambda *args: translator)

    def run(*args, hparams="", status=0):
        settings = {"extra_length": "3", "beam_size": "3"} | parse_assignments(hparams, "")
        wanted = {"--output_dir": made, "--decode_from_file": "in", "--decode_to_file": "out",
                  "--decode_hparams": ",".join(f"{name}={value}" for name, value in settings.items())}  # fmt: skip
        for arg in args:
            name, _, value = arg.partition("=")
            wanted[name] = value
        result = call_command(
            "t2t-decoder", *(f"{name}={value}" for name, value in wanted.items() if value is not None)
        )
        assert result.status == status, result.stderr
        path = tmp_path / (wanted["--decode_to_file"] or "nothing")
        return result, path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else None

    return run


@pytest.mark.slow
def test_lines_of_json(decode):
    _, best = decode(hparams="write_beam_scores=true,return_beams=true")
    _, lines = decode("--n_best_format=json", hparams="return_beams=true")
    found = [json.loads(line) for line in lines]
    assert [(one["line"], one["input"]) for one in found] == list(enumerate(LINES, 1))
    for one, text in zip(found, best, strict=True):
        texts = [field for h in one["hypotheses"] for field in (h["text"], f"{h['score']:.2f}")]
        assert "\t".join(texts) == text
        for h in one["hypotheses"]:
            if h["tokens"]:
                penalty = ((5 + len(h["token_scores"])) / 6) ** 0.6
                assert len(h["token_scores"]) == len(h["tokens"]) + h["ended"]
                assert sum(h["token_scores"]) == pytest.approx(h["score"] * penalty, abs=1e-3)
    assert found[1]["hypotheses"] == [{"text": "", "score": 0.0, "ended": True, "tokens": [], "token_scores": []}]


@pytest.mark.slow
def test_scores_of_given_translations_are_those_of_the_search(decode, tmp_path):
    _, lines = decode("--n_best_format=json")
    best = [json.loads(line)["hypotheses"][0] for line in lines]
    ended = [(line, h) for line, h in zip(LINES, best, strict=True) if h["ended"] and h["tokens"]]
    (tmp_path / "pairs").write_text("".join(f"{line}\t{h['text']}\n" for line, h in ended))
    result, losses = decode("--score_file=pairs", "--decode_from_file=", "--decode_to_file=losses")
    assert "written: losses" in result.stderr and all(len(loss.partition(".")[2]) == 6 for loss in losses)
    for loss, (_, h) in zip(losses, ended, strict=True):
        if len(h["token_scores"]) == len(h["tokens"]) + 1:
            assert float(loss) == pytest.approx(-sum(h["token_scores"]) / len(h["token_scores"]), abs=2e-4)
    (tmp_path / "pairs").write_text("a\tb\nno tab\n")
    result, _ = decode("--score_file=pairs", "--decode_from_file=", status=2)
    assert "pairs, line 2: 1 column, expected input<TAB>target" in result.stderr
    _, losses = decode("--score_file=pairs", "--decode_from_file=", "--on_error=skip")
    assert losses[0] and losses[1] == ""


@pytest.mark.slow
def test_scoring_does_not_go_on_with_an_unfinished_translation(decode, tmp_path, monkeypatch):
    """Both may have the same lines, and are written to the same file."""
    monkeypatch.setattr(DecodingJob, "chunk", 1)
    (tmp_path / "in").write_text("old\tneu\nold\talt\n")
    _, losses = decode("--score_file=in", "--decode_from_file=")
    os.remove(tmp_path / "out")
    write = ResumableFiles.write

    def fail_at_the_second(self, *args):
        if self.done:
            raise OSError(28, "No space left on device", "out")
        write(self, *args)

    monkeypatch.setattr(ResumableFiles, "write", fail_at_the_second)
    decode(status=1)
    monkeypatch.setattr(ResumableFiles, "write", write)
    result, lines = decode("--score_file=in", "--decode_from_file=")
    assert "was made with another kind of job: starting anew" in result.stderr and lines == losses


def test_pairs_that_are_too_long(decode, tmp_path, monkeypatch):
    monkeypatch.setattr(DecodingJob, "chunk", 2)
    pairs, score = ["a\tb", "old\tneu", f"a\t{'ab ' * 2000}", f"{'ab ' * 2000}\ta", "a\tb"], ["--decode_from_file="]
    (tmp_path / "pairs").write_text("".join(f"{pair}\n" for pair in pairs))
    result, _ = decode("--score_file=pairs", *score, status=2)
    assert "pairs, line 3: the target has" in result.stderr and not (tmp_path / "out").exists()
    result, losses = decode("--score_file=pairs", *score, "--on_error=skip")
    assert "pairs, line 4: the text has" in result.stderr and "2 lines skipped" in result.stderr
    assert losses[2:4] == ["", ""] and losses[0] == losses[4] and all(losses[:2])
    (tmp_path / "part").write_text("".join(f"{pair}\n" for pair in pairs[:2]))
    assert decode("--score_file=part", *score)[1] == losses[:2]


@pytest.mark.slow
def test_outputs_begin_as_the_prefixes_say(decode, tmp_path):
    (tmp_path / "prefixes").write_text("\n\nder rote\nneu\nalt und\n\n")
    _, free = decode()
    _, lines = decode("--prefix_file=prefixes", "--decode_to_file=forced")
    assert lines[:2] == free[:2] and lines[5] == free[5]
    assert lines[2].startswith("der rote") and lines[3].startswith("neu") and lines[4].startswith("alt und")
    (tmp_path / "prefixes").write_text("\n\n\n\n\n" + "der " * 99 + "\n")
    result, _ = decode("--prefix_file=prefixes", status=2)
    assert "in, line 6: its prefix has" in result.stderr and len(result.stderr.splitlines()) == 1
    (tmp_path / "prefixes").write_text("a\n")
    assert "prefixes has 1 line, in has 6" in decode("--prefix_file=prefixes", status=2)[0].stderr


@pytest.mark.slow
def test_word_alignments(decode, tmp_path):
    _, lines = decode("--alignments_file=links", hparams="replace_unknown=true")
    links = (tmp_path / "links").read_text().split("\n")[:-1]
    assert len(links) == len(LINES) and links[1] == "" and any(links)
    for of_line, source, target in zip(links, LINES, lines, strict=True):
        for pair in of_line.split():
            one, other = map(int, pair.split("-"))
            assert one < len(source.split()) and other < len(target.split())


@pytest.mark.slow
def test_samples_and_the_one_of_least_risk(decode):
    drawn = "sampling_method=random,num_samples=4,sampling_seed=7"
    _, once = decode(hparams=drawn)
    _, again = decode(hparams=f"{drawn},batch_size=1")
    assert once == again and [len(line.split("\t")) for line in once] == [4, 1, 4, 4, 4, 4]
    assert once[0] == once[5]  # of equal sentences
    assert decode(hparams=drawn.replace("7", "8"))[1] != once
    _, chosen = decode("--mbr=chrf", hparams="num_samples=4,sampling_seed=7")
    assert all(line in of_line.split("\t") for line, of_line in zip(chosen, once, strict=True))
    _, ranked = decode("--mbr=chrf", hparams="num_samples=4,sampling_seed=7,n_best=4")
    assert [set(line.split("\t")) for line in ranked] == [set(line.split("\t")) for line in once]
    result, _ = decode("--mbr=chrf", hparams="num_samples=2,n_best=3", status=2)
    assert "n_best=3: expected at most num_samples=2" in result.stderr
    result, _ = decode(hparams="num_samples=4", status=2)
    assert "num_samples=4" in result.stderr and "sampling_method=random" in result.stderr


def test_parts_of_a_file_are_those_of_the_whole(decode, tmp_path):
    _, whole = decode()
    for part in range(4):
        decode("--decode_shards=4", f"--worker_id={part}", "--decode_to_file=part")
    parts = [(tmp_path / f"part00{part}").read_text() for part in range(4)]
    assert "".join(parts).split("\n")[:-1] == whole and [part.count("\n") for part in parts] == [1, 2, 1, 2]
    (tmp_path / "in-00003-of-00002").write_text("old\n")  # a part that is a file of its own
    decode("--decode_to_file=own", hparams="shards=2,shard_id=1,shards_start_offset=2,shard_google_format=true")
    assert (tmp_path / "own-00003-of-00002").read_text() == f"{whole[3]}\n"
    assert "--worker_id=2" in decode("--decode_shards=2", "--worker_id=2", status=2)[0].stderr


@pytest.mark.slow
def test_records_of_the_problem(decode, made, tmp_path, translator):
    data = made.parent / "data"
    flags = ["--decode_from_file=", "--problem=translate_own", f"--data_dir={data}"]
    result, _ = decode(*flags, "--decode_to_file=dev", "--keep_timestamp=true", hparams="num_samples=7")
    base = "dev.transformer.transformer_tiny.translate_own.beam3.alpha0.6"
    files = {name: (tmp_path / f"{base}.{name}").read_text().splitlines() for name in ("inputs", "targets", "decodes")}
    assert "7 dev examples" in result.stderr and "sacreBLEU = " in result.stderr
    assert set(files["inputs"]) <= set(SENTENCES) and files["targets"] == files["inputs"]  # the run's data are so
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in files["inputs"]))
    assert decode()[1] == files["decodes"]
    stamp = (made / "model.ckpt-200.index").stat().st_mtime
    assert (tmp_path / f"{base}.decodes").stat().st_mtime == stamp
    result, _ = decode(*flags, "--eval_use_test_set=true", status=2)
    assert "translate_own-test-" in result.stderr
    decode(*flags, "--decode_to_file=dev", hparams="num_samples=2,num_decodes=2,sampling_method=random")
    passes = [(tmp_path / f"decode_0000{n}" / f"{base}.decodes").read_text() for n in (0, 1)]
    assert passes[0] != passes[1] and all(text.count("\n") == 2 for text in passes)


def test_other_delimiters(decode, tmp_path):
    _, whole = decode()
    (tmp_path / "in").write_text("|".join(LINES[:4]) + "|\n")
    decode(hparams="delimiter=|")
    assert (tmp_path / "out").read_text() == "".join(f"{line}|" for line in whole[:4])


@pytest.mark.slow
def test_long_lines(decode, tmp_path):
    (tmp_path / "in").write_text("The red house. A tree.\nold\n" + "a" * 2000 + "\n")
    result, lines = decode("--long_input=split", hparams="max_input_size=9")
    parts = dict(word.split(" (") for word in result.stderr.split("line ")[1].split(" parts)")[0].split(", ")[:1])
    assert "split, being longer than 9 pieces: line 1 (" in result.stderr and int(parts["1"]) > 1
    assert "3 (" in result.stderr and len(lines) == 3
    result, _ = decode("--long_input=refuse", "--decode_to_file=refused", hparams="max_input_size=9", status=2)
    assert "in, line 1: " in result.stderr and not (tmp_path / "refused").exists()
    result, lines = decode("--long_input=refuse", "--on_error=skip", hparams="max_input_size=9")
    assert lines[0] == lines[2] == "" and lines[1] and "2 lines skipped" in result.stderr
    (tmp_path / "in").write_bytes(b"The red house. A tree.\nold\n\xff\n\n")
    options = "--long_input=refuse", "--on_error=skip", "--n_best_format=json", "--decode_to_file=json"
    rows = [json.loads(line) for line in decode(*options, hparams="max_input_size=9")[1]]
    assert [(row["input"], row.get("skipped", False)) for row in rows] == [
        ("The red house. A tree.", True), ("old", False), (None, True), ("", False),
    ]  # fmt: skip
    (tmp_path / "in").write_text("The red house. A tree.\nold\n" + "a" * 2000 + "\n")
    result, lines = decode("--long_input=truncate", hparams="max_input_size=9")
    assert "cut off after 9 pieces: line 1, 3" in result.stderr and all(lines)


def test_a_refused_line_of_a_part_has_its_number_in_the_file(decode, tmp_path):
    (tmp_path / "in").write_text("old\n" * 3 + "a" * 20 + "\n")
    part = "--decode_shards=2", "--worker_id=1", "--long_input=refuse"
    result, _ = decode(*part, hparams="max_input_size=9", status=2)
    assert "in, line 4: " in result.stderr


@pytest.mark.slow
def test_the_model_is_looked_up_once(decode, made, tmp_path, translator, monkeypatch):
    """Beside a running trainer, a newer checkpoint may appear at any time."""
    run = shutil.copytree(made, tmp_path / "run")
    os.utime(run / "model.ckpt-200.index", (1000, 1000))

    def load(paths, data_dir, *_):
        shutil.copy(run / "model.ckpt-200.index", run / "model.ckpt-300.index")
        os.remove(run / "hparams.json")
        assert [run.path for path in paths for run in open_runs(path)] == [f"{run}/model.ckpt-200"]
        return translator

    monkeypatch.setattr(Translator, "load", load)
    decode(f"--output_dir={run}", "--keep_timestamp=true")
    assert os.stat(tmp_path / "out").st_mtime == 1000


def test_lines_that_are_not_text(decode, tmp_path):
    (tmp_path / "in").write_bytes(b"old\r\n\xff bad\n\x00\x1b\xe2\x80\xa8x\n\n\xc3\n")
    result, lines = decode("--on_error=skip")
    assert len(lines) == 5 and lines[0] and lines[1] == lines[3] == lines[4] == ""
    for words in ("in, line 2: byte 0xff at position 0 is not UTF-8", "in, line 5: byte 0xc3", "2 lines skipped"):
        assert words in result.stderr
    assert "in, line 2" in decode("--decode_to_file=other", status=2)[0].stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.long
def test_a_beam_larger_than_the_vocabulary(decode, translator):
    size = translator.encoders["targets"].vocab_size
    _, lines = decode(hparams=f"extra_length=1,beam_size={size + 50},n_best={size}")
    assert len(lines) == len(LINES) and all(len(line.split("\t")) > 1 for line in lines if line)


@pytest.mark.slow
def test_an_exception_between_chunks_leaves_what_is_done(decode, tmp_path, monkeypatch):
    monkeypatch.setattr(DecodingJob, "chunk", 2)
    settings = "return_beams=true,write_beam_scores=true"
    _, whole = decode(hparams=settings)
    os.remove(tmp_path / "out")
    write = ResumableFiles.write

    def fail_at_the_third(self, texts, count, *state):
        if self.done == 4:
            raise OSError(28, "No space left on device", "out")
        write(self, texts, count, *state)

    monkeypatch.setattr(ResumableFiles, "write", fail_at_the_third)
    result, _ = decode(hparams=settings, status=1)
    assert "out: the disk is full" in result.stderr
    assert {"out.t2t_lite_incomplete", "out.t2t_lite_incomplete.json"} <= set(os.listdir(tmp_path)) and not (
        tmp_path / "out"
    ).exists()
    monkeypatch.setattr(ResumableFiles, "write", write)
    result, lines = decode(hparams=settings)
    assert lines == whole and "resumes after 4 lines" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


def test_a_full_disk(decode):
    result, _ = decode("--decode_to_file=/dev/full", status=1)
    assert "the disk is full" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_grid_of_settings_on_a_dev_set(decode, made, tmp_path):
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in LINES))
    result, _ = decode("--tune=beam_size=1,2;alpha=0,1", "--decode_reference=ref", "--decode_to_file=")
    assert [line.partition(": ")[0] for line in result.stdout.splitlines()[:3]] == ["sacreBLEU", "chrF2", "TER"]
    rows = [line.split() for line in result.stdout.splitlines()[3:]]
    assert rows[0] == ["beam_size", "alpha", "sacreBLEU", "chrF2", "TER", "BP", "seconds"]
    assert [row[:2] for row in rows[1:4]] == [["1", "-"], ["2", "0.0"], ["2", "1.0"]]
    assert rows[4][0] == "best:" and rows[4][1].startswith("--decode_hparams=beam_size=")
    result, _ = decode("--tune=beam_size=1", "--decode_from_file=", "--decode_to_file=",
                       f"--data_dir={made.parent / 'data'}", hparams="num_samples=3")  # fmt: skip
    assert "best: --decode_hparams=beam_size=1" in result.stdout and "3 sentences" in result.stderr
    result, _ = decode("--tune=beam_size=1", "--decode_to_file=", status=2)
    assert "--tune: needs a dev set" in result.stderr
    assert "--tune: " in decode("--tune=beam=1", "--decode_reference=ref", "--decode_to_file=", status=2)[0].stderr


def test_flags_that_do_not_go_together(decode):
    for flags, word in (
        (["--decode_from_file=-", "--prefix_file=in"], "--prefix_file"),
        (["--eval_use_test_set=true"], "--eval_use_test_set"),
        (["--prefix_file=nowhere"], "nowhere"),
        (["--long_input=cut"], "--long_input"),
    ):
        result, _ = decode(*flags, status=2)
        assert word in result.stderr and len(result.stderr.splitlines()) == 1
