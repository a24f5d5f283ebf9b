"""Shows progress on stderr: a line rewritten in place on a terminal, an occasional plain line elsewhere."""

import contextlib
import logging
import os
import re
import sys
import threading
import time

from t2t_lite.cli import streams
from t2t_lite.errors import counted

_LOGGER = logging.getLogger("t2t_lite")
_COLUMNS = 80  # where neither the terminal nor COLUMNS tells
SECONDS = 10  # without a plain line


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
    """Writes the moving line anew, where there is one: see `streams.has_moving_line`."""
    with contextlib.suppress(OSError):  # a terminal that was closed: the work has yet to be saved
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def waiting(text):
    """Context manager that announces slow work: on a terminal at once, in the moving line; elsewhere after a while."""
    moves, timer = streams.has_moving_line(), threading.Timer(SECONDS, _LOGGER.info, [text])
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
        self._on_terminal = streams.has_moving_line()
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
