"""What t2t-eval and the trainer's evaluating schedules share."""

import logging
import math

from t2t_lite.errors import UserError
from t2t_lite.ranges import COUNT, MINUTES, Range

_LOGGER = logging.getLogger("t2t_lite")
_SEARCH = ("beam_size", "alpha", "extra_length", "length_penalty", "batch_size")


def define_flags(flags):
    """Declares the flags of evaluations."""
    flags.DEFINE_integer("eval_steps", 0, "Batches of an evaluation; 0: the whole set.", limits=COUNT)
    flags.DEFINE_integer(
        "eval_timeout_mins",
        240,
        "Where checkpoints are waited for: stop after so many minutes without a new one; 0: do not wait; -1: for ever.",
        limits=Range(0, MINUTES.most, also=(-1,)),
    )
    flags.DEFINE_bool("eval_use_test_set", False, "Evaluate the test records, into eval_test/, not the dev ones.")
    flags.DEFINE_string(
        "decode_hparams",
        "",
        f"name=value,… of {', '.join(_SEARCH)} for the evaluations' translations; default: the hyperparameters "
        "eval_beam_size, eval_alpha.",
    )
    flags.no_effect("eval_run_autoregressive", "sentences are really translated at every evaluation", is_bool=True)


def search(flags):
    """Returns what --decode_hparams sets of the search, a dict, or None.

    Raises:
        UserError: a setting that has no meaning in evaluations, or a value out of range.
    """
    from t2t_lite.config import parse_assignments
    from t2t_lite.decoding.decode_hparams import DecodeHParams

    given = parse_assignments(flags.decode_hparams, "--decode_hparams")
    settings = DecodeHParams.parse(flags.decode_hparams)
    if other := [name for name in given if name not in _SEARCH]:
        raise UserError(
            f"--decode_hparams: {other[0]} has no meaning in evaluations, only {', '.join(_SEARCH)}. It has one in "
            "t2t-decoder."
        )
    return {name: getattr(settings, name) for name in _SEARCH if given.get(name) not in (None, "0")} or None


def evaluate(flags, *, once=False, on_train_data=False):
    """Evaluates the newest checkpoint of --output_dir, or each one as it appears, and prints the metrics.

    Raises:
        UserError: no checkpoint, no such records, or a flag that contradicts what the run was trained with.
    """
    from t2t_lite.data.problem import DatasetSplit
    from t2t_lite.runs.config import read_run_config
    from t2t_lite.runs.directory import check_names, parse_changes
    from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
    from t2t_lite.training.distribution import gpus_as_needed, hide_gpus

    if config := read_run_config(flags.output_dir):
        check_names(config, flags.problem, flags.model, flags.hparams_set)
    if flags.worker_gpu > 1:
        _LOGGER.warning(f"--worker_gpu={flags.worker_gpu}: an evaluation uses one device.")
    if flags.worker_gpu == 0:
        hide_gpus()
    else:
        gpus_as_needed()  # a trainer may need the rest of their memory
    split = DatasetSplit.TRAIN if on_train_data else DatasetSplit.TEST if flags.eval_use_test_set else DatasetSplit.EVAL
    evaluation = CheckpointEvaluation(
        flags.output_dir,
        flags.data_dir,
        split,
        flags.eval_steps,
        lambda trained: parse_changes(trained, flags.hparams),
        search(flags),
    )
    if once:
        for name, value in evaluation.newest().items():
            print(f"{name} = {value:.4f}")
        return
    timeout = math.inf if flags.eval_timeout_mins < 0 else 60.0 * flags.eval_timeout_mins
    for path, metrics in evaluation.follow(timeout):
        print(path, *(f"{name} = {value:.4f}" for name, value in metrics.items()), sep="  ", flush=True)
