"""Lets processes take turns, so that drifts in the machine's speed affect all sides equally."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]  # the folder in which `python -m benchmarks.NAME` finds the module


def take_turns(commands, rounds):
    """Starts one process per side and lets them take turns; a side that cannot start is reported and skipped.

    A process prints a line when it is warm, and then one JSON object of figures for each line of its standard input, as
    `answer_turns` does.

    Args:
        commands: {side: command, a list of str}.
        rounds: int.

    Returns:
        ({side: [figures of each turn]}, {side: seconds until warm}, {side: why the side was skipped}).
    """
    turns, ready, missing, processes = {}, {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for side, command in commands.items():
                started, log = time.perf_counter(), os.path.join(folder, f"{side}.log")
                processes[side] = _start(command, log)
                if _read(processes[side]) is None:
                    missing[side] = f"its process ended before it was warm: {last_line(log)}"
                    _end(processes.pop(side))
                    print(f"  {side}: left out, {missing[side]}", file=sys.stderr, flush=True)
                else:
                    ready[side], turns[side] = round(time.perf_counter() - started, 2), []
            for number in range(rounds):
                for side in [*processes]:
                    processes[side].stdin.write("\n")
                    processes[side].stdin.flush()
                    figures = _read(processes[side])
                    if figures is None:
                        missing[side] = f"its process ended in turn {number + 1}: {last_line(f'{folder}/{side}.log')}"
                        _end(processes.pop(side))
                        del turns[side], ready[side]
                    else:
                        turns[side].append(figures)
                last = {side: figures[-1] for side, figures in turns.items()}
                print(f"  turn {number + 1} of {rounds}: {json.dumps(last)}", file=sys.stderr, flush=True)
        finally:
            for process in processes.values():
                _end(process)
    return turns, ready, missing


def answer_turns(work, unit="tokens", facts=None):
    """Reports that this process is warm. Then runs `work` once for each line of standard input and prints the rates.

    Args:
        work: function without arguments that returns the number of units that it processed, or a dict of figures.
        unit: str, the unit that is counted; "<unit>_per_second" must be a key of `record.FIGURES`.
        facts: dict of figures that every turn repeats, or None.
    """
    print(json.dumps({"warm": True}), flush=True)
    for _ in sys.stdin:
        cpu, started = time.process_time(), time.perf_counter()
        result = work()
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        figures = result if isinstance(result, dict) else rates(result, seconds, cpu, unit)
        print(json.dumps({**figures, "peak_mb": round(peak_mb(), 1), **(facts or {})}), flush=True)


def rates(count, seconds, cpu, unit="tokens"):
    """Returns the rates per second and per second of CPU time."""
    return {f"{unit}_per_second": round(count / seconds, 3), f"{unit}_per_cpu_second": round(count / cpu, 3)}


def run_alone(command):
    """Runs a process whose last line is a JSON object, and returns the object. Raises `RuntimeError` on failure."""
    process = subprocess.run(
        command, capture_output=True, text=True, env=_environment(), stdin=subprocess.DEVNULL, cwd=ROOT
    )
    if process.returncode:
        lines = process.stderr.strip().splitlines()
        raise RuntimeError(f"{' '.join(command)}: {lines[-1] if lines else f'status {process.returncode}'}")
    return json.loads(process.stdout.splitlines()[-1])


def resident_mb(pid="self"):
    """Returns how much resident memory a process has now, in MB."""
    return _status(pid, "VmRSS")


def peak_mb(pid="self"):
    """Returns the peak resident memory of a process, in MB.

    getrusage's figure is not used, because it also includes the peak of the parent process.
    """
    return _status(pid, "VmHWM")


def _status(pid, name):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 / 1e6 for line in file if line.startswith(name))


def _environment():
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}


def _start(command, log):
    with open(log, "w") as errors:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_environment(),
            cwd=ROOT,
        )


def _read(process):
    """Returns the next JSON object that a process prints, or None if the process has ended."""
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    return None


def _end(process):
    process.stdin.close()
    process.wait()


def last_line(log):
    """Returns the last nonblank line of a process's log."""
    with open(log, errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return lines[-1] if lines else "it printed nothing"
