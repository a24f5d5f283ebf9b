"""A command and its terminal: progress on stderr, the standard streams, signals that end it."""

import contextlib
import io
import logging
import os
import re
import signal
import sys
import threading
import time

from t2t_lite.errors import UserError, counted

_LOGGER = logging.getLogger("t2t_lite")
_COLUMNS = 80  # where neither the terminal nor COLUMNS tells
SECONDS = 10  # without a plain line
_ENDING = (signal.SIGTERM, signal.SIGINT)
# SIGHUP comes when a terminal is closed, often from shell and system at once; SIGUSR1 comes from batch systems before a
# job's time is over. They ask for an end, and never force it. Where the parent ignores them, as nohup does, so do we.
_ASKING = (signal.SIGHUP, signal.SIGUSR1)


def columns():
    """Returns how many characters a line may have: those of the terminal on stderr, or of COLUMNS if it has fewer."""
    told = [int(os.environ["COLUMNS"])] if os.environ.get("COLUMNS", "").isdecimal() else []
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is no terminal, or no file
        told.append(os.get_terminal_size(sys.stderr.fileno()).columns)
    return min(filter(None, told), default=_COLUMNS) - 1  # a full line would begin the next one


def fit(fields, width, between="  "):
    """Joins fields, a list of str; from the second on those that do not fit into the width are left out."""
    line = fields[0][:width]
    for field in fields[1:]:
        if len(line) + len(between) + len(field) <= width:
            line += between + field
    return line


def move(text=""):
    """Writes the moving line anew, where there is one: see `has_moving_line`."""
    with contextlib.suppress(OSError):  # a terminal that was closed: the work has yet to be saved
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def waiting(text):
    """Context manager that announces slow work: on a terminal at once, in the moving line; elsewhere after a while."""
    moves, timer = has_moving_line(), threading.Timer(SECONDS, _LOGGER.info, [text])
    timer.daemon = True
    if moves:
        move(fit([text], columns()))
    else:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if moves:
            move()


class Progress:
    """Counts what is done and shows it on stderr.

    Args:
        title: what is being done.
        unit: what is counted, in the plural.
        total: how many there are; None: not known.
        done: how many of them were done before.
    """

    def __init__(self, title, unit, total=None, done=0):
        self.count, self.tokens = done, 0
        self._before = done
        self._total = total
        self.title, self._unit = title, unit
        self._start = self._shown = time.monotonic()
        self._on_terminal = has_moving_line()
        self._logged = None  # the counts of the last plain line

    def watch(self, items):
        """Yields the items and counts them."""
        for item in items:
            yield item
            self.count += 1
            if not self.count & 255:
                self._show()

    def add(self, count, tokens=0):
        """Counts more that is done, and how many tokens that made."""
        self.count += count
        self.tokens += tokens
        self._show()

    def _show(self):
        now = time.monotonic()
        if self.count == self._total:
            return  # `done` says so
        if now - self._shown >= (0.2 if self._on_terminal else SECONDS):
            self._shown = now
            if self._on_terminal:
                move(fit(self._fields(), columns(), ", "))
            else:
                self._log()

    def _log(self, is_last=False):
        if self._logged != (counts := (self.count, self.tokens)):
            self._logged = counts
            _LOGGER.info(", ".join(self._fields(is_last)))

    def _fields(self, is_last=False):
        seconds = max(time.monotonic() - self._start, 1e-3)
        rate = (self.count - self._before) / seconds
        of_total = "" if self._total is None else f" of {self._total:,}"
        is_one = (self.count if self._total is None else self._total) == 1
        unit = re.sub(r"s\b", "", self._unit, count=1) if is_one else self._unit
        fields = [
            f"{self.title}: {self.count:,}{of_total} {unit}",
            f"{rate:,.{1 if 0 < rate < 10 else 0}f} a second",
        ]
        if self.tokens:
            fields.append(f"{counted(round(self.tokens / seconds), 'token')} per second")
        if self._total and rate and self.count < self._total and not is_last:
            fields.append(f"ETA {clock((self._total - self.count) / rate)}")
        return fields

    def done(self):
        """Leaves a last, plain line."""
        if self._on_terminal:
            move()
        self._log(is_last=True)


def table(rows):
    """Returns rows of str as lines of text: columns to the right, two blanks between them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def clock(seconds):
    """Returns seconds as 3:20, or 2:05:00."""
    seconds = int(seconds)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02d}:{seconds % 60:02d}" if hours else f"{minutes}:{seconds % 60:02d}"


@contextlib.contextmanager
def stop_on_signal(then=lambda: None, at_second=lambda: None):
    """Context in which the first SIGTERM, SIGINT, SIGHUP or SIGUSR1 sets the event that it yields.

    A second one, if it is SIGTERM or SIGINT, has its usual effect. In another thread than the main one, which alone
    gets signals, nothing sets the event.

    Args:
        then: a function without arguments, called at the first signal.
        at_second: likewise, called at the second one, before it has its effect.
    """
    stopped, before = threading.Event(), {}

    def handle(number, _):
        if not stopped.is_set():
            stopped.set()
            then()
            return
        if number in _ASKING:
            return
        at_second()
        # Only now: of two signals that come while C++ runs, Python would drop the second one if it had no handler.
        signal.signal(number, before[number])
        signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        asking = [number for number in _ASKING if signal.getsignal(number) != signal.SIG_IGN]
        for number in (*_ENDING, *asking):
            # Of a handler that C installed, which Python cannot put back, None is said.
            before[number] = signal.signal(number, handle) or signal.SIG_DFL
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_terminal():
    """Whether someone types there."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def descriptor():
    """Returns the file descriptor of standard input. Raises `UserError` where there is none."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, ValueError, io.UnsupportedOperation):  # None, closed, or an object in memory
        raise UserError("standard input is closed. Name a file, or give the command an input.") from None


def typed_lines(prompt, longest):
    """Yields what is typed, until q or the end of input. What is no text is told, and not yielded.

    Args:
        prompt: str, shown where somebody types.
        longest: int, the most characters of a line.
    """
    if is_terminal():
        import readline  # noqa: F401  (input() then has a history)
    else:
        prompt = ""
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    while True:
        try:
            line = input(prompt).rstrip("\r\n")
        except (EOFError, RuntimeError):  # RuntimeError: there is no standard input
            return
        if line.strip() == "q":
            return
        if wrong := [character for character in line if "\udc80" <= character <= "\udcff"]:
            byte = ord(wrong[0]) - 0xDC00
            print(f"not UTF-8 (byte 0x{byte:02x}): not translated. Set the terminal to UTF-8.", file=sys.stderr)
        elif len(line) > longest:
            print(f"more than {longest:,} characters: not translated. Type a sentence.", file=sys.stderr)
        else:
            yield line


def has_moving_line():
    """Whether a line of standard error can be written again: on a terminal that knows more than plain text."""
    return getattr(sys.stderr, "isatty", bool)() and os.environ.get("TERM") != "dumb"  # it may only have `write`


def clear_line():
    """Returns what a message begins with: where lines move, it removes that of `console`."""
    return "\r\033[K" if has_moving_line() else ""


class _Formatter(logging.Formatter):
    """Plain lines; warnings and errors begin with the command's name, as its own messages do."""

    def __init__(self, command):
        super().__init__()
        self._command = command

    def format(self, record):
        text = super().format(record)
        text = f"{self._command}: {record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text
        return f"{clear_line()}{text}"


@contextlib.contextmanager
def standard_streams():
    """Context with all three standard streams, standard output in UTF-8; yields the names of those that were closed.

    What is written to a closed one is lost. It must not go to the file that is opened next, which would get its number.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    before = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    lacking = [name for name, stream in before.items() if stream is None or getattr(stream, "closed", False)]
    for name in lacking:
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):  # translations are UTF-8 whatever the locale, names of files any bytes
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    try:
        yield lacking
    finally:
        for name in lacking:
            getattr(sys, name).close()
            setattr(sys, name, before[name])


@contextlib.contextmanager
def log_to_stderr(command):
    """Shows what the library logs (logger `t2t_lite`, from INFO on) on stderr while the command runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(command))
    level, propagate, outer = _LOGGER.level, _LOGGER.propagate, _LOGGER.handlers
    # A command that another one calls speaks for itself alone: each line comes once, under the name of its command.
    _LOGGER.handlers = [other for other in outer if not isinstance(other.formatter, _Formatter)]
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.propagate = (
        False  # libraries that call logging.info() give the root logger a handler: lines would come twice
    )
    try:
        yield
    finally:
        _LOGGER.handlers = outer
        _LOGGER.setLevel(level)
        _LOGGER.propagate = propagate
