"""The first signal is an event; the second one is what it would be without us."""

import os
import signal

import pytest

from t2t_lite.training.loop import stop_on_signal


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


def test_handlers_are_as_they_were_afterwards():
    numbers = signal.SIGTERM, signal.SIGINT
    before = [signal.getsignal(number) for number in numbers]
    with stop_on_signal() as stopped:
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before and not stopped.is_set()
