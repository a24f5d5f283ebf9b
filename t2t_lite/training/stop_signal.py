"""Ends a run cleanly when the machine is preempted or the user interrupts it."""

import logging
import signal
import threading

_LOGGER = logging.getLogger("t2t_lite")


class stop_on_signal:
    """Context manager that turns SIGTERM and SIGINT into an event; a second signal has its usual effect."""

    def __enter__(self):
        self._stopped, self._before = threading.Event(), {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._handle)
        return self._stopped

    def _handle(self, *_):
        self._stopped.set()
        self._restore()
        _LOGGER.info("signal received: saving a checkpoint and stopping; once more stops at once.")

    def __exit__(self, *_):
        self._restore()

    def _restore(self):
        for number, handler in self._before.items():
            signal.signal(number, handler)
