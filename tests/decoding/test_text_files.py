import os
import threading

import pytest

from t2t_lite.decoding import text_files
from t2t_lite.decoding.decode_hparams import DecodeHParams
from t2t_lite.decoding.translator import Hypothesis, Translation
from t2t_lite.errors import UserError


class Reversing:
    """Translates by reversing; a line of more than 9 characters is cut."""

    def translate(self, texts, max_input_length=None, on_progress=None, n_best=1, **options):
        longest = max_input_length or 9
        return [
            Translation(
                tuple(Hypothesis(text[:longest][::-1] + "!" * n, -1.0 * n, ids=[n]) for n in range(n_best)),
                truncated=len(text) > longest,
            )
            for text in texts
        ]


def translate(lines, text=""):
    written = []
    cut = text_files.translate_lines(Reversing(), lines, DecodeHParams.parse(text), written.append)
    return "".join(written), cut


def test_as_many_lines_come_out_in_order():
    assert translate(["abc", "", "de", "x\u2028y"]) == ("cba\n\ned\ny\u2028x\n", [])


def test_a_huge_file_goes_in_chunks(monkeypatch):
    monkeypatch.setattr(text_files, "_CHUNK", 2)
    written, cut = translate(["ab", "a" * 10, "cd", "", "b" * 10])
    assert written.split("\n") == ["ba", "a" * 9, "dc", "", "b" * 9, ""]
    assert cut == [2, 5]


def test_a_translation_never_breaks_a_line_or_a_column():
    assert translate(["a\nb", "c\td\r"]) == ("b a\n d c\n", [])


def test_all_beams_and_their_scores():
    assert translate(["ab"], "beam_size=2,return_beams=true")[0] == "ba\tba!\n"
    assert translate(["ab"], "beam_size=2,return_beams=true,write_beam_scores=true")[0] == "ba\t-0.00\tba!\t-1.00\n"
    assert translate(["ab"], "identity_output=true")[0] == "0\n"


def test_input_lines(tmp_path):
    path = tmp_path / "in"
    path.write_bytes("\ufeffa\r\n\n x\u2028y\u0085z\n\x00\x01last".encode())
    assert text_files.input_lines(str(path)) == ["a", "", " x\u2028y\u0085z", "\x00\x01last"]
    path.write_bytes(b"")
    assert text_files.input_lines(str(path)) == []
    path.write_bytes(b"good\nbad \xff\n")
    with pytest.raises(UserError, match=r"in, line 2: byte 0xff at position 4 is not UTF-8"):
        text_files.input_lines(str(path))
    with pytest.raises(UserError, match="no such file"):
        text_files.input_lines(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="folder"):
        text_files.input_lines(str(tmp_path))


def test_an_output_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(RuntimeError), text_files.output_file(str(path)) as write:
        write("half")
        raise RuntimeError
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["out"]
    with text_files.output_file(str(path)) as write:
        write("ganz: ü\n")
        assert path.read_text() == "before"
    assert path.read_bytes() == "ganz: ü\n".encode() and os.listdir(tmp_path) == ["out"]


def test_an_output_file_that_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="cannot be written"), text_files.output_file(str(tmp_path / "no" / "out")):
        pass


def test_pipes_and_devices_are_files_too(tmp_path):
    """As in --decode_from_file=<(zcat a.gz) --decode_to_file=/dev/null, which must not become a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"c\n\nd",), daemon=True)
    writer.start()
    assert text_files.input_lines(str(pipe)) == ["c", "", "d"]
    writer.join()
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with text_files.output_file(str(pipe)) as write:
        write("a\n")
    reader.join()
    assert got == [b"a\n"] and os.listdir(tmp_path) == ["pipe"]


def test_a_folder_is_no_output(tmp_path):
    with pytest.raises(UserError, match="is a folder"), text_files.output_file(str(tmp_path)):
        pass


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


def test_a_stream_that_is_not_utf_8():
    read, write = os.pipe()
    os.write(write, b"one\ntwo\n\xff\nfour\n")
    os.close(write)
    lines = text_files.stream_lines(read, "standard input")
    assert next(lines) == ["one", "two"]
    with pytest.raises(UserError, match="standard input, line 3: byte 0xff"):
        next(lines)
    os.close(read)
