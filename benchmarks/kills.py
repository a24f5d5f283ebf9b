"""Kills a training run at random moments, restarts it each time, and compares it with an uninterrupted run.

python -m benchmarks.kills
python -m benchmarks.kills --replicas=8 --kills=20 --steps=200 --seed=1

The model is tiny. Dropout, BPE-dropout, shuffling and evaluation with beam search are enabled, and a checkpoint is
saved every 10 steps. Processes are killed with SIGKILL at random steps, each at one of four moments: at any time near
the step, while the next checkpoint is being written, during the evaluation after the checkpoint, or while the restarted
process is still starting. What the process was really doing is determined from the files that it left. At the end, the
weights, the optimizer, the counters and the evaluations are compared bit for bit with those of the uninterrupted run.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from benchmarks.harness import work
from benchmarks.harness.command import main

TITLE = "Training that is killed at random moments against uninterrupted training"
SIDES = {"whole": "never killed", "killed": "killed and restarted"}
NEEDS = {}
EVERY = 10
MOMENTS = ("anywhere", "in a save", "in an evaluation", "at the start")
HPARAMS = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,max_length=64,"
    "learning_rate_warmup_steps=50,layer_prepostprocess_dropout=0.2,attention_dropout=0.1,bpe_dropout=0.1,"
    "eval_decode_examples=4,eval_beam_size=2"
)


def command(folder, output_dir, steps, replicas):
    """Returns the trainer's command, a list of words."""
    return [
        work.installed("t2t-trainer"),
        "--problem=translate_ende_phrasebook",
        "--hparams_set=transformer_tiny",
        f"--hparams={HPARAMS}",
        f"--data_dir={folder}/data",
        f"--output_dir={output_dir}",
        f"--train_steps={steps}",
        f"--local_eval_frequency={EVERY}",
        "--eval_steps=2",
        "--keep_checkpoint_max=3",
        "--log_step_count_steps=1",
        *([f"--logical_cpus={replicas}"] if replicas > 1 else []),
    ]


class Run:
    """Observes an output_dir from another process."""

    def __init__(self, output_dir):
        self.output_dir = output_dir

    def events(self):
        """Returns the events in train.log, without a line that is still being written."""
        path = self.output_dir / "train.log"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]

    def unlisted(self, since):
        """Returns the steps of checkpoint files newer than `since` (s) that the list of checkpoints lacks."""
        steps = set()
        for entry in os.scandir(self.output_dir) if self.output_dir.exists() else []:
            match = re.match(r"model\.ckpt-(\d+)[._]", entry.name)
            with contextlib.suppress(FileNotFoundError):
                if match and entry.stat().st_mtime >= since:
                    steps.add(int(match[1]))
        listed = self.output_dir / "checkpoint"
        text = listed.read_text() if listed.exists() else ""
        return steps - set(map(int, re.findall(r'all_model_checkpoint_paths: "model\.ckpt-(\d+)"', text)))

    def state(self, step):
        """Returns {name: array} of all variables in a checkpoint, without the iterator's state."""
        import tensorflow as tf

        reader = tf.train.load_checkpoint(str(self.output_dir / f"model.ckpt-{step}"))
        prefixes = ("model/", "trained/", "optimizer/", "step/", "batches_read/")
        return {
            name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name.startswith(prefixes)
        }


def is_due(run, moment, step, begun, since):
    """Returns whether to kill the process now. It was started at the time `since`, when the log had `begun` events."""
    if moment == "in a save":
        return any(number >= step for number in run.unlisted(since))
    new = run.events()[begun:]
    if moment == "in an evaluation":
        return any(event["event"] == "checkpoint" and event["step"] >= step for event in new)
    return any(event["event"] == "progress" and event["step"] >= step for event in new)


def start_and_kill(words, log, run, moment, step, draw):
    """Starts the trainer and kills it at `moment`; returns what it was doing then, or None if it had already ended."""
    begun, since = len(run.events()), time.time()
    process = train(words, log)
    if moment == "at the start":
        time.sleep(draw.uniform(0, 15))
    else:
        while process.poll() is None and not is_due(run, moment, step, begun, since):
            time.sleep(0.0005 if moment == "in a save" else 0.01)
        time.sleep({"in a save": 0.002, "in an evaluation": 0.5}.get(moment, 0.1) * draw.random())
    process.send_signal(signal.SIGKILL)
    if process.wait() != -signal.SIGKILL:
        return None
    new = run.events()[begun:]
    if run.unlisted(since):
        return "in a save"
    if not new or new[-1]["event"] in ("start", "resume"):
        return "before its first step"
    return "in an evaluation" if new[-1]["event"] == "checkpoint" else "between"


def last_step(run):
    """Returns the last step in train.log."""
    return max((event["step"] for event in run.events()), default=0)


def evaluations(run):
    """Returns {step: metrics} of the last evaluation of each step."""
    return {
        event["step"]: {name: value for name, value in event.items() if name not in ("time", "seconds")}
        for event in run.events()
        if event["event"] == "evaluation"
    }


def train(words, log):
    """Starts the trainer, with stderr written to `log`."""
    return subprocess.Popen(words, stderr=log, stdout=subprocess.DEVNULL)


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)


def measure(result, flags):
    """Trains without and with kills, and compares the two runs."""
    kills, steps = (1, 20) if flags.quick else (flags.kills, flags.steps)
    draw, folder = random.Random(flags.seed), pathlib.Path(flags.bench_dir, "kills")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = ["--problem=translate_ende_phrasebook", "--max_cases=2000", f"--data_dir={folder}/data"]
    subprocess.run([work.installed("t2t-datagen"), *words], check=True, stderr=subprocess.DEVNULL)
    reference, killed = Run(folder / "whole"), Run(folder / "killed")
    begin = time.monotonic()
    with open(folder / "stderr.log", "a") as log:
        if train(command(folder, reference.output_dir, steps, flags.replicas), log).wait():
            raise RuntimeError(f"the run without kills failed; see {log.name}")
        seconds = time.monotonic() - begin
        moments = [MOMENTS[number % len(MOMENTS)] for number in range(kills)]
        draw.shuffle(moments)
        at = sorted(draw.randrange(1, steps - EVERY) for _ in moments)
        words = command(folder, killed.output_dir, steps, flags.replicas)
        states = collections.Counter()
        for number, (moment, step) in enumerate(zip(moments, at, strict=True), 1):
            was = start_and_kill(words, log, killed, moment, step, draw)
            if was is None:
                raise RuntimeError(f"kill {number}: the run had already ended. Increase --steps or reduce --kills")
            states[was] += 1
            print(f"kill {number} of {kills}, planned {moment}, found {was}: step {last_step(killed)}", file=sys.stderr)
        if train(words, log).wait():
            raise RuntimeError(f"the killed run failed; see {log.name}")
    seconds = {"whole": [seconds], "killed": [time.monotonic() - begin - seconds]}
    report(result, f"{steps} steps, {flags.replicas} replicas", reference, killed, steps, states, seconds)


def report(result, case, reference, killed, steps, states, seconds):
    """Adds the comparison of the two runs to the result."""
    import numpy as np

    expected, actual = reference.state(steps), killed.state(steps)
    differ = [name for name in sorted({*expected, *actual}) if not np.array_equal(expected.get(name), actual.get(name))]
    first, second = evaluations(reference), evaluations(killed)
    evaluated = [step for step in {*first, *second} if first.get(step) != second.get(step)]
    result.add(case, "kills", {"whole": [0], "killed": [states.total()]})
    result.add(case, "differing_variables", {"killed": [len(differ)]})
    result.add(case, "differing_evaluations", {"killed": [len(evaluated)]})
    result.add(case, "seconds", seconds)
    numbers = sum(np.size(value) for value in expected.values())
    moments = ", ".join(f"{was} {count}" for was, count in states.items())
    result.notes.append(
        f"Killed: {moments}. Compared: {len(expected)} variables with {numbers:,} numbers, {len(first)} evaluations."
    )


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
