"""t2t-bleu --translations_dir: points for TensorBoard, and what is done about files that are being written."""

# Nearest tests of: extras/translate_all/in_t2t_bleu.py

import json
import os
import time

import pytest

from tests.integration.conftest import replaced

REFERENCE = "Der alte Mann liest ein Buch .\nZwei rote Hunde laufen am Strand .\n"
FLAGS = ("--translations_dir=translations", "--reference=ref.de", "--event_dir=events")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ref.de").write_text(REFERENCE)
    (tmp_path / "translations").mkdir()
    return tmp_path / "translations"


@pytest.fixture
def add(folder):
    """Adds a translation that was written at a time, in seconds since 1970."""

    def add(name, text=REFERENCE, seconds=1_000_000):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(folder / name, (seconds, seconds))

    return add


@pytest.fixture
def points(tmp_path):
    """Returns what TensorBoard finds: (step, wall time, {tag: value}) in order."""
    import tensorflow as tf

    def read():
        events = [
            event
            for path in sorted((tmp_path / "events").glob("events.out.tfevents.*"))
            for event in tf.compat.v1.train.summary_iterator(str(path))
        ]
        return [
            (e.step, e.wall_time, {v.tag: v.simple_value for v in e.summary.value}) for e in events if e.summary.value
        ]

    return read


def last_step(tmp_path):
    return (tmp_path / "events/last_evaluated_step.txt").read_text()


def test_what_is_wrong_with_the_references_is_said_once(call_command, add, tmp_path):
    text = "他去了學校。\n她買了一本書。\n"
    (tmp_path / "ref").write_text(text)
    for step in (100, 200):
        add(f"enzh-{step}", text)
    result = call_command("t2t-bleu", FLAGS[0], "--reference=ref")
    assert result.status == 0 and result.stderr.count("--tokenization=zh") == 1
    result = call_command("t2t-bleu", FLAGS[0], "--reference=ref", "--tokenization=zh")
    assert "warning" not in result.stderr and result.stdout.splitlines()[-1].split()[-2] == "100.00"


def test_each_file_is_a_point_at_its_step_and_time(call_command, add, points, tmp_path):
    add("ende-flags.txt", "--train_steps=5\n", 999_000)
    add("ende-900", REFERENCE.replace("rote", "blaue"), 1_000_900)
    add("ende-1000", REFERENCE.replace("Der", "der"), 1_001_000)
    result = call_command("t2t-bleu", *FLAGS, "--tag_suffix=_dev")
    assert (result.status, result.stderr) == (0, "")
    *signatures, titles, first, second = result.stdout.splitlines()
    assert [line.split(": nrefs:1|")[0] for line in signatures] == ["sacreBLEU", "chrF2"]
    assert titles.split() == ["step", "BLEU_uncased", "BLEU_cased", "sacreBLEU", "chrF2"]
    assert (first.split()[0], second.split()[:2]) == ("900", ["1000", "100.00"])
    zero, at_900, at_1000 = points()
    assert zero == (0, 999_000, {"BLEU_uncased_dev": 0, "BLEU_cased_dev": 0})
    assert at_900[:2] == (900, 1_000_900)
    assert at_1000[:2] == (1000, 1_001_000)
    assert at_1000[2]["BLEU_uncased_dev"] == pytest.approx(100)
    assert at_1000[2]["BLEU_cased_dev"] == pytest.approx(float(second.split()[2]), abs=0.01)
    assert last_step(tmp_path) == "1000\n"


def test_a_second_call_goes_on_after_the_last_step(call_command, add, points, tmp_path):
    add("ende-100")
    assert call_command("t2t-bleu", *FLAGS).status == 0
    again = call_command("t2t-bleu", *FLAGS)
    assert (again.status, again.stdout) == (0, "")
    assert "from step 101 on" in again.stderr
    add("ende-200")
    call_command("t2t-bleu", *FLAGS, "--bleu_variant=cased")
    assert [(step, sorted(tags)) for step, _, tags in points()] == [
        (0, ["BLEU_cased", "BLEU_uncased"]),
        (100, ["BLEU_cased", "BLEU_uncased"]),
        (200, ["BLEU_cased"]),
    ]
    assert last_step(tmp_path) == "200\n"


def test_min_steps_and_report_zero(call_command, add, points):
    for step in (100, 200, 300):
        add(f"ende-{step}")
    call_command("t2t-bleu", *FLAGS, "--min_steps=200")
    assert [step for step, _, _ in points()] == [200, 300]
    call_command("t2t-bleu", *FLAGS, "--min_steps=300", "--report_zero")
    assert [step for step, _, _ in points()] == [200, 300, 0, 300]


def test_without_event_dir_nothing_is_written(call_command, add, tmp_path):
    add("ende-100")
    before = sorted(tmp_path.rglob("*"))
    lines = call_command("t2t-bleu", *FLAGS[:2], "--json").stdout.splitlines()
    assert [json.loads(line)["step"] for line in lines] == [100]
    assert sorted(tmp_path.rglob("*")) == before


HALVES = {
    REFERENCE.splitlines(keepends=True)[0]: "1 line, but",
    REFERENCE[:-5]: "2 lines without a final line end",
    "": "0 lines",
}


@pytest.mark.parametrize("half", HALVES)
def test_a_file_that_is_being_written_is_not_scored(call_command, add, points, half):
    add("ende-100")
    add("ende-200", half, time.time())
    add("ende-300")
    result = call_command("t2t-bleu", *FLAGS)
    assert result.status == 2 and f"translations/ende-200: {HALVES[half]}" in result.stderr
    assert "ref.de has 2. Expected the same number. If the file is still being written" in result.stderr
    assert [step for step, _, _ in points()] == [0, 100]
    add("ende-200", seconds=time.time())
    assert call_command("t2t-bleu", *FLAGS).status == 0
    assert [step for step, _, _ in points()] == [0, 100, 200, 300]


def test_the_options_of_scores(call_command, add):
    add("ende-100", REFERENCE.replace("rote", "blaue").replace("Der", "der"))
    flags = [
        *FLAGS[:2],
        "--json",
        "--metrics=ter,bleu",
        "--bleu_variant=uncased",
        "--tokenization=char",
        "--ter_case_sensitive",
    ]
    (line,) = map(json.loads, call_command("t2t-bleu", *flags).stdout.splitlines())
    assert [*line] == ["translation", "step", "tensor2tensor", "scores"] and [*line["tensor2tensor"]] == [
        "BLEU_uncased"
    ]
    ter, bleu = line["scores"].values()
    assert ter["score"] == pytest.approx(100 * 2 / 14) and "case:mixed" in ter["signature"]  # 2 of 14 words
    assert "tok:char" in bleu["signature"]


def test_mistakes(call_command, assert_user_error, add, folder, tmp_path):
    assert_user_error(
        call_command("t2t-bleu", *FLAGS), "--translations_dir=translations: no translation", "t2t-translate-all"
    )
    assert_user_error(call_command("t2t-bleu", "--translations_dir=gone", *FLAGS[1:]), "gone: no such folder")
    add(f"ende-{2**63}")
    assert_user_error(call_command("t2t-bleu", *FLAGS), f"ende-{2**63}: step {2**63}")
    (folder / f"ende-{2**63}").unlink()
    assert not (tmp_path / "events").exists()
    add("ende-100", "eine Zeile\n")
    assert_user_error(call_command("t2t-bleu", *FLAGS), "ende-100 has 1 line, but ref.de has 2")
    add("ende-100", REFERENCE.replace("rote", "gr\udcfcne").encode("utf-8", "surrogateescape"))
    assert_user_error(call_command("t2t-bleu", *FLAGS), "ende-100, line 2", "not UTF-8")
    for text in ("ten", "9" * 6000, "١٠", "-1", "", "1 2"):
        (tmp_path / "events/last_evaluated_step.txt").write_text(text)
        assert_user_error(call_command("t2t-bleu", *FLAGS), f"last_evaluated_step.txt: '{text[:1]}", "Delete")
    (tmp_path / "file").write_text("")
    assert_user_error(call_command("t2t-bleu", *replaced(FLAGS, "--event_dir=file")), "file", "folder")
