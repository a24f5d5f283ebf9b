"""Creates, once per folder, the inputs that benchmarks share: texts of natural lengths, and a model trained on them.

Each line has one to five sentences of the phrasebook, sampled so that lengths vary as in a real corpus (about 8 to 70
pieces). Nothing is downloaded. With `--run` and `--text`, some benchmarks use your own model and text.
"""

import concurrent.futures
import os
import pathlib
import queue
import random
import shlex
import subprocess
import sys

from benchmarks.harness.turns import ROOT
from t2t_lite.errors import UserError

_SIZES = {"train": 40_000, "dev": 200, "test": 1_000}  # lines
VOCAB_SIZE = 4_000
PROBED = 200  # number of steps that are timed to find how many steps a run can take
# The shares of lines that have one, two … five sentences.
_SHARES = (0.3, 0.3, 0.2, 0.12, 0.08)
# As `decoding.SIZES` requires: hidden size 128, 3 + 3 layers. Pre-norm, like most models, except for Marian
# (post-norm).
_HPARAMS = (
    "num_hidden_layers=3,learning_rate_warmup_steps=200,eval_decode_examples=0,attention_dropout=0,relu_dropout=0"
)
_NORM = {
    "pre": "layer_preprocess_sequence=n,layer_postprocess_sequence=da",
    "post": "layer_preprocess_sequence=none,layer_postprocess_sequence=dan",
}


def texts(folder):
    """Returns {"train.en": path, …} for train, dev and test in English and German; writes missing files."""
    os.makedirs(folder, exist_ok=True)
    paths = {f"{split}.{side}": os.path.join(folder, f"{split}.{side}") for split in _SIZES for side in ("en", "de")}
    if not all(map(os.path.exists, paths.values())):
        # This runs in a separate process, because a process that uses TensorFlow would pass its peak memory on to its
        # children.
        subprocess.run([sys.executable, "-m", "benchmarks.harness.work", folder], check=True, cwd=ROOT)
    return paths


def write_texts(folder):
    """Writes the texts of all splits in both languages."""
    from t2t_lite import registry

    problem = registry.problem("translate_ende_phrasebook")
    pairs = [(example["inputs"], example["targets"]) for example in problem.generate_samples(folder, folder, "train")]
    draw = random.Random(1)
    for split, count in _SIZES.items():
        lines = []
        for number in draw.choices(range(1, 6), _SHARES, k=count):
            sentences = draw.choices(pairs, k=number)
            lines.append([" ".join(text.strip() for text in side) for side in zip(*sentences, strict=True)])
        for at, side in enumerate(("en", "de")):
            write_lines(os.path.join(folder, f"{split}.{side}"), (line[at] for line in lines))


def add_flags(parser):
    """Adds the flags of benchmarks that need a trained model."""
    parser.add_argument("--run", help="a trained run or checkpoint; default: train a run for --steps steps")
    parser.add_argument("--text", help="file of source sentences to use; default: sentences of the phrasebook")
    parser.add_argument("--reference", help="translations of --text")
    parser.add_argument("--steps", type=int, default=300, help="number of training steps if --run is not set")


def model_and_texts(flags, norm="pre"):
    """Returns (run, path of source sentences, path of translations), which the flags name or which are created here."""
    run = flags.run or trained_run(flags.bench_dir, 10 if flags.quick else flags.steps, norm)
    paths = texts(flags.bench_dir)
    return run, flags.text or paths["test.en"], flags.reference or paths["test.de"]


def data_dir(folder):
    """Returns the folder of records of `texts` for the problem translate_own; generates missing records."""
    paths, path = texts(folder), os.path.join(folder, "data")
    splits = [f"--{split}_files={paths[f'{split}.en']},{paths[f'{split}.de']}" for split in _SIZES]
    once(path, "t2t-datagen", "--problem=translate_own", f"--data_dir={path}", f"--vocab_size={VOCAB_SIZE}", *splits)
    return path


def trained_run(folder, steps, norm="pre"):
    """Trains a small model (3 + 3 layers of hidden size 128), unless an earlier call did; returns the run's folder."""
    path = os.path.join(folder, f"run-{norm}-{steps}")
    once(
        path, "t2t-trainer", "--problem=translate_own", f"--data_dir={data_dir(folder)}", f"--output_dir={path}",
        "--hparams_set=transformer_quickstart", f"--hparams={_HPARAMS},{_NORM[norm]}", f"--train_steps={steps}",
    )  # fmt: skip
    return path


def logged(run, event, log="train.log"):
    """Returns those lines of a run's log, as dicts, whose event is `event`, such as "evaluation"."""
    from t2t_lite.runs.log import read_lines  # not at the top, because it imports TensorFlow

    return [line for line in read_lines(os.path.join(run, log)) if line["event"] == event]


def add_training_flags(parser, minutes=None):
    """Adds the flags of benchmarks that train many models; if `minutes` is given, also those for `steps_within`."""
    if minutes is not None:
        parser.add_argument("--minutes", type=float, default=minutes, help="training time per run")
        parser.add_argument("--steps", type=_numbers, help="steps per run, or one number per side; replaces --minutes")
        parser.add_argument("--seeds", default="1", help="random seeds of the runs, such as 1,2,3")
    parser.add_argument("--jobs", type=int, default=1, help="number of runs to train concurrently")
    parser.add_argument(
        "--trainer_flags", type=str.split, default=[], help="additional flags for t2t-trainer, such as '--xla_compile'"
    )


def at_once(flags, function, items):
    """Returns [function(item) for item in items]; --jobs calls run at the same time.

    The CPUs are divided equally among the jobs, so the processes of a job do not slow down other jobs.
    """
    cpus, shares = sorted(os.sched_getaffinity(0)), queue.SimpleQueue()
    for job in range(flags.jobs):
        shares.put(cpus[job :: flags.jobs] or cpus)

    def take_share():
        os.sched_setaffinity(0, shares.get())

    with concurrent.futures.ThreadPoolExecutor(flags.jobs, initializer=take_share) as pool:
        return list(pool.map(function, items))


def _numbers(text):
    return [*map(int, text.split(","))]


def steps_within(flags, runs, trained, kind):
    """Returns {kind: number of steps that runs can take in --minutes}, or --steps, or 4 with --quick.

    The number is at least `PROBED`. The time per step is that of the fastest part of a short run, because other
    programs on the machine can only make parts slower.

    Args:
        flags: the command line's flags.
        runs: list of descriptions of runs to train.
        trained: function (run, number of steps) that trains a run and returns its folder.
        kind: function that maps a run to a tuple beginning with its side; runs of one kind get the same number of
            steps.

    Raises:
        UserError: --steps has neither one number nor one number per side.
    """
    if told := [4] if flags.quick else flags.steps:
        if len(told) not in (1, len(flags.sides)):
            raise UserError(
                f"--steps: received {len(told)} numbers. Expected one, or {len(flags.sides)}, one per side."
            )
        by_side = dict(zip(flags.sides, told if len(told) > 1 else told * len(flags.sides), strict=True))
        return {kind(run): by_side[kind(run)[0]] for run in runs}
    one_of = {kind(run): run for run in runs}
    probes = at_once(flags, lambda run: trained(run, PROBED), one_of.values())
    seconds = [min(line["seconds_per_step"] for line in logged(probe, "progress")) for probe in probes]
    return {one: max(PROBED, int(60 * flags.minutes / each)) for one, each in zip(one_of, seconds, strict=True)}


def once(path, command, *words):
    """Runs a command of the package unless an earlier call succeeded. If one was interrupted, it may be resumed.

    Raises:
        UserError: the earlier call had other words, such as other texts or flags.
        RuntimeError: the command failed.
    """
    marker, line = pathlib.Path(f"{path}.done"), shlex.join(map(str, [command, *words]))
    if not marker.exists():
        done = subprocess.run([installed(command), *words], stdout=subprocess.DEVNULL)
        if done.returncode:
            raise RuntimeError(f"{path}: {command} failed with exit status {done.returncode}")
        marker.write_text(line)
    elif marker.read_text() != line:
        raise UserError(f"{path}: made by another command, which {marker} contains. Choose another --bench_dir.")


def installed(command):
    """Returns the path of an installed command of the package."""
    return os.path.join(os.path.dirname(sys.executable), command)


def write_lines(path, lines):
    """Writes a file of lines."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    write_texts(sys.argv[1])
