"""The first signal is an event; the second one is what it would be without us."""
# Nearest tests of: t2t_lite/cli/console.py

import os
import signal

import pytest

from t2t_lite.cli.console import stop_on_signal

KINDS = [signal.SIGINT, signal.SIGTERM]
ASKING = [signal.SIGHUP, signal.SIGUSR1]


@pytest.fixture(autouse=True)
def as_usual():
    """All have their usual effect, though these tests may run under nohup or in the background of a shell."""
    usual = {number: signal.SIG_DFL for number in [*KINDS, *ASKING]} | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.few("15-2", "15-15", "2-2", "2-15")
@pytest.mark.parametrize("first", [*KINDS, *ASKING])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once(first, second):
    child = os.fork()
    if child == 0:  # no TensorFlow in it: it ends below in any case
        try:
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
    """As while C++ runs: Python sees both when it is back, in an order that POSIX leaves open."""
    child = os.fork()
    if child == 0:
        try:
            with stop_on_signal():
                signal.pthread_sigmask(signal.SIG_BLOCK, KINDS)
                for number in KINDS:
                    os.kill(os.getpid(), number)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, KINDS)
        except KeyboardInterrupt:
            os._exit(130)
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(1)  # never back into pytest, which would wait for threads that the child lacks
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (-signal.SIGTERM, 130)
    assert capfd.readouterr().err == ""


def test_the_first_signal_is_told_at_once_and_handlers_are_as_they_were_afterwards():
    told, before = [], [signal.getsignal(number) for number in KINDS]
    with stop_on_signal(lambda: told.append(1)) as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
    assert told == [1] and stopped.is_set()
    assert [signal.getsignal(number) for number in KINDS] == before


@pytest.mark.parametrize("kind", ASKING)
def test_a_terminal_that_closes_and_a_batch_system_ask_as_often_as_they_like(kind):
    ended = []
    with stop_on_signal(at_second=lambda: ended.append(1)) as stopped:
        os.kill(os.getpid(), kind)
        assert stopped.is_set()
        os.kill(os.getpid(), kind)
    assert not ended and signal.getsignal(kind) == signal.SIG_DFL


def test_what_the_parent_ignores_is_ignored():
    """As under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_on_signal() as stopped:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not stopped.is_set()
