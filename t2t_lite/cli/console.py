"""Terminal support for commands: progress on stderr, standard streams, and signals that stop a command."""

import contextlib
import io
import logging
import os
import re
import signal
import sys
import threading
import time

from t2t_lite.errors import LOGGER, UserError, counted

_COLUMNS = 80  # line width if neither the terminal nor the variable COLUMNS defines it
SECONDS = 10  # seconds between two progress lines if stderr is not a terminal
_ENDING = (signal.SIGTERM, signal.SIGINT)
# SIGHUP is sent when a terminal is closed, often by both the shell and the system; SIGUSR1 is sent by batch systems
# before a job's time is over. These two signals request a clean stop and never force the process to end. If the parent
# process ignores them, as nohup does, they are ignored here too.
_ASKING = (signal.SIGHUP, signal.SIGUSR1)


def columns():
    """Returns the number of characters that fit into a line, according to the terminal on stderr and to COLUMNS."""
    widths = [int(os.environ["COLUMNS"])] if os.environ.get("COLUMNS", "").isdecimal() else []
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is not a terminal, or not a file
        widths.append(os.get_terminal_size(sys.stderr.fileno()).columns)
    return min(filter(None, widths), default=_COLUMNS) - 1  # one less, since a full line would wrap


def fit(fields, width, between="  "):
    """Joins fields, a list of str, but skips every field that would make the line wider than `width`."""
    line = fields[0][:width]
    for field in fields[1:]:
        if len(line) + len(between) + len(field) <= width:
            line += between + field
    return line


def move(text=""):
    """Overwrites the terminal's current line with a progress text; call it only if `has_moving_line()`."""
    with contextlib.suppress(OSError):  # a closed terminal must not keep a command from saving its work
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def waiting(text):
    """Context manager that announces slow work: on a terminal immediately, otherwise in the log after 10 seconds."""
    moves, timer = has_moving_line(), threading.Timer(SECONDS, LOGGER.info, [text])
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
    """Counts finished items and shows progress on stderr.

    Args:
        title: str, the name of the work, such as "scoring".
        unit: str, the plural noun for the counted items, such as "lines".
        total: number of items, or None if unknown.
        done: number of items that an earlier run finished.
    """

    def __init__(self, title, unit, total=None, done=0):
        self.count, self.tokens = done, 0
        self._before = done
        self._total = total
        self.title, self._unit = title, unit
        self._start = self._shown = time.monotonic()
        self._on_terminal = has_moving_line()
        self._logged = None  # the counts that the last plain line showed

    def watch(self, items):
        """Yields the items and counts them."""
        for item in items:
            yield item
            self.count += 1
            if not self.count & 255:
                self._show()

    def add(self, count, tokens=0):
        """Adds finished items, and the number of tokens in these items."""
        self.count += count
        self.tokens += tokens
        self._show()

    def _show(self):
        now = time.monotonic()
        if self.count == self._total:
            return  # `done` reports the last line
        if now - self._shown >= (0.2 if self._on_terminal else SECONDS):
            self._shown = now
            if self._on_terminal:
                move(fit(self._fields(), columns(), ", "))
            else:
                self._log()

    def _log(self, is_last=False):
        if self._logged != (counts := (self.count, self.tokens)):
            self._logged = counts
            LOGGER.info(", ".join(self._fields(is_last)))

    def _fields(self, is_last=False):
        seconds = max(time.monotonic() - self._start, 1e-3)
        rate = (self.count - self._before) / seconds
        of_total = "" if self._total is None else f" of {self._total:,}"
        is_one = (self.count if self._total is None else self._total) == 1
        unit = re.sub(r"s\b", "", self._unit, count=1) if is_one else self._unit
        fields = [f"{self.title}: {self.count:,}{of_total} {unit}", f"{rate:,.{1 if 0 < rate < 10 else 0}f} a second"]
        if self.tokens:
            fields.append(f"{counted(round(self.tokens / seconds), 'token')} per second")
        if self._total and rate and self.count < self._total and not is_last:
            fields.append(f"ETA {clock((self._total - self.count) / rate)}")
        return fields

    def done(self):
        """Logs the last line of progress, with the totals."""
        if self._on_terminal:
            move()
        self._log(is_last=True)


def table(rows, left=()):
    """Formats rows of str as a table whose columns are two spaces apart; returns its lines.

    The columns in `left`, a container of int, are left-aligned, all others right-aligned.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ((f"{cell:{'<' if at in left else '>'}{widths[at]}}" for at, cell in enumerate(row)) for row in rows)
    return ["  ".join(line).rstrip() for line in lines]


def clock(seconds):
    """Formats seconds as minutes and seconds, such as 3:20, or as hours, minutes and seconds, such as 2:05:00."""
    seconds = int(seconds)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02d}:{seconds % 60:02d}" if hours else f"{minutes}:{seconds % 60:02d}"


@contextlib.contextmanager
def stop_on_signal(then=lambda: None, at_second=lambda: None):
    """Context manager: the first SIGTERM, SIGINT, SIGHUP or SIGUSR1 sets the yielded event. A second SIGTERM or SIGINT
    has its usual effect. Only the main thread receives signals; in other threads the event is never set.

    Args:
        then: a function without arguments that is called at the first signal.
        at_second: a function without arguments that is called at the second signal, before the signal has its effect.
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
        # The handlers are reset only now. If two signals arrive while C++ code runs, Python drops the second signal
        # unless it still has a handler.
        signal.signal(number, before[number])
        signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        asking = [number for number in _ASKING if signal.getsignal(number) != signal.SIG_IGN]
        for number in (*_ENDING, *asking):
            # None stands for a handler installed by C code, which Python cannot restore.
            before[number] = signal.signal(number, handle) or signal.SIG_DFL
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_terminal():
    """Returns whether standard input is a terminal."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def descriptor():
    """Returns the file descriptor of standard input. Raises `UserError` if stdin is closed."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, ValueError, io.UnsupportedOperation):  # for a stdin that is None, closed, or in memory
        raise UserError(
            "standard input is closed. Name an input file, or redirect a file or pipe to the command."
        ) from None


def typed_lines(prompt, longest):
    """Yields the typed lines until the user types q or the input ends. Lines that are not UTF-8 are reported and
    skipped.

    Args:
        prompt: str, shown on a terminal.
        longest: int, maximum number of characters per line.
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
        except (EOFError, RuntimeError):  # RuntimeError: standard input is missing
            return
        if line.strip() == "q":
            return
        if wrong := [character for character in line if "\udc80" <= character <= "\udcff"]:
            byte = ord(wrong[0]) - 0xDC00
            print(
                f"the line is not valid UTF-8 (byte 0x{byte:02x}) and is skipped. Set the terminal to UTF-8.",
                file=sys.stderr,
            )
        elif len(line) > longest:
            print(
                f"the line has more than {longest:,} characters and is skipped. Type a shorter sentence.",
                file=sys.stderr,
            )
        else:
            yield line


def has_moving_line():
    """Returns whether standard error is a terminal whose current line can be rewritten."""
    return getattr(sys.stderr, "isatty", bool)() and os.environ.get("TERM") != "dumb"  # stderr may only have `write`


def clear_line():
    """Returns the prefix of a message: an escape sequence that clears the progress line, if there is one."""
    return "\r\033[K" if has_moving_line() else ""


class _Formatter(logging.Formatter):
    """Formats log records as plain lines; warnings and errors begin with the command's name."""

    def __init__(self, command):
        super().__init__()
        self._command = command

    def format(self, record):
        text = super().format(record)
        text = f"{self._command}: {record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text
        return f"{clear_line()}{text}"


@contextlib.contextmanager
def standard_streams():
    """Context manager that opens missing standard streams and sets stdout to UTF-8; yields the names of closed streams.

    Output to a closed stream is lost. Otherwise it would be written to the next file that is opened, which would get
    the stream's descriptor.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    before = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    lacking = [name for name, stream in before.items() if stream is None or getattr(stream, "closed", False)]
    for name in lacking:
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):  # translations are UTF-8 in every locale; file names may contain any bytes
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    try:
        yield lacking
    finally:
        for name in lacking:
            getattr(sys, name).close()
            setattr(sys, name, before[name])


@contextlib.contextmanager
def log_to_stderr(command):
    """Context manager that shows the log messages of `t2t_lite` of level INFO and higher on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(command))
    level, propagate, outer = LOGGER.level, LOGGER.propagate, LOGGER.handlers
    # If one command calls another, each line is logged only once, under the name of the inner command.
    LOGGER.handlers = [other for other in outer if not isinstance(other.formatter, _Formatter)]
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    # Libraries that call logging.info() add a handler to the root logger, so each line would be shown twice.
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.handlers = outer
        LOGGER.setLevel(level)
        LOGGER.propagate = propagate
