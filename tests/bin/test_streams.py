"""Commands where the standard streams are no files, closed, or of another encoding."""

import io
import subprocess
import sys

import pytest

from t2t_lite.bin import t2t_make_tf_configs
from t2t_lite.cli import commands
from tests.bin.every_command import COMMANDS

CONFIGS = ["--workers=a:1,b:2"]


class OnlyWrites:
    """As little of a stream as a notebook or a logger may put in place."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_needs_no_more_than_write_and_flush(monkeypatch, name):
    monkeypatch.setattr(sys, name, OnlyWrites())
    assert t2t_make_tf_configs.main(CONFIGS) == 0
    assert t2t_make_tf_configs.main(["--nonsense"]) == 2
    assert getattr(sys, name).text


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("make", [lambda: None, io.StringIO, lambda: closed()], ids=["none", "string", "closed"])
def test_help_and_mistakes_without_streams(monkeypatch, command, make):
    main = commands.module(command.replace("_", "-")).main
    streams = {name: make() for name in ("stdin", "stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    assert main(["--help"]) == 0
    assert main(["--nonsense=1"]) == 2
    assert all(getattr(sys, name) is stream for name, stream in streams.items())


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


def test_what_is_lost_is_said(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert t2t_make_tf_configs.main(CONFIGS) == 0
    assert "warning: standard output is closed" in capsys.readouterr().err


def test_the_descriptors_of_closed_streams_are_taken(tmp_path):
    code = """import os, sys
from t2t_lite.bin import _app
def run(flags):
    assert os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT) > 2
    os.write(1, b"lost"), os.write(2, b"lost")
sys.exit(_app.main("t2t-x", lambda flags: None, run, [], tensorflow=False))"""
    command = ["bash", "-c", f"{sys.executable} -c '{code}' {tmp_path / 'made'} <&- >&- 2>&-"]
    assert subprocess.run(command, timeout=120).returncode == 0
    assert (tmp_path / "made").read_bytes() == b""


def test_names_of_files_come_out_as_they_went_in():
    code = """import sys
from t2t_lite.bin import _app
sys.exit(_app.main("t2t-x", lambda flags: None, lambda flags: print(sys.argv[1]), [], tensorflow=False))"""
    done = subprocess.run([sys.executable, "-c", code, b"caf\xe9"], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"caf\xe9\n"), done.stderr
