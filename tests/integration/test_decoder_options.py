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
    assert "pairs, line 2: 1 column. Expected input<TAB>target" in result.stderr
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
    assert "was made with a different kind of job. Starting again" in result.stderr and lines == losses


@pytest.mark.slow
def test_samples_and_the_one_of_least_risk(decode):
    drawn = "sampling_method=random,num_samples=4,sampling_seed=7"
    _, once = decode(hparams=drawn)
    _, again = decode(hparams=f"{drawn},batch_size=1")
    assert once == again and [len(line.split("\t")) for line in once] == [4, 1, 4, 4, 4, 4]
    assert once[0] == once[5]  # of equal sentences
    assert decode(hparams=drawn.replace("7", "8"))[1] != once
    _, ranked = decode("--mbr=chrf", hparams="num_samples=4,sampling_seed=7,n_best=4")
    assert [set(line.split("\t")) for line in ranked] == [set(line.split("\t")) for line in once]


def test_parts_of_a_file_are_those_of_the_whole(decode, tmp_path):
    _, whole = decode()
    for part in range(4):
        decode("--decode_shards=4", f"--worker_id={part}", "--decode_to_file=part")
    parts = [(tmp_path / f"part00{part}").read_text() for part in range(4)]
    assert "".join(parts).split("\n")[:-1] == whole and [part.count("\n") for part in parts] == [1, 2, 1, 2]
    (tmp_path / "in-00003-of-00002").write_text("old\n")  # a part that is a file of its own
    decode("--decode_to_file=own", hparams="shards=2,shard_id=1,shards_start_offset=2,shard_google_format=true")
    assert (tmp_path / "own-00003-of-00002").read_text() == f"{whole[3]}\n"


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


def test_other_delimiters(decode, tmp_path):
    _, whole = decode()
    (tmp_path / "in").write_text("|".join(LINES[:4]) + "|\n")
    decode(hparams="delimiter=|")
    assert (tmp_path / "out").read_text() == "".join(f"{line}|" for line in whole[:4])


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
    assert lines == whole and "resuming after 4 lines" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


def test_a_full_disk(decode):
    result, _ = decode("--decode_to_file=/dev/full", status=1)
    assert "the disk is full" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_grid_of_settings_on_a_dev_set(decode, made, tmp_path):
    result, _ = decode("--tune=beam_size=1", "--decode_from_file=", "--decode_to_file=",
                       f"--data_dir={made.parent / 'data'}", hparams="num_samples=3")  # fmt: skip
    assert "best: --decode_hparams=beam_size=1" in result.stdout and "3 sentences" in result.stderr
    result, _ = decode("--tune=beam=1", "--decode_from_file=", "--decode_to_file=", f"--data_dir={made}", status=2)
    assert "--tune: 'beam=1'" in result.stderr
