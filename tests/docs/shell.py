"""bash in which the t2t commands are answered by this process, so that TensorFlow is imported once for all of them."""

import contextlib
import importlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from unittest import mock

from t2t_lite.cli import commands

COMMANDS = [*commands.paths()]
_LONGEST = 1200  # seconds of a script

# What stands in PATH under a command's name. It hands its streams and words to the listening process.
_STAND_IN = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    socket.send_fds(connection, [b"*"], [0, 1, 2])
    words = [os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd(), dict(os.environ)]
    connection.sendall(json.dumps(words).encode() + b"\\n")
    sys.exit(int(connection.recv(16) or 1))
"""
# Variables are exported, and what is left of them is the next script's.
_SCRIPT = """set -aeuo pipefail
trap 'env -0 > "$STATE"' EXIT
{script}
"""


class Shell:
    """Runs scripts one after the other, each with the variables and in the folder that the last one left.

    Args:
        folder: pathlib.Path where scripts begin, their $HOME.
        own: pathlib.Path of a folder for the shell's own files; it must be short, for a socket is in it.
    """

    def __init__(self, folder, own):
        self._state, self._out, self._error = own / "state", own / "stdout", own / "stderr"
        self._listener = socket.create_server(str(own / "socket"), family=socket.AF_UNIX)
        programs = own / "bin"
        programs.mkdir()
        text = _STAND_IN.format(python=os.path.realpath(sys.executable), address=str(own / "socket"))
        for command in COMMANDS:
            (programs / command).write_text(text)
            (programs / command).chmod(0o755)
        self.variables = {
            "PATH": f"{programs}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PWD": str(folder),
            "STATE": str(self._state),
            "TERM": "dumb",
        }

    def run(self, script):
        """Runs a script; returns what it printed. Raises `AssertionError` with its messages where it fails."""
        with self._out.open("wb") as out, self._error.open("wb") as error:
            process = subprocess.Popen(
                ["bash", "-c", _SCRIPT.format(script=script)],
                env=self.variables,
                cwd=self.variables["PWD"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=error,
                start_new_session=True,
            )
            end = time.monotonic() + _LONGEST
            try:
                while process.poll() is None:
                    assert time.monotonic() < end, f"more than {_LONGEST} seconds:\n{script}"
                    if select.select([self._listener], [], [], 0.02)[0]:
                        self._answer()
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        printed, messages = (path.read_text(encoding="utf-8", errors="replace") for path in (self._out, self._error))
        assert process.returncode == 0, f"status {process.returncode} of\n{script}\n{messages[-4000:]}"
        pairs = self._state.read_text(encoding="utf-8").split("\0")
        self.variables = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return printed

    def close(self):
        """Stops listening."""
        self._listener.close()

    def _answer(self):
        """Runs the command that a stand-in asks for, with the stand-in's streams, folder and variables."""
        connection, _ = self._listener.accept()
        connection.settimeout(20)
        with connection, contextlib.ExitStack() as stack:
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
            modes = zip(("stdin", "stdout", "stderr"), descriptors, "rww", strict=True)
            streams = {name: stack.enter_context(open(fd, mode, encoding="utf-8")) for name, fd, mode in modes}
            received = b""
            while not received.endswith(b"\n"):
                part = connection.recv(2**16)
                assert part, "the stand-in has been killed"
                received += part
            command, words, folder, variables = json.loads(received)
            kept = {"PATH", "LD_LIBRARY_PATH"}
            stack.enter_context(mock.patch.dict(os.environ, {k: v for k, v in variables.items() if k not in kept}))
            stack.enter_context(contextlib.chdir(folder))
            for name, stream in streams.items():
                stack.enter_context(mock.patch.object(sys, name, stream))
            try:
                status = importlib.import_module(f"t2t_lite.bin.{command.replace('-', '_')}").main(words)
            except BaseException:
                traceback.print_exc()
                status = 1
            for name in ("stdout", "stderr"):
                streams[name].flush()
            connection.sendall(str(status).encode())
