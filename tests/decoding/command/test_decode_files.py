"""Whole files through a stand-in for the model: chunks, parts, prefixes, references, and what is typed."""
# Nearest tests of: t2t_lite/decoding/command/job.py

import dataclasses
import json
import os

import pytest

from t2t_lite.decoding.command import decode_files
from t2t_lite.decoding.command.decode_files import FilePart, interact, made_from, score_file, searches_many_batches
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.job import DecodingJob
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from tests.decoding.reversing import job_of

LINES = [f"{n}a b c d" for n in range(1, 10)]  # the second of two parts has lines 5 to 9
SECOND = "shards=2,shard_id=1,shards_start_offset=3"


@pytest.fixture(autouse=True)
def chunks(monkeypatch, tmp_path):
    """Two lines are written at a time."""
    monkeypatch.setattr(DecodingJob, "chunk", 2)
    monkeypatch.chdir(tmp_path)


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))


def translated(job, tmp_path, lines=LINES, **beside):
    """The lines of the output of t2t-decoder's second part, whose files of prefixes or references may be given."""
    for name, texts in {"in": lines, **beside}.items():
        write(tmp_path / name, texts)
    names = {name: name if name in beside else "" for name in ("reference", "prefixes")}
    decode_files.translate_file(job, "in", "out", **names)
    return (tmp_path / "out004").read_text().splitlines()


def test_every_chunk_of_a_part_has_its_prefixes_references_and_numbers(tmp_path, capsys):
    prefixes, references = [f"p{n}" for n in range(1, 10)], [line[::-1] for line in LINES]
    fields = {"on_error": "skip", "n_best_format": "json", "tokenization": "13a", "alignments_file": ""}
    job = job_of(tmp_path, f"{SECOND},beam_size=2,n_best=2", keep_timestamp=True, **fields)
    found = translated(job, tmp_path, prefixes=prefixes, reference=references)
    rows = [json.loads(line) for line in found]
    assert [(row["line"], row["input"]) for row in rows] == [*enumerate(LINES, 1)][4:]
    assert [row["hypotheses"][0]["text"] for row in rows] == references[4:]
    given = ["".join(map(chr, prefix)) for options in job.translator.given for prefix in options["prefixes"]]
    assert given == prefixes[4:] and len(job.translator.given) == 3
    assert "sacreBLEU = 100.00" in capsys.readouterr().err
    assert os.stat(tmp_path / "out004").st_mtime == 1007
    assert sorted(os.listdir(tmp_path)) == ["in", "out004", "prefixes", "reference", "run"]


@pytest.mark.parametrize("devices, counts", [(1, [2, 2, 1]), (2, [4, 1])])
def test_each_device_has_as_many_lines_of_a_chunk(tmp_path, devices, counts):
    job = job_of(tmp_path, SECOND, devices=["CPU:0"] * devices)
    translated(job, tmp_path)
    assert [options["count"] for options in job.translator.given] == counts


def test_a_part_may_be_a_file_of_its_own(tmp_path):
    write(tmp_path / "in004", ["xyz"])
    assert translated(job_of(tmp_path, SECOND), tmp_path) == ["zyx"]


def test_messages_have_the_numbers_of_the_whole_file(tmp_path, caplog):
    lines = [line if n != 8 else "%" for n, line in enumerate(LINES, 1)]
    found = translated(job_of(tmp_path, SECOND, on_error="skip"), tmp_path, lines)
    assert found == [line[::-1] if line != "%" else "" for line in lines[4:]]
    assert "in, line 8: '%'" in caplog.text and "1 line skipped" in caplog.text
    with pytest.raises(UserError, match=r"in, line 8: .*--on_error=skip"):
        translated(job_of(tmp_path, SECOND), tmp_path, lines)


def test_bleu_is_of_the_first_output_of_each_line(tmp_path, capsys):
    settings = f"{SECOND},beam_size=2,n_best=2"
    references = [line[::-1] for line in LINES]
    translated(job_of(tmp_path, settings, tokenization="13a"), tmp_path, reference=references)
    assert "sacreBLEU = 100.00 (nrefs:1|case:mixed|eff:no|tok:13a|" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"--decode_reference=reference: reference004 has 8 lines, but in has 5"):
        write(tmp_path / "reference004", references[:8])
        translated(job_of(tmp_path, settings), tmp_path, reference=references)


def test_files_beside_the_output_are_parts_and_get_the_time_of_the_newest_checkpoint(tmp_path, monkeypatch):
    names = "model.ckpt-8", "model.ckpt-9", "model.ckpt-7"
    job = job_of(tmp_path, SECOND, names, alignments_file="links", keep_timestamp=True)
    monkeypatch.setattr("t2t_lite.decoding.command.lines.word_alignment", lambda text, *_: [(0, int(text[0]))])
    translated(job, tmp_path)
    assert (tmp_path / "links004").read_text().split() == [f"0-{n}" for n in range(5, 10)]
    assert os.stat(tmp_path / "links004").st_mtime == os.stat(tmp_path / "out004").st_mtime == 1009


def test_pairs_of_a_part_are_scored_and_bad_ones_named_by_their_lines(tmp_path, caplog):
    caplog.set_level("INFO", "t2t_lite")
    lines = [f"{'s' * n}\t{'t' * (n % 3 + 1)}" for n in range(1, 10)]
    lines[6], lines[7] = "%\tt", "no tab"
    write(tmp_path / "pairs", lines)
    score_file(job_of(tmp_path, SECOND, on_error="skip"), "pairs", "losses")
    # 0.25 for each letter of the text, divided by the letters of the target
    expected = [f"{0.25 * n / (n % 3 + 1):.6f}" if n not in (7, 8) else "" for n in range(5, 10)]
    assert (tmp_path / "losses004").read_text().split("\n") == [*expected, ""]
    assert "pairs, line 7: '%'" in caplog.text and "pairs, line 8: 1 column" in caplog.text
    assert "scoring: 5 of 5 sentences" in caplog.text  # the kind of job, which does not go on with a translation
    with pytest.raises(UserError, match=r"--decode_to_file=losses.* would overwrite"):
        score_file(job_of(tmp_path, SECOND, inputs={"--score_file": "losses"}), "losses", "losses")


def test_what_is_typed_changes_settings_or_is_translated(tmp_path, monkeypatch, capsys):
    typed = ["ab", "ns=1", "ab", "ns=3", "it=text", "it=x", "dl=7", "ab", "ns=0", "ab", "dl=x", "%"]
    monkeypatch.setattr(decode_files.console, "typed_lines", lambda *_: iter(typed))
    job = job_of(tmp_path, "write_beam_scores=true,sampling_seed=5")
    interact(job)
    names = ("sampling", "n_best", "extra_length", "seed", "compile")
    given = [tuple(options[name] for name in names) for options in job.translator.given]
    assert given == [(False, 1, 50, 5, False), (True, 1, 50, 5, False), (True, 3, 7, 5, False), (False, 1, 7, 5, False)]
    out, err = capsys.readouterr()
    one = ["ba", "-0.00"]
    assert out.split("\n") == [*one, *one, *one, "ba!", "-1.00", "ba!!", "-2.00", *one, ""]
    assert "it=x: " in err and "dl=x: " in err and "'%'" in err
    typed[:] = ["ab"]
    interact(job_of(tmp_path))
    assert capsys.readouterr().out == "ba\n"


PART = FilePart("in", ["a"], prefixes=["p"])


@pytest.mark.parametrize("change", [{"lines": ["b"]}, {"prefixes": ["x"]}, {"prefixes": None}, {"first": 2}])
def test_another_input_or_kind_of_job_is_not_resumed(tmp_path, change):
    job = job_of(tmp_path)
    assert made_from(job, PART, "translating") != made_from(job, dataclasses.replace(PART, **change), "translating")
    assert made_from(job, PART, "translating") != made_from(job, PART, "scoring")
    assert made_from(job, PART, "scoring") == made_from(job_of(tmp_path, "log_results=true"), PART, "scoring")


FLAGS = {
    "long_input": "refuse", "split_sentences": "never", "on_error": "skip", "n_best_format": "json", "mbr": "chrf",
    "devices": ["CPU:1", "CPU:2"], "compute_dtype": "bfloat16", "tokenization": "zh", "names": ["model.ckpt-8"],
    "settings": "alpha=0.1",
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_what_was_begun_under_another_flag_is_not_resumed(tmp_path, name):
    """But with another tokenization, unless it chooses among samples."""
    for usual in ({}, {"mbr": "bleu"}, {"mbr": "chrf"}):
        first, other = (made_from(job_of(tmp_path, **usual | more), PART, "") for more in ({}, {name: FLAGS[name]}))
        changes = usual != {"mbr": FLAGS[name]} if name == "mbr" else usual == {"mbr": "bleu"}
        assert (first != other) == (changes if name in ("mbr", "tokenization") else True)


@pytest.mark.parametrize(
    "settings, job, lines, expected",
    [
        ("", {}, 256, True),
        ("", {}, 255, False),
        ("batch_size=4", {}, 32, True),
        ("batch_size=1", {}, 1000, False),  # compiled
        ("sampling_method=random", {}, 1000, False),  # compiled
        ("", {"mbr": "chrf"}, 1000, False),  # samples
        ("", {"devices": ["CPU:0", "CPU:1"]}, 1000, False),
    ],
)
def test_only_many_uncompiled_batches_are_searched_with_a_thread_each(tmp_path, settings, job, lines, expected):
    assert searches_many_batches(job_of(tmp_path, settings, **job), lines) is expected


def test_predictions_are_not_searched(tmp_path, monkeypatch):
    monkeypatch.setattr(DecodingJob, "predicts", True)
    assert searches_many_batches(job_of(tmp_path), 1000) is False


@pytest.mark.parametrize(
    "settings, begin, end", [("", 0, 7), ("shards=3,shard_id=0", 0, 2), ("shards=3,shard_id=2", 4, 7)]
)
def test_parts_are_all_lines_once(settings, begin, end):
    assert DecodeHParams.parse(settings).shard_range(7) == (begin, end)


@pytest.mark.parametrize(
    ("batch_size", "dtype", "asked"),
    [(4, None, [("--compute_dtype=bfloat16", 12)]), (5, None, []), (4, "float32", [])],
    ids=["many batches", "few batches", "a dtype is given"],
)
def test_bfloat16_is_suggested_for_many_batches(tmp_path, monkeypatch, batch_size, dtype, asked):
    calls = []
    monkeypatch.setattr(decode_files.bfloat16, "suggest", lambda setting, hparams, rows: calls.append((setting, rows)))
    monkeypatch.setattr(decode_files, "use_a_thread_per_search", lambda: None)
    write(tmp_path / "in", ["a"] * 32)
    job = job_of(tmp_path, f"batch_size={batch_size},beam_size=3", compute_dtype=dtype)
    job.translator.hparams = HParams()
    decode_files.translate_file(job, "in", "out")
    assert calls == asked
