"""Signals that end a process as an event, for commands that end in their own time."""

import contextlib
import signal
import threading

_ENDING = (signal.SIGTERM, signal.SIGINT)
# SIGHUP comes when a terminal is closed, often from shell and system at once; SIGUSR1 comes from batch systems before a
# job's time is over. They ask for an end, and never force it. Where the parent ignores them, as nohup does, so do we.
_ASKING = (signal.SIGHUP, signal.SIGUSR1)


@contextlib.contextmanager
def stop_on_signal(then=lambda: None, at_second=lambda: None):
    """Context in which the first SIGTERM, SIGINT, SIGHUP or SIGUSR1 sets the event that it yields.

    A second one, if it is SIGTERM or SIGINT, has its usual effect. In another thread than the main one, which alone
    gets signals, nothing sets the event.

    Args:
        then: a function without arguments, called at the first signal.
        at_second: likewise, called at the second one, before it has its effect.
    """
    stopped, before = threading.Event(), {}

    def handle(number, _):
        if not stopped.is_set():
            stopped.set()
            then()
            return
        if number in _ASKING:
            return
        at_second()
        # Only now: of two signals that come while C++ runs, Python would drop the second one if it had no handler.
        signal.signal(number, before[number])
        signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        asking = [number for number in _ASKING if signal.getsignal(number) != signal.SIG_IGN]
        for number in (*_ENDING, *asking):
            # Of a handler that C installed, which Python cannot put back, None is said.
            before[number] = signal.signal(number, handle) or signal.SIG_DFL
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
