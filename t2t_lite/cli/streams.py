"""The standard streams of a command: where its messages go, and what is typed into it line by line."""

import contextlib
import io
import logging
import os
import sys

from t2t_lite.errors import UserError

_LOGGER = logging.getLogger("t2t_lite")


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
