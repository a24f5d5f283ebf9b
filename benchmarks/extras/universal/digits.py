"""Compares how the Universal Transformer and the Transformer reverse and add digits at twice the trained length.

python -m benchmarks.extras.universal.digits                                   # 30 minutes each, one after the other
python -m benchmarks.extras.universal.digits --minutes=5 --seeds=1,2,3 --jobs=15 --trainer_flags=--xla_compile

The models train on sequences of up to 40 digits. The number of the first position is random and smaller than the
sequence's length, so that the models see position numbers up to 80. Each model has 0.46 million weights: a Universal
Transformer runs one layer of hidden size 128 in 4 steps, and a Transformer has 4 layers of hidden size 64. Halfway
through training and at its end, the models process 128 sequences each of exactly 20, 40, 60 and 80 symbols. The share
of digits that are right at their places is computed in two ways. In the first, each digit is predicted given the right
digits before it, as in tensor2tensor's `accuracy`; in the second, the output of greedy search is compared. `adaptive`
halts by itself after at most 4 steps, and its number of steps is reported. Each model trains for as many steps as it
can run in `--minutes`, as in `benchmarks.table2`. A training step has 512 tokens; with 2,048 tokens and six steps of
recurrence, the Universal Transformer learned far less in 30 minutes.
"""

import json
import pathlib
import random
import sys
from typing import NamedTuple

import numpy as np

from benchmarks.harness.command import alone, chosen, main
from benchmarks.harness.work import add_training_flags, at_once, once, steps_within

TITLE = "Digits at twice the trained length"
SIDES = {
    "universal_transformer": "Universal Transformer",
    "transformer": "Transformer",
    "adaptive": "Universal Transformer, adaptive",
}
NEEDS = {}
PROBLEMS = {"reverse": "algorithmic_reverse_decimal40", "addition": "algorithmic_addition_decimal40"}
LENGTHS = 20, 40, 60, 80
# A Transformer is a Universal Transformer with a single step in which all layers run.
SETS = {
    "universal_transformer": "num_rec_steps=4",
    "transformer": "hidden_size=64,filter_size=256,num_rec_steps=1,num_inrecurrence_layers=4",
    "adaptive": "act_max_steps=4",
}
SHARED = (
    "batch_size=512,learning_rate_schedule=constant*linear_warmup*single_cycle_cos_decay,"
    "layer_prepostprocess_dropout=0,attention_dropout=0,relu_dropout=0,label_smoothing=0,eval_decode_examples=0"
)


class Run(NamedTuple):
    """A training run: its task, side and seed."""

    task: str
    side: str
    seed: str


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--tasks", default="reverse", help=f"comma-separated, chosen from {', '.join(PROBLEMS)}")
    parser.add_argument("--rate", type=float, default=1e-3, help="the largest learning rate")
    add_training_flags(parser, minutes=30)


def measure(result, flags):
    """Trains each side on each task with each seed, and evaluates checkpoints."""
    tasks = chosen("--tasks", flags.tasks, PROBLEMS)
    folder = pathlib.Path(flags.bench_dir, "digits")
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    for task in tasks:
        once(folder / task, "t2t-datagen", f"--problem={PROBLEMS[task]}", f"--data_dir={data}")
    runs = [Run(task, side, seed) for task in tasks for side in flags.sides for seed in flags.seeds.split(",")]
    steps = steps_within(flags, runs, lambda run, count: _trained(run, count, folder, flags), _kind)
    trained = at_once(flags, lambda run: _trained(run, steps[_kind(run)], folder, flags), runs)
    module = sys.modules[__name__]
    asked = [(run, str(path)) for run, path in zip(runs, trained, strict=True)]
    answers = at_once(flags, lambda one: alone(module, one[0].side, run=one[1], task=one[0].task), asked)
    rows = {}
    for run, answer in zip(runs, answers, strict=True):
        for part in sorted(answer["parts"], key=lambda part: (part["length"], part["of_the_training"])):
            case = f"{run.task}, {part['length']} symbols, after {part['of_the_training']:.0%} of the steps"
            for figure in ("next_digit_right", "digits_right", "sequences_right", "ponder_steps"):
                if part.get(figure) is not None:
                    rows.setdefault((case, figure), {}).setdefault(run.side, []).append(part[figure])
        for figure in ("parameters", "steps"):
            rows.setdefault((run.task, figure), {}).setdefault(run.side, []).append(answer[figure])
    for (case, figure), sides in rows.items():
        result.add(case, figure, sides)


def _kind(run):
    """Returns the side and the task of a run, which it shares with the runs with other seeds."""
    return run.side, run.task


def _trained(run, steps, folder, flags):
    """Trains a run, unless an earlier call did; returns its folder."""
    path = folder / f"{run.task}-{run.side}-{steps}-{run.seed}"
    adaptive = "adaptive_" if run.side == "adaptive" else ""
    hparams = f"{SHARED},{SETS[run.side]},learning_rate_constant={flags.rate},learning_rate_warmup_steps={steps // 20}"
    once(
        path, "t2t-trainer", f"--problem={PROBLEMS[run.task]}", f"--data_dir={folder / 'data'}", f"--output_dir={path}",
        "--model=universal_transformer",
        f"--hparams_set={adaptive}universal_transformer_position_random_timing_tiny", f"--hparams={hparams}",
        f"--train_steps={steps}", f"--local_eval_frequency={max(1, steps // 2)}", "--eval_steps=4",
        f"--random_seed={run.seed}", "--log_step_count_steps=50", *flags.trainer_flags,
    )  # fmt: skip
    return path


def side(name, run, task):
    """Evaluates two checkpoints of a run, and prints the figures."""
    from t2t_lite import registry
    from t2t_lite.decoding.translator import Translator

    problem = registry.problem(PROBLEMS[task])
    questions = {length: [_question(problem, task, random.Random(n), length) for n in range(128)] for length in LENGTHS}
    parts = []
    last = max(int(path.stem.split("-")[-1]) for path in pathlib.Path(run).glob("model.ckpt-*.index"))
    for step in sorted({max(1, last // 2), last}):  # a run that was interrupted and resumed also has other checkpoints
        translator = Translator.load(str(pathlib.Path(run, f"model.ckpt-{step}")))
        for length, pairs in questions.items():
            texts = [" ".join(map(str, symbols)) for symbols, _ in pairs]
            last_one = step == last and name == "adaptive"
            answers = translator.translate(
                texts, beam_size=1, extra_length=2, compile=False, batch_size=128, return_ponder_steps=last_one
            )
            part = {"next_digit_right": _next_digit_right(translator, texts, pairs)}
            part |= _scores([answer.text.split() for answer in answers], [target for _, target in pairs])
            if last_one:
                ponder = [each for answer in answers for each in answer.hypotheses[0].ponder_steps[1]]
                part["ponder_steps"] = sum(ponder) / max(len(ponder), 1)
            parts.append({"length": length, "of_the_training": step / last, **part})
    weights = sum(weight.shape.num_elements() for weight in translator.model.weights)
    print(json.dumps({"parts": parts, "parameters": weights, "steps": last}), flush=True)


def _question(problem, task, generator, length):
    """Returns (input symbols, symbols of the answer), with exactly `length` input symbols."""
    if task == "addition":  # two numbers of about equal length with the plus sign between them
        one = [*generator.choices(range(10), k=length // 2 - 1), generator.randrange(1, 10)]
        two = [*generator.choices(range(10), k=length - length // 2 - 2), generator.randrange(1, 10)]
        symbols = [*one, 10, *two]
    else:
        symbols = generator.choices(range(10), k=length)
    return symbols, problem.targets_of(symbols)


def _next_digit_right(translator, texts, pairs):
    """Returns the share of digits that the model predicts correctly, given the right digits before them."""
    import keras

    from t2t_lite.evaluation.metrics import token_accuracy
    from t2t_lite.models.outputs import named_outputs
    from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

    answers = [" ".join(map(str, target)) for _, target in pairs]
    ids = zip(*map(translator.pair_ids, texts, answers), strict=True)
    padded = (keras.utils.pad_sequences(rows, padding="post") for rows in ids)  # a carry makes sums longer
    batch = dict(zip(("inputs", "targets"), padded, strict=True))
    logits, _ = named_outputs(translator.model(batch, training=False))
    digits_alone = np.where(batch["targets"] == EOS_ID, PAD_ID, batch["targets"])
    right, digits = token_accuracy(logits["targets"], digits_alone)
    return int(right) / int(digits)


def _scores(answers, targets):
    """Returns the share of digits and the share of sequences that are right."""
    pairs = [(answer, [*map(str, target)]) for answer, target in zip(answers, targets, strict=True)]
    right = sum(a == b for answer, target in pairs for a, b in zip(answer, target, strict=False))
    whole = sum(answer == target for answer, target in pairs)
    return {"digits_right": right / sum(map(len, targets)), "sequences_right": whole / len(targets)}


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
