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
    """

    def __init__(self, title, unit, total=None):
        self.count = 0
        self._total = "" if total is None else f" of {total:,}"
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

    def add(self, count):
        """Counts more that is done."""
        self.count += count
        self._show()

    def _show(self):
        now = time.monotonic()
        if now - self._shown >= (0.2 if self._on_terminal else 10):
            self._shown = now
            if self._on_terminal:
                print(f"\r{self._line()}\033[K", end="", file=sys.stderr, flush=True)
            else:
                _LOGGER.info(self._line())

    def _line(self):
        seconds = max(time.monotonic() - self._start, 1e-3)
        return f"{self.title}: {self.count:,}{self._total} {self._unit}, {self.count / seconds:,.0f} a second"

    def done(self):
        """Leaves a last, plain line."""
        if self._on_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        _LOGGER.info(self._line())
