"""Counts the unreadable lines that t2t-datagen's `--skip_bad_lines` skips."""

import logging

_LOGGER = logging.getLogger("t2t_lite")
_SHOWN = 5
REASON = "bad lines"


class BadLines:
    """The `on_bad_line` of the readers: counts every bad line and logs a warning for the first few.

    Args:
        removed: Counter to which the lines are added.
    """

    def __init__(self, removed):
        self._removed, self._shown = removed, set()

    def __call__(self, message):
        """Counts a line; `message` says which one it is and what is wrong with it."""
        self._removed[REASON] += 1
        if message not in self._shown and len(self._shown) < _SHOWN:  # files are read more than once
            self._shown.add(message)
            _LOGGER.warning(f"{message} Left out.")
            if len(self._shown) == _SHOWN:
                _LOGGER.warning("further lines that are left out are counted alone")
