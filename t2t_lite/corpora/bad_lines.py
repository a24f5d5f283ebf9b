"""Unreadable lines: refused, or, by t2t-datagen's `--skip_bad_lines`, skipped and counted."""

import logging

from t2t_lite.errors import UserError

_LOGGER = logging.getLogger("t2t_lite")
_SHOWN = 5
REASON = "bad lines"


def report(message, on_bad_line):
    """Calls a reader's `on_bad_line`; raises `UserError` if it is None."""
    if on_bad_line is None:
        raise UserError(message) from None
    on_bad_line(message)


class FewWarnings:
    """Logs the first few of many warnings, each once, since files are read more than once.

    Args:
        last: str, the warning that others are not shown.
    """

    def __init__(self, last):
        self._last, self._shown = last, set()

    def __call__(self, message):
        """Logs a message."""
        if message not in self._shown and len(self._shown) < _SHOWN:
            self._shown.add(message)
            _LOGGER.warning(message)
            if len(self._shown) == _SHOWN:
                _LOGGER.warning(self._last)


class BadLines:
    """The `on_bad_line` of the readers: counts every bad line and logs a warning for the first few.

    Args:
        removed: Counter to which the lines are added.
    """

    def __init__(self, removed):
        self._removed, self._warn = removed, FewWarnings("further lines that are left out are only counted")

    def __call__(self, message):
        """Counts a line; `message` says which one it is and what is wrong with it."""
        self._removed[REASON] += 1
        self._warn(f"{message} Left out.")
