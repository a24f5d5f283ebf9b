"""What goes wrong outside of the code, at a place that a test chooses: time, disks, operations, Ctrl-C.

`clock` is a fixture of all tests; the others are context managers. A test tries a writer or a loop at every place:

    for byte in range(0, size, 7):
        with pytest.raises(Failure), faults.full_disk(byte):
            write(path)
        assert no file is left, or the old one is whole
"""

import builtins
import contextlib
import errno
import io
import os
import resource
import sys
import time
import typing
from unittest import mock


class Clock:
    """A clock that a test moves: `time.time`, `monotonic` and `perf_counter`; `time.sleep` moves it, too.

    `sleeps` are the seconds asked for, in order.
    """

    def __init__(self, now=1_700_000_003.25):
        self.now, self._start, self.sleeps = now, now - 1_003.5, []

    def advance(self, seconds):
        """Moves it."""
        self.now += seconds

    def sleep(self, seconds):
        """Stands for `time.sleep`."""
        self.sleeps.append(seconds)
        self.advance(seconds)

    def install(self, monkeypatch):
        """Lets the module `time` read this clock until the test ends."""
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)
        for name in ("monotonic", "perf_counter"):
            monkeypatch.setattr(time, name, lambda: self.now - self._start)


@contextlib.contextmanager
def failing(owner, name, call, error=KeyboardInterrupt):
    """Context in which one call of an operation raises an error instead of doing its work.

    Args:
        owner: module, class or object whose attribute is called.
        name: str, the attribute.
        call: int from 1, which call fails; those before and after it do as ever.
        error: exception, or its class.

    Yields:
        list of the calls' arguments, one tuple for each; its length says how often it was called.
    """
    real, calls = getattr(owner, name), []

    def fails_once(*arguments, **options):
        calls.append(arguments)
        if len(calls) == call:
            raise error
        return real(*arguments, **options)

    with mock.patch.object(owner, name, fails_once):
        yield calls


class _FullDisk(io.FileIO):
    """A file whose disk has room for some bytes; what is left of the room is shared by all files."""

    room: typing.ClassVar = [0]

    def write(self, data):
        data = memoryview(data).cast("B")
        fits = data[: self.room[0]]
        if not fits and len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
        written = super().write(fits)
        self.room[0] -= written
        return written


@contextlib.contextmanager
def full_disk(room):
    """Context in which the disk is full after `room` more bytes of files opened by Python: what fits is written.

    TensorFlow's writers open files by themselves: see `limited_files`.
    """
    real = builtins.open

    def opened(path, mode="r", *arguments, **options):
        if isinstance(path, int) or not set(mode) & set("wax+"):
            return real(path, mode, *arguments, **options)
        options |= dict(zip(("buffering", "encoding", "errors", "newline"), arguments, strict=False))
        raw, buffering = _FullDisk(path, mode.replace("b", "").replace("t", "")), options.pop("buffering", -1)
        if buffering == 0:
            return raw
        buffer = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
        return buffer if "b" in mode else io.TextIOWrapper(buffer, **options, line_buffering=buffering == 1)

    with mock.patch.object(_FullDisk, "room", [room]), mock.patch.object(builtins, "open", opened):
        yield


@contextlib.contextmanager
def limited_files(size):
    """Context in which no file of this process becomes larger than `size` bytes: `errno.EFBIG`, in C++ as well."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def interrupted_at(line, *modules):
    """Context in which Ctrl-C is pressed before the n-th line that some modules execute, from 1, in this thread.

    Yields:
        list that holds what was executed so far, (file, line number): its length without an interrupt is the number
        of places to try.
    """
    paths, lines = {module.__file__ for module in modules}, []

    def trace(frame, event, _):
        if frame.f_code.co_filename not in paths:
            return None
        if event == "line":
            lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(lines) == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)
