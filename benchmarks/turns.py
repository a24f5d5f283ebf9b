"""Lets processes take turns, so that a machine whose speed drifts treats all sides alike."""

import json
import os
import platform
import statistics
import subprocess
import sys


def take_turns(commands, rounds):
    """Starts a process a side and lets them take turns; prints what each says when it is warm, and every turn.

    A process prints a line when it is warm, then for each line of its standard input one JSON object of figures.

    Args:
        commands: {side: list of str}.
        rounds: int.

    Returns:
        {side: [figures of each turn]}.
    """
    processes, turns = {}, {side: [] for side in commands}
    for side, command in commands.items():
        processes[side] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        line = processes[side].stdout.readline().strip()
        if not line:
            sys.exit(f"{side} did not start: {' '.join(command)}")
        print(line, flush=True)
    for _ in range(rounds):
        for side, process in processes.items():
            process.stdin.write("\n")
            process.stdin.flush()
            turns[side].append(json.loads(process.stdout.readline()))
        print(json.dumps({side: figures[-1] for side, figures in turns.items()}), flush=True)
    for process in processes.values():
        process.stdin.close()
        process.wait()
    return turns


def summary(turns, key):
    """Returns {key: medians by side, "<first> over": medians of the ratios of neighbouring turns}."""
    first, *others = turns
    medians = {side: round(statistics.median(turn[key] for turn in turns[side]), 1) for side in turns}
    ratios = {
        side: round(statistics.median(a[key] / b[key] for a, b in zip(turns[first], turns[side], strict=True)), 3)
        for side in others
    }
    return {key: medians, f"{first} over": ratios}


def resident_bytes():
    """Returns how much memory the process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def machine():
    """Returns what the figures were measured on."""
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
