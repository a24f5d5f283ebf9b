"""The two kinds of error that a command prints as one line, and the spelling help they share."""

import contextlib
import difflib
import re

# Control characters, halves of surrogate pairs, and what turns the direction of writing.
_NOT_FOR_TERMINALS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
# Where TensorFlow says that an error was raised: names of its operations, no help to a user.
OF_GRAPH = re.compile(r"\{\{(?:function_)?node [^{}\n]*\}\} ?| \[Op:\w+\](?: name: ?)?")


class UserError(ValueError):
    """A mistake in what the user gave: a flag, a file, a line, a value.

    The message is one line: what and where, what was found, what was expected, the next step. Commands print
    it without a traceback and exit with status 2.
    """


class MissingFile(UserError):
    """A file that is to be read does not exist."""


class NotWritten(UserError, NotImplementedError):
    """A user's class lacks something that it has to define."""


class UnknownName(UserError, KeyError):
    """A name that is not registered. Also a `KeyError`, as in tensor2tensor's registry."""

    __str__ = UserError.__str__  # KeyError would print the repr of the message


class Failure(RuntimeError):
    """Something outside the user's input failed: a full disk, a dead worker, a loss that is not a number.

    Commands print the one-line message without a traceback and exit with status 1.
    """


@contextlib.contextmanager
def located(where):
    """Context in which the message of a `UserError` begins with where the mistake is: a file, a flag."""
    try:
        yield
    except UserError as error:
        raise error if str(error).startswith(where) else UserError(f"{where}: {error}") from None


@contextlib.contextmanager
def needs(package, pip_extra, what, instead=""):
    """Context of imports that fail without a package that `what` needs, and that is not always installed.

    Args:
        package: str, its name.
        pip_extra: str, the extra of t2t_lite that installs it.
        what: str, the subject of the message: a flag, a command, a file.
        instead: str, the end of the message: what else helps.

    Raises:
        UserError: an import fails; the message has the command that installs the package.
    """
    try:
        yield
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        why = "is not installed" if is_missing else f"cannot be imported: {first_line(error)}"
        text = f"{what} needs {package}, which {why}. Run: pip install 't2t_lite[{pip_extra}]'{instead}"
        raise UserError(text) from None


def shown(value):
    """Returns the repr of a value for a message, cut after 80 characters: it may come from a file of any size."""
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 400 else "a huge number"
    return text if len(text) <= 80 else f"{text[:79]}…"


def printable(text):
    """Returns a text, which may quote a file, as one line that cannot steer a terminal; a huge one loses its middle."""
    line = _NOT_FOR_TERMINALS.sub(lambda found: found[0].encode("unicode_escape").decode(), " ".join(text.splitlines()))
    return line if len(line) <= 4000 else f"{line[:3000]} … {line[-900:]}"


def first_line(error):
    """Returns the first line of what an exception says, without the full stop; if it says nothing, its class's name."""
    text = str(getattr(error, "strerror", None) or getattr(error, "message", None) or error)
    text = OF_GRAPH.sub("", text).strip()
    return text.splitlines()[0][:300].rstrip(".") if text else type(error).__name__


def counted(number, word):
    """Returns `1 line`, `2,000 lines`: a number with its noun."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def nearest(name, candidates, end=""):
    """Returns a sentence such as `Nearest: transformer_base, transformer_big.` and `end`, or "" when none is close."""
    close = difflib.get_close_matches(str(name)[:200], [str(c) for c in candidates], n=3, cutoff=0.5)
    return f"Nearest: {', '.join(close)}.{end}" if close else ""
