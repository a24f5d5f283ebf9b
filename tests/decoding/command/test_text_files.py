import gzip
import json
import os
import threading

import pytest

from t2t_lite.data.problem import Problem
from t2t_lite.decoding.command import text_files
from t2t_lite.decoding.command.lines import LineAnswer
from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.errors import Failure, UserError
from tests import faults
from tests.processes import pipe_of


def test_input_lines(tmp_path):
    path = tmp_path / "in"
    path.write_bytes("\ufeffa\r\n\n x\u2028y\u0085z\n\x00\x01last".encode())
    assert text_files.input_lines(str(path)) == ["a", "", " x\u2028y\u0085z", "\x00\x01last"]
    path.write_bytes(b"")
    assert text_files.input_lines(str(path)) == []
    path.write_bytes(gzip.compress(b""))
    assert text_files.input_lines(str(path)) == []


@pytest.mark.parametrize(
    ("name", "warns"), [("in.txt", False), ("in.tsv", False), ("in.csv", True), ("in.JSONL.gz", True)]
)
def test_tables_of_t2t_datagen_are_read_as_lines_with_a_warning(tmp_path, caplog, name, warns):
    data = b"a,b\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert text_files.input_lines(str(tmp_path / name)) == ["a,b"]
    assert (f"/{name}: its rows are read as plain text" in caplog.text) == warns


RECORDS = [
    ("|", "a|b\nc|", ["a", "b\nc"]),
    ("|", "a||b|\n", ["a", "", "b"]),
    ("|", "a|b\n", ["a", "b"]),
    ("|\n", "a|\nb|c|\n", ["a", "b|c"]),
    ("|\n", "a|\nb\n", ["a", "b"]),
    ("\n\n", "a\nb\n\nc\n\n", ["a\nb", "c"]),
    ("\n\n", "a\n\nb\n", ["a", "b"]),
    ("\n\n", "a\r\n\r\n\r\n\r\nb", ["a", "", "b"]),
]


@pytest.mark.parametrize(("delimiter", "text", "records"), RECORDS)
def test_records_of_files_and_pipes_end_at_a_delimiter(tmp_path, delimiter, text, records):
    (tmp_path / "in").write_bytes(text.encode())
    assert text_files.input_lines(str(tmp_path / "in"), delimiter) == records
    with pipe_of(text.encode()) as read:
        assert [line for lines in text_files.stream_lines(read, "in", delimiter) for line in lines] == records


def test_an_output_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(RuntimeError), text_files.output_file(str(path)) as write:
        write("half")
        raise RuntimeError
    full = pytest.raises(Failure, match="out: the disk is full")
    with full, faults.full_disk(2), text_files.output_file(str(path)) as write:
        write("half")  # into the buffer, which is written at the end
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["out"]
    with text_files.output_file(str(path)) as write:
        write("ganz: ü\n")
        assert path.read_text() == "before"
    assert path.read_bytes() == "ganz: ü\n".encode() and os.listdir(tmp_path) == ["out"]


def test_pipes_and_devices_are_files_too(tmp_path):
    """As in --decode_from_file=<(zcat a.gz) --decode_to_file=/dev/null, which must not become a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"c\n\nd",), daemon=True)
    writer.start()
    assert text_files.input_lines(str(pipe)) == ["c", "", "d"]
    writer.join(20)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with text_files.output_file(str(pipe)) as write:
        write("a\n")
    reader.join(20)
    assert got == [b"a\n"] and os.listdir(tmp_path) == ["pipe"]


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    for name, target in (("link", "folder/old"), ("to be made", "folder/new")):
        (tmp_path / name).symlink_to(target)
        with text_files.output_file(str(tmp_path / name)) as write:
            write("a\n")
        assert (tmp_path / name).is_symlink() and (tmp_path / target).read_text() == "a\n"
    with open(tmp_path / "file", "wb") as file:
        (tmp_path / "device").symlink_to(f"/dev/fd/{file.fileno()}")
        with text_files.output_file(str(tmp_path / "device")) as write:
            write("b\n")
    assert (tmp_path / "device").is_symlink() and (tmp_path / "file").read_text() == "b\n"
    assert sorted(os.listdir(tmp_path)) == ["device", "file", "folder", "link", "to be made"]


def test_a_stream_answers_line_by_line():
    read, write = os.pipe()
    lines = text_files.stream_lines(read, "standard input")
    os.write(write, "\ufeffü\r\nhal".encode())
    assert next(lines) == ["ü"]  # although the writer goes on
    os.write(write, b"f\n\nlast")
    assert next(lines) == ["half", ""]
    os.close(write)
    assert list(lines) == [["last"]]
    os.close(read)


def test_lines_of_standard_input_are_numbered_through_all_parts(monkeypatch):
    read, write = os.pipe()
    monkeypatch.setattr(text_files.console, "descriptor", lambda: read)
    parts = text_files.stdin_lines("|")
    for first, count, sizes in ((1, 600, [256, 256, 88]), (601, 3, [3]), (604, 257, [256, 1])):
        lines = [f"{number}\n" for number in range(first, first + count)]
        os.write(write, "".join(f"{line}|" for line in lines).encode())
        for size in sizes:
            assert next(parts) == (first, lines[:size])
            first, lines = first + size, lines[size:]
    os.close(write), os.close(read)


def test_a_line_that_is_too_long_is_named_by_its_number(monkeypatch, tmp_path):
    monkeypatch.setattr(text_files, "_BLOCK", 4)
    monkeypatch.setattr(text_files.plain_text, "LONGEST_LINE", 9)
    (tmp_path / "in").write_text("a|b|" + "c" * 9 + "|")
    assert text_files.input_lines(str(tmp_path / "in"), "|") == ["a", "b", "c" * 9]
    (tmp_path / "in").write_text("a|b|" + "c" * 20 + "|")
    with pytest.raises(UserError, match=r"in, line 3: "):
        text_files.input_lines(str(tmp_path / "in"), "|")


def test_json_is_one_line_for_every_program():
    text = "a\u2028\u2029\x7f\x85\x9f\n\u00a0é"
    found = text_files.json_text({"a": text})
    assert json.loads(found) == {"a": text} and len(found.splitlines()) == 1
    assert not set(found) & {*"\u2028\u2029\x7f\x85\x9f\n"} and "\u00a0é" in found


def test_every_field_of_a_line_of_json():
    hypothesis = Hypothesis("b", -0.12345678, ["▁b"], [7], False, token_scores=[-0.1234567, -1 / 3], lost=["<b>"])
    answer = Translation((hypothesis,), truncated=True, is_short=True)
    found = json.loads(text_files.json_line(7, "a", LineAnswer(answer, truncated=True, parts=3)))
    assert found == {
        "line": 7, "input": "a", "parts": 3, "truncated": True, "short": True,
        "hypotheses": [{
            "text": "b", "score": -0.123457, "ended": False, "tokens": ["▁b"], "token_scores": [-0.123457, -0.333333],
            "lost": ["<b>"],
        }],
    }  # fmt: skip
    assert text_files.rounded({"a": [(1 / 3, 2)], "b": "x"}) == {"a": [[0.333333, 2]], "b": "x"}


def refuse(message):
    raise UserError(message)


@pytest.mark.parametrize("on_bad_line", [None, refuse])
def test_a_stream_that_is_not_utf_8(on_bad_line):
    with pipe_of(b"one\ntwo\n\xff\nfour\n") as read:
        lines = text_files.stream_lines(read, "standard input", on_bad_line=on_bad_line)
        assert next(lines) == ["one", "two"]
        with pytest.raises(UserError, match="standard input, line 3: byte 0xff"):
            next(lines)


@pytest.mark.parametrize(
    "data, message",
    [
        ("größe\nHaus\n".encode("utf-16-le"), "pipe: the text is UTF-16LE"),
        ("größe\n".encode("utf-16"), "pipe: the text is UTF-16"),
        (gzip.compress(b"a\n", mtime=0), "pipe: this is gzip data. .* gzip -dc"),
        (b"a\rb\rc\r", "pipe: its lines end in CR alone"),
        ("ü\n".encode() * 9 + b"\xff\n", "pipe, line 10: byte 0xff .* 9 of the 10 .* UTF-8"),
        ("ü\n".encode() * 9 + b"\xff", "pipe, line 10: byte 0xff .* 9 of the 10 .* UTF-8"),  # a block of its own
        (b"\xff\n" + "ü\n".encode() * 9, "pipe, line 1: byte 0xff .* 9 of the 10 .* UTF-8"),
        (b"\xff\n" * 3, "pipe, line 1: byte 0xff .* 0 of the 3 .*iconv -f ENCODING"),
    ],
)
def test_pipes_are_checked_as_files_are(data, message):
    for on_bad_line in (None, refuse):
        with pipe_of(data) as read, pytest.raises(UserError, match=message):
            list(text_files.stream_lines(read, "pipe", on_bad_line=on_bad_line))


@pytest.mark.parametrize(
    ("delimiter", "data", "records"),
    [
        ("\n", b"a\n\xff\n\nb\n", ["a", None, "", "b"]),
        ("|", b"a|b\n\xff|c|", ["a", None, "c"]),
        ("\r\n", b"a\n\xffb\r\nc\r\n", [None, "c"]),
    ],
)
def test_what_is_refused_is_none_and_no_empty_text(tmp_path, delimiter, data, records):
    (tmp_path / "in").write_bytes(data)
    told = []
    assert text_files.input_lines(str(tmp_path / "in"), delimiter, told.append) == records
    with pipe_of(data) as read:
        piped = text_files.stream_lines(read, "in", delimiter, told.append)
        assert [record for some in piped for record in some] == records
    assert len(told) == 2 and all("0xff" in message for message in told)


def test_an_end_may_lie_between_two_blocks(monkeypatch, tmp_path):
    monkeypatch.setattr(text_files, "_BLOCK", 1)
    (tmp_path / "in").write_bytes("ü|\r\n\r\nx||\n\ny".encode())
    assert text_files.input_lines(str(tmp_path / "in"), "|\n\n") == ["ü", "x|", "y"]


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
    with pytest.raises(UserError, match=r"some is a folder\. Expected .*\.num\."):
        read(tmp_path / "some")
    with pytest.raises(UserError, match=r"some is a folder\. Expected a file\."):
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
