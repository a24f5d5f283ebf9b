"""The two kinds of errors that commands print as one line, the logger of all modules, and helpers for messages."""

import contextlib
import difflib
import logging
import re

LOGGER = logging.getLogger("t2t_lite")
# Control characters, halves of surrogate pairs, and characters that change the writing direction.
_NOT_FOR_TERMINALS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
# Matches the operation names that TensorFlow adds to its messages, since they do not help users.
GRAPH_NODE = re.compile(r"\{\{(?:function_)?node [^{}\n]*\}\} ?| \[Op:\w+\](?: name: ?)?")


class UserError(ValueError):
    """A mistake in the user's input, such as a flag, a file, a line or a value.

    The message is one line: where the mistake is, what was found, what was expected, and the next step. Commands print
    it without a traceback and exit with status 2.
    """


class MissingFile(UserError):
    """An input file does not exist."""


class NotWritten(UserError, NotImplementedError):
    """A user's class does not define a required method or attribute."""


class UnknownName(UserError, KeyError):
    """A name is not registered. The error is also a `KeyError`, as in tensor2tensor's registry."""

    __str__ = UserError.__str__  # replaces KeyError's method, which would print the repr of the message


class Failure(RuntimeError):
    """A failure that is not caused by the user's input, such as a full disk, a dead worker or a loss that is NaN.

    Commands print the one-line message without a traceback and exit with status 1.
    """


@contextlib.contextmanager
def located(where):
    """Context manager that puts the place of the mistake, such as a file or a flag, before a `UserError`'s message."""
    try:
        yield
    except UserError as error:
        raise error if str(error).startswith(where) else UserError(f"{where}: {error}") from None


@contextlib.contextmanager
def needs(package, pip_extra, what, instead=""):
    """Context manager for imports of an optional package that `what` needs.

    Args:
        package: str, the name of the package.
        pip_extra: str, the extra of t2t_lite that installs the package.
        what: str, the subject of the error message, such as a flag, a command or a file.
        instead: str, an alternative for the user, which ends the message.

    Raises:
        UserError: an import fails; the message contains the command that installs the package.
    """
    try:
        yield
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        why = "is not installed" if is_missing else f"cannot be imported: {first_line(error)}"
        text = f"{what} needs {package}, which {why}. Run: pip install 't2t_lite[{pip_extra}]'{instead}"
        raise UserError(text) from None


def shown(value):
    """Returns the repr of a value for a message, truncated to 80 characters since it may come from a huge file."""
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 400 else "a huge number"
    return text if len(text) <= 80 else f"{text[:79]}…"


def printable(text):
    """Returns a text, which may quote a file, as one line that a terminal can safely show; shortens a huge text."""
    line = _NOT_FOR_TERMINALS.sub(lambda found: found[0].encode("unicode_escape").decode(), " ".join(text.splitlines()))
    return line if len(line) <= 4000 else f"{line[:3000]} … {line[-900:]}"


def first_line(error):
    """Returns the first line of an exception's message without its full stop, or the class name if it is empty."""
    text = str(getattr(error, "strerror", None) or getattr(error, "message", None) or error)
    text = GRAPH_NODE.sub("", text).strip()
    return text.splitlines()[0][:300].rstrip(".") if text else type(error).__name__


def flag_list(items):
    """Returns strings as the value of a flag: a,b. Double quotes surround an item that has a comma or a quote."""
    return ",".join('"{}"'.format(item.replace('"', '""')) if re.search('[,"]', item) else item for item in items)


def counted(number, word):
    """Returns a number with its noun, such as `1 line` or `2,000 lines`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def several(names, most=5):
    """Joins names, but only the first few of many, such as `a, b, c, d, e and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def nearest(name, candidates, end=""):
    """Returns a sentence such as `Nearest: transformer_base, transformer_big.` and `end`, or "" if no name is close."""
    close = difflib.get_close_matches(str(name)[:200], [str(c) for c in candidates], n=3, cutoff=0.5)
    return f"Nearest: {', '.join(close)}.{end}" if close else ""
