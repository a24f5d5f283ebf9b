"""Mistakes are named at once: no command imports TensorFlow or Keras for them."""

import re
import subprocess
import sys

import pytest

from benchmarks.harness import mistakes
from t2t_lite.cli import commands

BY_COMMAND = {}
for _mistake in mistakes.mistakes():
    BY_COMMAND.setdefault(_mistake.command, []).append(_mistake)
# Calls a command with each line of standard input, in one process that cannot import TensorFlow.
PROGRAM = """
import os, sys
from t2t_lite.cli import commands

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name == "keras" or name.startswith("tensorflow."):
            print(f"{name} is imported", file=sys.stderr, flush=True)
            os._exit(1)  # an exception could be caught

sys.meta_path.insert(0, Forbidden())
main = commands.module(sys.argv[1]).main
for line in sys.stdin.read().splitlines():
    print(f"status {main(line.split())}", file=sys.stderr, flush=True)
"""


def answers(command, lines):
    """Returns [(what a command prints to standard error, its exit status)] for lines of words."""
    text = "".join(" ".join(line) + "\n" for line in lines)
    process = [sys.executable, "-c", PROGRAM, command]
    done = subprocess.run(process, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [(text, int(status)) for text, status in re.findall(r"(?ms)(.*?)^status (\d+)\n", done.stderr)]


@pytest.mark.whole
@pytest.mark.slow  # a process per command
@pytest.mark.parametrize("command", BY_COMMAND)
def test_a_mistake_is_one_line_and_needs_no_tensorflow(command, tmp_path):
    mistakes.make_files(tmp_path)
    made = BY_COMMAND[command]
    found = answers(command, [mistakes.words_of(mistake.words, str(tmp_path)) for mistake in made])
    for mistake, (text, status) in zip(made, found, strict=True):
        *notes, message = text.splitlines()
        assert status == 2, (mistake, text)
        assert message.startswith(f"{command}: error: "), mistake
        assert mistake.message.replace("{folder}", str(tmp_path)) in message, mistake
        assert not [note for note in notes if "error" in note], mistake
    assert not [*(tmp_path / "new").rglob("*")]  # nothing is half-written


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in mistakes.WORK if command in commands.paths()])
def test_what_reads_only_texts_needs_no_tensorflow(command, tmp_path):
    mistakes.make_files(tmp_path)
    ((text, status),) = answers(command, [mistakes.words_of(mistakes.WORK[command], str(tmp_path))])
    assert status == 0, text


def test_every_command_has_its_mistakes():
    assert {*BY_COMMAND} == {*commands.paths()}
