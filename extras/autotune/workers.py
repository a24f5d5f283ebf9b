"""Runs several processes of a search on one machine."""

import contextlib
import logging
import os
import signal
import subprocess
import time

from t2t_lite.cli.console import stop_on_signal
from t2t_lite.errors import Failure, UserError, counted

_LOGGER = logging.getLogger("t2t_lite")


def shares_of_gpus(workers, gpus_each, visible):
    """Returns the `CUDA_VISIBLE_DEVICES` of each worker, a list of str, or of None if there are no GPUs.

    Args:
        workers: int.
        gpus_each: int, the number of GPUs per trial.
        visible: list of str, the GPUs of this process; [] on the CPU, where the workers share the cores.

    Raises:
        UserError: there are GPUs, but too few.
    """
    if not visible or not gpus_each:
        return [None] * workers
    if workers * gpus_each > len(visible):
        raise UserError(
            f"--autotune_parallel_trials={workers}: {counted(workers * gpus_each, 'GPU')} are needed, {gpus_each} for "
            f"each trial, and {len(visible)} visible. Expected at most {len(visible) // gpus_each}."
        )
    return [",".join(visible[at * gpus_each : (at + 1) * gpus_each]) for at in range(workers)]


def run_workers(command, shares, output_dir):
    """Runs copies of a command at the same time, with output to `<output_dir>/worker-<n>.log`.

    A signal is passed on to all copies, so that each saves a checkpoint and stops. A second signal kills them all, as
    does an error in this process.

    Args:
        command: list of str.
        shares: list of `CUDA_VISIBLE_DEVICES`, as `shares_of_gpus` returns it.
        output_dir: str.

    Returns:
        bool, False after a signal.

    Raises:
        UserError, Failure: a copy has failed with the exit status of such an error.
    """
    workers = []
    with contextlib.ExitStack() as stack:
        stopped = stack.enter_context(_passing_signals_on(workers, _say_that_it_stops))
        logs = [os.path.join(output_dir, f"worker-{number}.log") for number in range(1, len(shares) + 1)]
        for path, share in zip(logs, shares, strict=True):
            environment = os.environ | ({} if share is None else {"CUDA_VISIBLE_DEVICES": share})
            log = stack.enter_context(open(path, "ab"))
            # In its own session: otherwise the terminal's Ctrl-C would reach it in addition to the signal passed on.
            worker = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            workers.append(worker)
        _LOGGER.info(f"{counted(len(workers), 'worker')}: see {', '.join(logs)}")
        if _wait(workers, stopped):
            return False
    for worker, path in zip(workers, logs, strict=True):
        if worker.returncode:
            kind = UserError if worker.returncode == 2 else Failure
            raise kind(f"{path}: a worker has failed, with exit status {worker.returncode}: {_last_line(path)}")
    return True


def run_alone(command):
    """Runs a command in a process, passes signals on like `run_workers`, and returns its exit status."""
    workers = []
    with _passing_signals_on(workers) as stopped:
        workers.append(worker := subprocess.Popen(command, start_new_session=True))
        _wait(workers, stopped)
    return worker.returncode if worker.returncode >= 0 else 128 - worker.returncode  # as in shells for a signal


@contextlib.contextmanager
def _passing_signals_on(workers, then=lambda: None):
    """`stop_on_signal` for a list of processes that may still grow; none of them outlives the context."""

    def end():
        for worker in workers:
            worker.kill()  # has no effect after its end

    with stop_on_signal(then, at_second=end) as stopped:
        try:
            yield stopped
        finally:
            end()


def _say_that_it_stops():
    _LOGGER.info("signal received: each worker saves a checkpoint and stops; a second SIGTERM or Ctrl-C stops at once.")


def _wait(workers, stopped):
    """Waits for all and passes on the first signal, which sets the event `stopped`; returns whether there was one."""
    was_stopped = False
    while any(worker.poll() is None for worker in workers):
        if stopped.is_set() and not was_stopped:
            was_stopped = True
            for worker in workers:
                worker.send_signal(signal.SIGTERM)  # has no effect after its end
        time.sleep(0.1)
    return stopped.is_set()  # even if it arrived just after all had ended


def _last_line(path):
    with open(path, "rb") as file:
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it has printed nothing")
