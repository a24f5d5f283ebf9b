"""The two kinds of error that a command prints as one line, and the spelling help they share."""

import difflib


class UserError(ValueError):
    """A mistake in what the user gave: a flag, a file, a line, a value.

    The message is one line: what and where, what was found, what was expected, the next step. Commands print
    it without a traceback and exit with status 2.
    """


class UnknownName(UserError, KeyError):
    """A name that is not registered. Also a `KeyError`, as in tensor2tensor's registry."""

    __str__ = UserError.__str__  # KeyError would print the repr of the message


class Failure(RuntimeError):
    """Something outside the user's input failed: a full disk, a dead worker, a loss that is not a number.

    Commands print the one-line message without a traceback and exit with status 1.
    """


def shown(value):
    """Returns the repr of a value for a message, cut after 80 characters: it may come from a file of any size."""
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 400 else "a huge number"
    return text if len(text) <= 80 else f"{text[:79]}…"


def nearest(name, candidates):
    """Returns a sentence such as `Nearest: transformer_base, transformer_big.`, or "" when nothing is close."""
    close = difflib.get_close_matches(str(name)[:200], [str(c) for c in candidates], n=3, cutoff=0.5)
    return f"Nearest: {', '.join(close)}." if close else ""
