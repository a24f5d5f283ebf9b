"""Compares Transformer-XL with the same model without a memory, on text segments of 32 bytes (nats per character).

python -m benchmarks.extras.memory.memory --train_files=train.txt.gz --dev_files=validation.txt.gz
python -m benchmarks.extras.memory.memory --train_files=… --dev_files=… --sides=memory,longer --steps=2400

All models have 3 layers of hidden size 128 and are trained by t2t-trainer with 1,024 ids per step. Both in training and
in evaluation, each layer of `memory` sees the 32 ids before a segment, and each layer of `longer` sees the 128 ids
before it. `plain` reads each row of 32 ids separately; `stride` is the same model, but evaluated with windows that move
by 8 ids. The plain model has wider feed-forward networks, so that all models have the same number of parameters.
"""

import pathlib
import shutil
import subprocess
import sys
import time

from benchmarks.harness.command import main
from benchmarks.harness.work import installed, logged
from t2t_lite.errors import UserError

TITLE = "A memory of the previous segment against no memory"
SIDES = {"memory": "memory of 32", "longer": "memory of 128", "plain": "no memory", "stride": "no memory, windows"}
NEEDS = {}
SEGMENT, ROW = 32, 1024
SHARED = (
    "num_hidden_layers=3,layer_prepostprocess_dropout=0.1,batch_size=1024,learning_rate_warmup_steps=150,"
    "learning_rate_constant=1"
)
SETS = {
    "memory": ("transformer_memory", f"{SHARED},memory_length=32"),
    "longer": ("transformer_memory", f"{SHARED},memory_length=128"),
    "plain": ("transformer_lm", f"{SHARED},filter_size=576"),
}


def call(command, *words):
    """Runs a command of this package; returns its output."""
    done = subprocess.run([installed(command), *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} failed: {done.stderr.splitlines()[-1:]}")
    return done.stdout


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--train_files", help="texts to train on, separated by commas")
    parser.add_argument("--dev_files", help="texts to evaluate on")
    parser.add_argument("--steps", type=int, default=1200)


def measure(result, flags):
    """Trains each side, and evaluates it on the development text."""
    if not flags.train_files or not flags.dev_files:
        raise UserError("--train_files or --dev_files is missing. Expected the paths of texts.")
    folder = pathlib.Path(flags.bench_dir, "memory")
    shutil.rmtree(folder, ignore_errors=True)
    steps = 20 if flags.quick else flags.steps
    nats, seconds = {}, {}
    for side in flags.sides:
        trained = "plain" if side == "stride" else side
        data, run = folder / f"data_{trained == 'plain'}", folder / trained
        length = SEGMENT if trained == "plain" else ROW
        files = f"--train_files={flags.train_files}", f"--dev_files={flags.dev_files}"
        if not data.exists():
            words = "--problem=languagemodel_own_characters", f"--sequence_length={length}", f"--data_dir={data}"
            call("t2t-datagen", *words, *files)
        begun = time.monotonic()
        if not run.exists():
            model, hparams = SETS[trained]
            words = f"--model={model}", f"--hparams_set={model}_tiny", f"--hparams={hparams}", f"--train_steps={steps}"
            when = f"--local_eval_frequency={steps}", "--problem=languagemodel_own_characters"
            call("t2t-trainer", *words, *when, f"--data_dir={data}", f"--output_dir={run}")
            seconds[side] = [time.monotonic() - begun]
        if side == "stride":
            call("t2t-eval", f"--output_dir={run}", f"--data_dir={data}", "--eval_timeout_mins=0", "--eval_stride=8")
        evaluations = logged(run, "evaluation", "eval.log" if side == "stride" else "train.log")
        nats[side] = [evaluations[-1]["nats_per_character"]]
    case = f"{steps} steps of 1,024 ids"
    result.add(case, "nats_per_character", nats)
    result.add(case, "seconds", seconds)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
