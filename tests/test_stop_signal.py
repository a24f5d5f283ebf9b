"""The first signal is an event; the second one is what it would be without us."""

import os
import signal

import pytest

from t2t_lite.stop_signal import stop_on_signal

KINDS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once(first, second):
    child = os.fork()
    if child == 0:  # no TensorFlow in it: it ends below in any case
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with stop_on_signal() as stopped:
                os.kill(os.getpid(), first)
                if stopped.is_set():
                    os.kill(os.getpid(), second)
        except KeyboardInterrupt:
            os._exit(130)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == (130 if second == signal.SIGINT else -signal.SIGTERM)


def test_two_signals_that_come_together_are_two(capfd):
    """As while C++ runs: Python sees both when it is back."""
    child = os.fork()
    if child == 0:
        with stop_on_signal():
            signal.pthread_sigmask(signal.SIG_BLOCK, KINDS)
            for number in KINDS:
                os.kill(os.getpid(), number)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, KINDS)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
    assert capfd.readouterr().err == ""


def test_the_first_signal_is_told_at_once():
    told = []
    with stop_on_signal(lambda: told.append(1)) as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
    assert told == [1] and stopped.is_set()


def test_handlers_are_as_they_were_afterwards():
    before = [signal.getsignal(number) for number in KINDS]
    with stop_on_signal() as stopped:
        assert [signal.getsignal(number) for number in KINDS] != before
    assert [signal.getsignal(number) for number in KINDS] == before and not stopped.is_set()
