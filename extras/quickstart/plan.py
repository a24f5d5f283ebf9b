"""Chooses vocabulary, hyperparameters and steps for a corpus, a machine and a time."""

import itertools
import os
import typing

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.files.request import Request

MANY_PAIRS = 20_000  # above, a CPU's time is better spent on more steps than on the logits of more pieces
_CPU_VOCABULARY = 8_000
CPU_SET, _WARMUP = "transformer_cpu", 400  # the set's own
_GPU_PAIRS = 200_000  # from here on, the paper's base model has enough to learn on a GPU
_DROPOUTS = ((10_000, 0.3), (100_000, 0.2))  # pairs below which a model needs so much; above, 0.1
_MOST_PASSES = 40  # over the corpus; more would only memorize it
_FEWEST_STEPS = 100
EVALUATIONS = 8
_SHARE_OF_STEPS = 0.9  # of the training time; evaluations and checkpoints take the rest
_SCHEMA = {"request": dict, "vocab_size?": int, "hparams_set": str, "hparams": str, "train_steps?": int}


class Plan(typing.NamedTuple):
    """What t2t-quickstart has chosen.

    Attributes:
        request: dict of the flags that it was chosen for.
        vocab_size: int, or None: the corpus determines it.
        hparams_set, hparams: str, as flags of t2t-trainer.
        train_steps: int, or None before the speed has been measured.
    """

    request: dict
    vocab_size: int | None
    hparams_set: str
    hparams: str
    train_steps: int | None = None


def choose(request, pairs, has_gpu):
    """Returns a `Plan` without steps.

    Args:
        request: dict of the user's flags.
        pairs: iterable of the training pairs, of which as many are read as matter.
        has_gpu: bool.
    """
    limits = [MANY_PAIRS, _GPU_PAIRS, *(limit for limit, _ in _DROPOUTS)]
    count = sum(1 for _ in itertools.islice(pairs, max(limits)))
    if has_gpu and count >= _GPU_PAIRS:
        return Plan(request, None, "transformer_base_v1", "")
    dropout = next((dropout for limit, dropout in _DROPOUTS if count < limit), 0.1)
    vocab_size = _CPU_VOCABULARY if count > MANY_PAIRS else None
    return Plan(request, vocab_size, CPU_SET, f"layer_prepostprocess_dropout={dropout}")


def hparams_for(plan, steps):
    """Returns the flag --hparams of t2t-trainer for a training of so many steps: of a short one, a fifth is warm-up."""
    if plan.hparams_set == CPU_SET and steps < 5 * _WARMUP:
        return f"{plan.hparams},learning_rate_warmup_steps={steps // 5}"
    return plan.hparams


def steps_for(seconds, seconds_per_step, passes_per_step):
    """Returns the steps of a training: as many as fit in the time, up to 40 passes over the corpus, at least 100.

    Args:
        seconds: float, for training, evaluations and checkpoints.
        seconds_per_step: float, as measured.
        passes_per_step: float, share of the corpus in a step.
    """
    affordable = int(seconds * _SHARE_OF_STEPS / seconds_per_step)
    return max(_FEWEST_STEPS, min(affordable, int(_MOST_PASSES / passes_per_step)))


def read_plan(output_dir, request):
    """Returns the `Plan` of a folder; None if there is none.

    Raises:
        UserError: it was made for other flags.
    """
    path = _path(output_dir)
    if not files.exists(path):
        return None
    stored = files.read_json(path, _SCHEMA)
    plan = Plan(*map(stored.get, Plan._fields))
    if found := Request(request, plan.request, request).first:
        raise UserError(
            f"{path}: begun with --{found.name}={_text(found.there)}, but you requested "
            f"--{found.name}={_text(found.asked)}. Choose another --output_dir, or repeat the flags."
        )
    return plan


def write_plan(output_dir, plan):
    """Writes a `Plan` into the folder, without what is not chosen yet."""
    files.make_folder(output_dir)
    files.write_json(_path(output_dir), {name: value for name, value in plan._asdict().items() if value is not None})


def _path(output_dir):
    return os.path.join(output_dir, "quickstart.json")


def _text(value):
    return ",".join(value) if isinstance(value, list) else value
