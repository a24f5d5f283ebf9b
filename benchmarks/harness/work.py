"""Inputs that benchmarks share: texts of natural lengths, a model trained on them, batches. Made once, in a folder.

The texts are one to five sentences of the phrasebook in a line, drawn so that lengths vary as in a real corpus (about 8
to 70 pieces); nothing has to be downloaded. `--run` and `--text` of some benchmarks take a model and a text of yours.
"""

import concurrent.futures
import os
import pathlib
import queue
import random
import subprocess
import sys

from t2t_lite.errors import UserError

_SIZES = {"train": 40_000, "dev": 200, "test": 1_000}  # lines
VOCAB_SIZE = 4_000
PROBED = 200  # steps whose time says how many a run makes
_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Shares of lines of one, two … five sentences.
_SHARES = (0.3, 0.3, 0.2, 0.12, 0.08)
# Of `decoding.SIZES`: 128 wide, 3 + 3 layers. Pre-norm as most models are; Marian's are post-norm.
_HPARAMS = (
    "num_hidden_layers=3,learning_rate_warmup_steps=200,eval_decode_examples=0,attention_dropout=0,relu_dropout=0"
)
_NORM = {
    "pre": "layer_preprocess_sequence=n,layer_postprocess_sequence=da",
    "post": "layer_preprocess_sequence=none,layer_postprocess_sequence=dan",
}


def texts(folder):
    """Returns {"train.en": path, …} of train, dev and test in English and German, which are written if missing."""
    os.makedirs(folder, exist_ok=True)
    paths = {f"{split}.{side}": os.path.join(folder, f"{split}.{side}") for split in _SIZES for side in ("en", "de")}
    if not all(map(os.path.exists, paths.values())):
        # A process of its own, since one that has TensorFlow hands its peak of memory on to those it starts.
        subprocess.run([sys.executable, "-m", "benchmarks.harness.work", folder], check=True, cwd=_ROOT)
    return paths


def write_texts(folder):
    """Writes the texts."""
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
            pathlib.Path(folder, f"{split}.{side}").write_text("".join(f"{line[at]}\n" for line in lines), "utf-8")


def add_flags(parser):
    """Adds the flags of benchmarks that need a trained model."""
    parser.add_argument(
        "--run", help="a trained run, or one checkpoint of it; default: one that is trained for --steps"
    )
    parser.add_argument("--text", help="its source sentences; default: sentences of the phrasebook")
    parser.add_argument("--reference", help="their translations")
    parser.add_argument("--steps", type=int, default=300, help="of the training, without --run")


def model_and_texts(flags, norm="pre"):
    """Returns (run, path of its source sentences, path of their translations), made unless flags name them."""
    run = flags.run or trained_run(flags.bench_dir, 10 if flags.quick else flags.steps, norm)
    paths = texts(flags.bench_dir)
    return run, flags.text or paths["test.en"], flags.reference or paths["test.de"]


def data_dir(folder):
    """Returns the folder of records of `texts`, problem translate_own."""
    paths, path = texts(folder), os.path.join(folder, "data")
    splits = [f"--{split}_files={paths[f'{split}.en']},{paths[f'{split}.de']}" for split in _SIZES]
    once(path, "t2t-datagen", "--problem=translate_own", f"--data_dir={path}", f"--vocab_size={VOCAB_SIZE}", *splits)
    return path


def trained_run(folder, steps, norm="pre"):
    """Returns the folder of a run of 3 + 3 layers of 128, trained for so many steps; about 0.3 s each on two cores."""
    path = os.path.join(folder, f"run-{norm}-{steps}")
    once(
        path, "t2t-trainer", "--problem=translate_own", f"--data_dir={data_dir(folder)}", f"--output_dir={path}",
        "--hparams_set=transformer_quickstart", f"--hparams={_HPARAMS},{_NORM[norm]}", f"--train_steps={steps}",
    )  # fmt: skip
    return path


def logged(run, event, log="train.log"):
    """Returns the lines of a run's log with an event, such as "evaluation", a list of dicts."""
    from t2t_lite.runs.log import read_lines  # which imports TensorFlow

    return [line for line in read_lines(os.path.join(run, log)) if line["event"] == event]


def add_training_flags(parser, minutes=None):
    """Adds the flags of benchmarks that train many models; with `minutes`, a default, those of `steps_within`, too."""
    if minutes is not None:
        parser.add_argument("--minutes", type=float, default=minutes, help="of training")
        parser.add_argument("--steps", type=_numbers, help="in place of --minutes: one number, or one for each side")
        parser.add_argument("--seeds", default="1", help="of the runs, such as 1,2,3")
    parser.add_argument("--jobs", type=int, default=1, help="how many of its runs take place at the same time")
    parser.add_argument(
        "--trainer_flags", type=str.split, default=[], help="further flags of t2t-trainer, such as '--xla_compile'"
    )


def at_once(flags, function, items):
    """Returns [function(item) for item in items], of which --jobs are called at the same time.

    Each job has as many of the CPUs as another, and no other's: what it starts does not take time from its neighbours.
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
    """Returns {kind: how many steps its runs make in --minutes, at least `PROBED`}; or --steps of them, 4 with --quick.

    The time of a step is that of the fastest part of a short run: what else the machine does only makes a part slower.

    Args:
        flags: of the command line.
        runs: list of what is to be trained.
        trained: function of a run and a number of steps; trains it and returns its folder.
        kind: function of a run: a tuple that begins with its side; runs of one kind get the same number of steps.

    Raises:
        UserError: --steps has neither one number nor one for each of --sides.
    """
    if told := [4] if flags.quick else flags.steps:
        if len(told) not in (1, len(flags.sides)):
            raise UserError(f"--steps: has {len(told)} numbers. Expected one, or {len(flags.sides)} for the sides.")
        by_side = dict(zip(flags.sides, told if len(told) > 1 else told * len(flags.sides), strict=True))
        return {kind(run): by_side[kind(run)[0]] for run in runs}
    one_of = {kind(run): run for run in runs}
    probes = at_once(flags, lambda run: trained(run, PROBED), one_of.values())
    seconds = [min(line["seconds_per_step"] for line in logged(probe, "progress")) for probe in probes]
    return {one: max(PROBED, int(60 * flags.minutes / each)) for one, each in zip(one_of, seconds, strict=True)}


def once(path, command, *words):
    """Runs one of the package's commands, resuming where it stopped, unless it has succeeded before."""
    marker = pathlib.Path(f"{path}.done")
    if not marker.exists():
        subprocess.run([pathlib.Path(sys.executable).with_name(command), *words], check=True, stdout=subprocess.DEVNULL)
        marker.touch()


if __name__ == "__main__":
    write_texts(sys.argv[1])
