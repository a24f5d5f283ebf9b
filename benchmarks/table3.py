"""Repeats the paper's Table 3 at a small scale: how changing one part affects perplexity and BLEU.

python -m benchmarks.table3 --train_files=train.en.gz,train.de.gz --dev_files=val.en.gz,val.de.gz
python -m benchmarks.table3 --train_files=… --dev_files=… --rows=base,one_head

The base model has 3 + 3 layers of hidden size 128, 4 heads, 8,000 pieces and 2,048 tokens per step, with the paper's
dropout and learning rates. (tensor2tensor's sets also apply dropout to attention weights and filter units, and have
twice the learning rate.) Each row changes the same part as the paper's row, by about the same factor. As in the paper,
figures are for the development set. A row of 1,500 steps takes about 13 minutes on one core, the wide row half an hour.
If a row was interrupted, the next call with the same --bench_dir continues the row.
"""

import pathlib
import sys
from typing import NamedTuple

from benchmarks.harness.command import chosen, main
from benchmarks.harness.work import add_training_flags, at_once, logged, once
from t2t_lite.errors import UserError

TITLE = "Table 3 of the paper at a small scale"
SIDES = {"ours": "here", "paper": "paper"}
NEEDS = {}
BASE = {
    "num_hidden_layers": 3, "batch_size": 2048, "filter_size": 512, "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.0, "relu_dropout": 0.0, "learning_rate_constant": 1.0,
    "learning_rate_warmup_steps": 600, "eval_decode_examples": 2000,
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
}  # fmt: skip


class Row(NamedTuple):
    """A row of the table: its changes here, and the perplexity and BLEU of the paper's row."""

    name: str
    changes: dict
    perplexity: float
    bleu: float


ROWS = {
    "base": Row("base", {}, 4.92, 25.8),
    "one_head": Row("(A) one head", {"num_heads": 1}, 5.29, 24.9),
    "many_heads": Row("(A) four times the heads", {"num_heads": 16}, 5.01, 25.4),
    "small_keys": Row("(B) a quarter of d_k", {"attention_key_channels": 32}, 5.16, 25.1),
    "one_layer": Row("(C) a third of the layers", {"num_hidden_layers": 1}, 6.11, 23.7),
    "wide": Row("(C) twice d_model", {"hidden_size": 256}, 4.66, 26.0),
    "no_dropout": Row("(D) no dropout", {"layer_prepostprocess_dropout": 0.0}, 5.77, 24.6),
    "no_smoothing": Row("(D) no label smoothing", {"label_smoothing": 0.0}, 4.67, 25.3),
    "learned_positions": Row("(E) learned positions", {"pos": "emb"}, 4.92, 25.7),
}


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--train_files", help="source and target texts to train on, separated by a comma")
    parser.add_argument("--dev_files", help="source and target texts to evaluate on")
    parser.add_argument(
        "--rows", default=",".join(ROWS), help=f"comma-separated rows to train, chosen from {', '.join(ROWS)}"
    )
    parser.add_argument("--steps", type=int, default=3000, help="number of training steps, each on 2,048 tokens")
    add_training_flags(parser)


def measure(result, flags):
    """Trains the model of each row, and evaluates it on the development set."""
    if not flags.train_files or not flags.dev_files:
        raise UserError("--train_files or --dev_files is missing. Expected the paths of two texts each.")
    names = chosen("--rows", flags.rows, ROWS)
    folder = pathlib.Path(flags.bench_dir, "table3")
    folder.mkdir(parents=True, exist_ok=True)
    data, files = folder / "data", (f"--train_files={flags.train_files}", f"--dev_files={flags.dev_files}")
    once(data, "t2t-datagen", "--problem=translate_own", f"--data_dir={data}", "--vocab_size=8000", *files)
    runs = at_once(flags, lambda name: _trained(name, folder, flags), names)
    evaluated = {name: logged(run, "evaluation")[-1] for name, run in zip(names, runs, strict=True)}
    for name, event in evaluated.items():
        row = ROWS[name]
        figures = {"ours": [event["perplexity"]], "paper": [row.perplexity]}
        result.add(row.name, "perplexity", figures)
        result.add(row.name, "bleu", {"ours": [event["bleu"]], "paper": [row.bleu]})
    if "base" in evaluated:
        base = evaluated["base"]["bleu"]
        changes = {name: event["bleu"] - base for name, event in evaluated.items() if name != "base"}
        result.notes += [_compared(ROWS[name], change) for name, change in changes.items()]


def _trained(name, folder, flags):
    """Trains and evaluates the run of a row, unless an earlier call did; returns its folder."""
    steps = 4 if flags.quick else flags.steps
    data, run = folder / "data", folder / f"{name}-{steps}"
    hparams = ",".join(f"{key}={value}" for key, value in {**BASE, **ROWS[name].changes}.items())
    once(
        run, "t2t-trainer", "--problem=translate_own", f"--data_dir={data}", f"--output_dir={run}",
        "--hparams_set=transformer_tiny", f"--hparams={hparams}", f"--train_steps={steps}",
        f"--local_eval_frequency={steps}", "--random_seed=1", *flags.trainer_flags,
    )  # fmt: skip
    return run


def _compared(row, change):
    """Returns a sentence on how BLEU differs from that of the base, here and in the paper."""
    there = row.bleu - ROWS["base"].bleu
    agree = "agree" if change * there > 0 else "do not agree"
    return f"{row.name}: BLEU {change:+.1f} here, {there:+.1f} in the paper: the signs {agree}."


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
