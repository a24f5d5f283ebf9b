"""Runs several worker processes of a search on one machine."""

import contextlib
import os
import signal
import subprocess
import time

from t2t_lite.cli.console import stop_on_signal
from t2t_lite.errors import LOGGER, Failure, UserError, counted


def shares_of_gpus(workers, gpus_each, visible):
    """Returns the `CUDA_VISIBLE_DEVICES` of each worker, a list of str; a list of None if there are no GPUs.

    Args:
        workers: int, the number of workers.
        gpus_each: int, the number of GPUs per trial.
        visible: list of str, the GPUs that this process sees. If there are none, the workers share the cores of the
            CPU.

    Raises:
        UserError: there are GPUs, but not enough of them.
    """
    if not visible or not gpus_each:
        return [None] * workers
    if workers * gpus_each > len(visible):
        raise UserError(
            f"--autotune_parallel_trials={workers} needs {counted(workers * gpus_each, 'GPU')}, {gpus_each} per trial, "
            f"but {len(visible)} are visible. Expected at most {len(visible) // gpus_each}."
        )
    return [",".join(visible[at * gpus_each : (at + 1) * gpus_each]) for at in range(workers)]


def run_workers(command, shares, output_dir):
    """Runs copies of a command at the same time. Each copy writes its output to `<output_dir>/worker-<n>.log`.

    A signal is passed on to all copies, so that each copy saves a checkpoint and stops. A second signal or an error in
    this process kills all copies.

    Args:
        command: list of str.
        shares: list of `CUDA_VISIBLE_DEVICES` for the copies, as returned by `shares_of_gpus`.
        output_dir: str.

    Returns:
        bool, False after a signal.

    Raises:
        UserError, Failure: a copy has failed; its exit status decides which of the two is raised.
    """
    workers = []
    with contextlib.ExitStack() as stack:
        stopped = stack.enter_context(_passing_signals_on(workers, _say_that_it_stops))
        logs = [os.path.join(output_dir, f"worker-{number}.log") for number in range(1, len(shares) + 1)]
        for path, share in zip(logs, shares, strict=True):
            environment = os.environ | ({} if share is None else {"CUDA_VISIBLE_DEVICES": share})
            log = stack.enter_context(open(path, "ab"))
            # A worker has its own session. Otherwise it would receive the terminal's Ctrl-C in addition to our signal.
            worker = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            workers.append(worker)
        LOGGER.info(f"{counted(len(workers), 'worker')}: see {', '.join(logs)}")
        if _wait(workers, stopped):
            return False
    for worker, path in zip(workers, logs, strict=True):
        if worker.returncode:
            kind = UserError if worker.returncode == 2 else Failure
            raise kind(f"{path}: a worker has failed with exit status {worker.returncode}: {_last_line(path)}")
    return True


def run_alone(command):
    """Runs a command in a process, passes signals on like `run_workers`, and returns the exit status."""
    workers = []
    with _passing_signals_on(workers) as stopped:
        workers.append(worker := subprocess.Popen(command, start_new_session=True))
        _wait(workers, stopped)
    return worker.returncode if worker.returncode >= 0 else 128 - worker.returncode  # 128 + signal, as in shells


@contextlib.contextmanager
def _passing_signals_on(workers, then=lambda: None):
    """Like `stop_on_signal`, but for a growing list of worker processes, which are all killed at the end."""

    def end():
        for worker in workers:
            worker.kill()  # has no effect after the worker has ended

    with stop_on_signal(then, at_second=end) as stopped:
        try:
            yield stopped
        finally:
            end()


def _say_that_it_stops():
    LOGGER.info("Signal received: each worker saves a checkpoint and stops. A second signal stops them immediately.")


def _wait(workers, stopped):
    """Waits for all workers, stops them when the event `stopped` is set, and returns whether it was set."""
    was_stopped = False
    while any(worker.poll() is None for worker in workers):
        if stopped.is_set() and not was_stopped:
            was_stopped = True
            for worker in workers:
                worker.send_signal(signal.SIGTERM)  # has no effect after the worker has ended
        time.sleep(0.1)
    return stopped.is_set()  # True even if the signal came just after all workers had ended


def _last_line(path):
    with open(path, "rb") as file:
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")
