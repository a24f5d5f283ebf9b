"""Standard input, of the commands that answer it line by line: a stream, or what somebody types."""

import io
import sys

from t2t_lite.errors import UserError


def is_terminal():
    """Whether someone types there."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def descriptor():
    """Returns the file descriptor of standard input. Raises `UserError` where there is none."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, ValueError, io.UnsupportedOperation):  # None, closed, or an object in memory
        raise UserError("standard input is closed. Name a file, or give the command an input.") from None


def typed_lines(prompt):
    """Yields what is typed, until q or the end of input. What is no text is told, and not yielded.

    Args:
        prompt: str, shown where somebody types.
    """
    from t2t_lite.corpora.plain_text import LONGEST_LINE

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
        elif len(line) > LONGEST_LINE:
            print(f"more than {LONGEST_LINE:,} characters: not translated. Type a sentence.", file=sys.stderr)
        else:
            yield line
