"""Files that are written in parts go on after any failure; files by step, and what is waited for."""

import json
import os

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.files import resumable
from t2t_lite.files.resumable import CHECKPOINTS, TRANSLATIONS, ResumableFiles, find, follow
from tests import faults

MADE_FROM = {"checkpoint": "abc", "input": "def", "sizes": (3, 5)}  # a file has the tuple as a list
UNFINISHED = ["out0.t2t_lite_incomplete", "out0.t2t_lite_incomplete.json", "out1.t2t_lite_incomplete"]
WHOLE = {"out0": "one 3\ntwö 6\nthree 9\n".encode(), "out1": b"3\n6\n9\n"}


def paths(folder, count=2):
    return [str(folder / f"out{n}") for n in range(count)]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def begin(folder, made_from=MADE_FROM):
    """Writes two lines, and a part of a third one that is not on record, as a killed command does."""
    files = ResumableFiles(paths(folder), made_from)
    files.write(["a\nü\n", "1\n2\n"], 2, {"seen": 7})
    files.close()
    with open(f"{os.path.realpath(paths(folder)[0])}.t2t_lite_incomplete", "ab") as file:
        file.write(b"half a li")


def write_all(folder):
    """Writes `WHOLE`, or what is left of it: the state says how far the text counts."""
    files = ResumableFiles(paths(folder), MADE_FROM)
    try:
        for word in ("one", "twö", "three")[files.done :]:
            seen = (files.state or {"seen": 0})["seen"] + 3
            files.write([f"{word} {seen}\n", f"{seen}\n"], 1, {"seen": seen})
            files.state = {"seen": seen}
        files.finish()
    finally:
        files.close()


def test_what_was_killed_goes_on_after_the_record(tmp_path, caplog):
    caplog.set_level("INFO", "t2t_lite")
    begin(tmp_path)
    assert sorted(os.listdir(tmp_path)) == UNFINISHED
    record = json.loads((tmp_path / UNFINISHED[1]).read_text())
    assert record == {"made_from": MADE_FROM | {"sizes": [3, 5]}, "done": 2, "sizes": [5, 4], "state": {"seen": 7}}
    files = ResumableFiles(paths(tmp_path), MADE_FROM)
    assert (files.done, files.state) == (2, {"seen": 7})
    assert "resuming after 2 lines" in caplog.text
    files.write(["c\n", "3\n"], 1, [{"a": 1}, {"a": 2}])
    assert files.done == 3
    files.close()
    files = ResumableFiles(paths(tmp_path), MADE_FROM)
    assert (files.done, files.state) == (3, [{"a": 1}, {"a": 2}])
    files.finish()
    files.close()
    assert contents(tmp_path) == {"out0": "a\nü\nc\n".encode(), "out1": b"1\n2\n3\n"}


def test_after_ctrl_c_at_any_line_the_same_command_completes_the_files(tmp_path):
    with faults.interrupted_at(0, resumable) as lines:
        write_all(tmp_path)
    assert contents(tmp_path) == WHOLE
    for line in range(1, len(lines) + 1):
        (folder := tmp_path / str(line)).mkdir()
        with pytest.raises(KeyboardInterrupt), faults.interrupted_at(line, resumable):
            write_all(folder)
        if contents(folder) != WHOLE:
            write_all(folder)
        assert contents(folder) == WHOLE, lines[line - 1]


def test_on_a_disk_that_is_full_at_any_byte_what_is_written_stays(tmp_path):
    for byte in range(0, 401, 11):
        (folder := tmp_path / str(byte)).mkdir()
        with pytest.raises(Failure, match=r"the disk is full"), faults.full_disk(byte):
            write_all(folder)
        assert not {*WHOLE} & {*contents(folder)}
        write_all(folder)
        assert contents(folder) == WHOLE, byte


def test_a_link_stays_and_its_file_is_resumed(tmp_path):
    (tmp_path / "out0").symlink_to("file")
    begin(tmp_path)
    assert "file.t2t_lite_incomplete.json" in os.listdir(tmp_path)
    files = ResumableFiles(paths(tmp_path), MADE_FROM)
    assert files.done == 2
    files.finish()
    assert (tmp_path / "out0").is_symlink() and (tmp_path / "file").read_bytes() == "a\nü\n".encode()
    assert sorted(os.listdir(tmp_path)) == ["file", "out0", "out1"]


def test_two_cannot_write_the_same_file(tmp_path):
    begin(tmp_path)
    first = ResumableFiles(paths(tmp_path), MADE_FROM)
    with pytest.raises(UserError, match=r"out0: another process"):
        ResumableFiles(paths(tmp_path), MADE_FROM)
    first.write(["c\n", "3\n"], 1)
    first.finish()
    assert contents(tmp_path) == {"out0": "a\nü\nc\n".encode(), "out1": b"1\n2\n3\n"}
    ResumableFiles(paths(tmp_path), MADE_FROM).close()
    assert sorted(os.listdir(tmp_path)) == ["out0", "out1"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"input": "other"}, "a different input"),
        ({"beam": 4}, "a different beam"),
        ("record", "damaged"),
        ("sizes", "damaged"),
        ("state", "damaged"),
        ("file", "damaged"),
        ("gone", "damaged"),
    ],
    ids=str,
)
def test_another_request_and_damage_start_anew(tmp_path, caplog, what, words):
    begin(tmp_path)
    record, other = (tmp_path / name for name in UNFINISHED[1:])
    if what == "record":
        record.write_text("{")
    elif what == "sizes":
        record.write_text(record.read_text().replace("5,", "-5,"))
    elif what == "state":
        record.write_text(record.read_text().replace("7", '"7"'))
    elif what == "file":
        other.write_bytes(b"1")
    elif what == "gone":
        other.unlink()
    files = ResumableFiles(paths(tmp_path), MADE_FROM | (what if isinstance(what, dict) else {}))
    assert (files.done, files.state) == (0, None) and words in caplog.text
    files.close()
    assert os.listdir(tmp_path) == []
    begin(tmp_path)


def test_nothing_is_left_of_a_command_that_did_nothing(tmp_path):
    (tmp_path / "out0").write_text("before")
    ResumableFiles(paths(tmp_path), MADE_FROM).close()
    assert contents(tmp_path) == {"out0": b"before"}


def test_a_device_is_written_without_a_record():
    files = ResumableFiles(["/dev/full"], MADE_FROM)
    with pytest.raises(Failure, match="/dev/full: the disk is full"):
        files.write(["a\n"], 1)
    files.close()


# Files by step.


@pytest.fixture
def folder(tmp_path):
    for name in ("ende-900", "ende-1000", "ende-flags.txt", ".ende-5.swp", ".ende-7", "ende-8.incomplete", "notes"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "ende-6").mkdir()
    for name in ("model.ckpt-20.index", "model.ckpt-3.index", "model.ckpt-20.data-00000-of-00001"):
        (tmp_path / name).write_text("x")
    return tmp_path


def test_files_by_step(folder):
    os.utime(folder / "ende-1000", ns=(1, 1_700_000_000_500_000_000))
    assert [file.step for file in find(str(folder), TRANSLATIONS)] == [900, 1000]
    assert find(str(folder), TRANSLATIONS, 1000) == [(1000, str(folder / "ende-1000"), 1_700_000_000.5)]
    for least in (4, 20):
        assert [file.path for file in find(str(folder), CHECKPOINTS, least)] == [str(folder / "model.ckpt-20")]
    assert not find(str(folder), CHECKPOINTS, 21) and not find(str(folder / "none"), CHECKPOINTS)


def test_steps_are_digits_that_tensorflow_can_count(folder):
    (folder / "ende-٣").write_text("x\n")  # a digit to Python alone
    (folder / f"ende-{2**63 - 1}").write_text("x\n")
    assert [file.step for file in find(str(folder), TRANSLATIONS)] == [900, 1000, 2**63 - 1]
    (folder / f"ende-{2**63}").write_text("x\n")
    with pytest.raises(UserError, match=rf"ende-{2**63}: .*9,223,372,036,854,775,807"):
        find(str(folder), TRANSLATIONS)


def test_two_of_a_step_are_an_error(folder):
    (folder / "deen-900").write_text("x\n")
    with pytest.raises(UserError, match=r"deen-900 and ende-900 .*900"):
        find(str(folder), TRANSLATIONS)


class Coming(faults.Clock):
    """A clock that makes files of these steps appear, or be complete, one at each of the first sleeps."""

    def __init__(self, folder, steps, **options):
        super().__init__()
        self.folder, self.steps, self.whole = folder, list(steps), {900}

    def sleep(self, seconds):
        super().sleep(seconds)
        self.advance(30)
        if self.steps:
            step = self.steps.pop(0)
            (self.folder / f"ende-{step}").write_text("x\n")
            self.whole.add(step)

    def missing(self, file):
        return "" if file.step in self.whole else f"{file.path}: half"


def test_later_files_are_waited_for_and_an_incomplete_one_before_them(folder, monkeypatch):
    """As long as something new comes within a minute and a half; sleeps take 40 s."""
    clock = Coming(folder, [1000, 1100, 1200])
    clock.install(monkeypatch)
    found = follow(str(folder), TRANSLATIONS, 901, 1.5, clock.missing)
    assert [file.step for file in found] == [1000, 1100, 1200]
    assert clock.sleeps == [10] * 6  # three in vain after the last one


@pytest.mark.parametrize(("minutes", "sleeps"), [(0, 0), (1, 2)])
def test_what_is_still_missing_at_the_end_is_said(folder, minutes, sleeps, monkeypatch):
    clock = Coming(folder, [])
    clock.install(monkeypatch)
    files = follow(str(folder), TRANSLATIONS, wait_minutes=minutes, missing=clock.missing)
    assert next(files).step == 900
    with pytest.raises(UserError, match="ende-1000: half"):
        next(files)
    assert len(clock.sleeps) == sleeps
    with pytest.raises(UserError, match="nowhere: no such folder"):
        next(follow(str(folder / "nowhere"), TRANSLATIONS, wait_minutes=minutes))
    assert len(clock.sleeps) == 2 * sleeps
