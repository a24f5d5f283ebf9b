"""SIGTERM and Ctrl-C as an event, for commands that end in their own time."""

import contextlib
import signal
import threading


@contextlib.contextmanager
def stop_on_signal(then=lambda: None):
    """Context in which the first SIGTERM or SIGINT sets the event that it yields; a second one has its usual effect.

    In another thread than the main one, which alone gets signals, nothing sets it.

    Args:
        then: a function without arguments, called at the first signal.
    """
    stopped, before = threading.Event(), {}

    def handle(number, _):
        if not stopped.is_set():
            stopped.set()
            then()
            return
        # Only now: of two signals that come while C++ runs, Python would drop the second one if it had no handler.
        signal.signal(number, before[number])
        signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, handle)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
