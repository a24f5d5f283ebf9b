"""What somebody types, line by line: nothing typed ends the prompt but q and the end of input."""
# Nearest tests of: t2t_lite/cli/console.py

import io
import os
import pty
import subprocess
import sys

import pytest

from t2t_lite.cli import console
from t2t_lite.errors import UserError
from tests.processes import owned


def typed(monkeypatch, data, longest=1000):
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        return list(console.typed_lines("> ", longest))


def test_lines_until_q_or_the_end(monkeypatch):
    assert typed(monkeypatch, "one\r\n\nü \u2028x\n q \nnever".encode()) == ["one", "", "ü \u2028x"]
    assert typed(monkeypatch, b"one\nlast without an end") == ["one", "last without an end"]
    assert typed(monkeypatch, b"") == []
    assert typed(monkeypatch, b"a\0b\x1b[1m\n") == ["a\0b\x1b[1m"]


def test_what_is_no_text_is_told_and_the_next_line_read(monkeypatch, capsys):
    assert typed(monkeypatch, b"caf\xe9\nnext\n\xff\xfe\n") == ["next"]
    told = capsys.readouterr().err.splitlines()
    assert ["0xe9" in told[0], "0xff" in told[1], len(told)] == [True, True, 2] and "UTF-8" in told[0]


def test_a_line_without_end_is_told(monkeypatch, capsys):
    assert typed(monkeypatch, b"x" * 1001 + b"\nnext\n") == ["next"]
    assert "more than 1,000 characters" in capsys.readouterr().err


@pytest.mark.parametrize("stdin", [None, io.StringIO("x")])
def test_no_descriptor(monkeypatch, stdin):
    monkeypatch.setattr(sys, "stdin", stdin)
    assert not console.is_terminal()
    with pytest.raises(UserError, match="standard input is closed"):
        console.descriptor()


class Typed(io.StringIO):
    """Standard input where somebody types."""

    def isatty(self):
        return True


def test_a_prompt_is_shown_where_somebody_types(monkeypatch, capsys):
    for stream, prompts in ((Typed("one\ntwo\n"), 3), (io.StringIO("one\ntwo\n"), 0)):
        monkeypatch.setattr(sys, "stdin", stream)
        assert console.is_terminal() == bool(prompts)
        assert list(console.typed_lines("> ", 9)) == ["one", "two"]
        assert capsys.readouterr().out.count("> ") == prompts
        stream.close()
        assert not console.is_terminal()


def test_on_a_terminal():
    """With readline, which may keep such a byte for the line after it; q ends it."""
    control, terminal = pty.openpty()
    program = (
        "import sys\nfrom t2t_lite.cli import console\n"
        "for line in console.typed_lines('> ', 1000): print(ascii(line), file=sys.stderr)\n"
    )
    with owned(
        [sys.executable, "-c", program], 60, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb"},
    ) as process:  # fmt: skip
        os.close(terminal)  # the process alone has it: what is read from the other end ends with the process
        for line in [b"caf\xe9\n", *2 * [b"m\xc3\xbcde\n"], b"q\n"]:
            shown = b""
            while not shown.endswith(b"> "):  # readline has the terminal from here on
                shown += os.read(control, 1000)
            os.write(control, line)
        told = process.communicate(timeout=60)[1].decode().splitlines()
    os.close(control)
    assert process.returncode == 0
    assert told[-1] == r"'m\xfcde'" and any("UTF-8" in line for line in told)
