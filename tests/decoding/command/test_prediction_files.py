"""A problem's own formats, by the endings of files."""

import pytest

from t2t_lite.data.problem import Problem
from t2t_lite.decoding.command import text_files
from t2t_lite.errors import UserError


def read_numbers(path, encoders):
    return [[*map(int, encoders["targets"](path))]]


def write_sums(path, answers, encoders):
    return {path: str([(given, list(map(sum, outputs))) for given, outputs in answers]).encode()}


class Numbers(Problem):
    readers = {"num": read_numbers}  # noqa: RUF012
    writers = {"sum": write_sums}  # noqa: RUF012


def opened():
    return {"targets": lambda path: open(path).read().split()}


def read(path):
    found = text_files.reader(str(path), Numbers(), "", opened)
    return found(str(path), "\n", None)


def test_a_file_is_read_by_the_problem_that_knows_its_ending(tmp_path):
    for name in ("a.num", "b.NUM", "c.txt"):
        (tmp_path / name).write_text("3 4\n")
    assert [read(tmp_path / name) for name in ("a.num", "b.NUM", "c.txt")] == [[[3, 4]], [[3, 4]], ["3 4"]]
    plain = text_files.reader(str(tmp_path / "a.num"), Problem(), "", opened)
    assert plain is text_files.input_lines


def test_a_folder_is_read_by_the_ending_of_its_files(tmp_path):
    (tmp_path / "some" / "inside").mkdir(parents=True)
    with pytest.raises(UserError, match=r"some: is a folder\. Expected files that all end in one of \.num\."):
        read(tmp_path / "some")
    with pytest.raises(UserError, match=r"some: is a folder\. Expected a file\."):
        text_files.reader(str(tmp_path / "some"), Problem(), "", opened)
    (tmp_path / "some" / "inside" / "a.num").touch()
    encoders = {"targets": lambda path: str(len(path.removeprefix(str(tmp_path))))}
    reader = text_files.reader(str(tmp_path / "some"), Numbers(), "", lambda: encoders)
    assert reader(str(tmp_path / "some"), "\n", None) == [[5]]


def test_outputs_are_written_by_the_problem_from_their_ids():
    write = text_files.writer("out.sum", Numbers())
    assert write is write_sums and text_files.writer("out.txt", Numbers()) is None
    assert text_files.writer("", Numbers()) is text_files.writer("-", Numbers()) is None
    found = text_files.converted(write, "out.sum", ["a", [5], None], ["1 2\t3", "4", ""], {})
    assert found == {"out.sum": b"[('a', [3, 3]), ([5], [4]), (None, [0])]"}
