"""A moving line on a terminal, now and then a plain line elsewhere."""

import logging
import sys
import time

_LOGGER = logging.getLogger("t2t_lite")


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
        self._on_terminal = sys.stderr.isatty()

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
        if now - self._shown >= (0.2 if self._on_terminal else 10):
            self._shown = now
            if self._on_terminal:
                print(f"\r{self._line()}\033[K", end="", file=sys.stderr, flush=True)
            else:
                _LOGGER.info(self._line())

    def _line(self, is_last=False):
        seconds = max(time.monotonic() - self._start, 1e-3)
        rate = (self.count - self._before) / seconds
        line = f"{self.title}: {self.count:,}{'' if self._total is None else f' of {self._total:,}'} {self._unit}"
        line += f", {rate:,.{1 if 0 < rate < 10 else 0}f} a second"
        if self.tokens:
            line += f", {self.tokens / seconds:,.0f} tokens per second"
        if self._total and rate and self.count < self._total and not is_last:
            line += f", ETA {clock((self._total - self.count) / rate)}"
        return line

    def done(self):
        """Leaves a last, plain line."""
        if self._on_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        _LOGGER.info(self._line(is_last=True))


def table(rows):
    """Returns rows of str as lines of text: columns to the right, two blanks between them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def clock(seconds):
    """Returns seconds as 3:20, or 2:05:00."""
    seconds = int(seconds)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02d}:{seconds % 60:02d}" if hours else f"{minutes}:{seconds % 60:02d}"
