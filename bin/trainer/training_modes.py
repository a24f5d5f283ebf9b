"""The modes of t2t-trainer, and the flags of each."""

import os
import shlex

from t2t_lite.bin.trainer import schedules
from t2t_lite.cli.modes import Mode, check_mode, require
from t2t_lite.errors import UserError
from t2t_lite.extras.autotune import search_flags
from t2t_lite.extras.describe import describing_flags
from t2t_lite.visualization.pictures import check_picture

_TRAINING = ("export_saved_model", "allow_hparams_change")
_NOT_OF_SEARCHES = {
    "random_seeds": "A search has --autotune_seeds=N.",
    "export_saved_model": "Export the best trial by t2t-exporter afterwards.",
    "allow_hparams_change": "Trials that are compared keep their hyperparameters.",
}
MODES = {  # the first two also accept the flags of training
    "summary": Mode("--summary"),
    "describe": Mode("--describe", describing_flags.FLAGS),
    "search": Mode("--hparams_range", ("random_seed", *search_flags.FLAGS), instead=_NOT_OF_SEARCHES),
    "seeds": Mode("--random_seeds", ("random_seeds", *_TRAINING)),
    "evaluate": Mode("--schedule=evaluate", ("eval_use_test_set", "random_seed", *_TRAINING)),
    "train": Mode("training", ("random_seed", *_TRAINING)),
}


def chosen_mode(flags):
    """Returns the key in `MODES` of the mode that the flags choose."""
    modes = {"summary": flags.summary, "describe": flags.describe, "search": flags.hparams_range}
    modes |= {"seeds": flags.random_seeds, "evaluate": flags.schedule in schedules.EVALUATING, "train": True}
    return next(mode for mode, is_asked in modes.items() if is_asked)


def check(flags):
    """Raises `UserError` for flags that are missing or unknown schedules."""
    if flags.summary:
        return
    schedules.check(flags)
    if flags.decode_from_file:
        raise UserError(
            f"--decode_from_file: t2t-trainer translates no files. Type instead: t2t-decoder "
            f"--output_dir={shlex.quote(flags.output_dir or 'OUTPUT_DIR')} "
            f"--decode_from_file={shlex.quote(flags.decode_from_file)}"
        )
    config = os.path.join(flags.output_dir or "", "hparams.json")
    remembers = flags.output_dir and ("://" in flags.output_dir or os.path.exists(config))
    if flags.describe:
        if flags.plot:
            check_picture("--plot", flags.plot)
        return require(flags, *([] if remembers else ["hparams_set"]))
    check_mode(flags, MODES[chosen_mode(flags)], MODES)
    schedules.check_early_stopping(flags)
    may_train = flags.schedule in schedules.TRAINING and not remembers
    is_run = bool(flags.output_dir) and os.path.exists(config)  # remote files are not checked yet
    search_flags.check_search(flags, is_run)
    if flags.random_seeds:
        _check_seeds(flags, is_run)
    settings = ["problem"] if flags.warm_start_from else ["problem", "hparams_set"]
    require(flags, "data_dir", "output_dir", *(settings if may_train else []))


def _check_seeds(flags, is_run):
    """Raises `UserError` unless --random_seeds describe several runs with evaluations."""
    flag = f"--random_seeds={','.join(map(str, flags.random_seeds))}"
    if len(flags.random_seeds) < 2 or len({*flags.random_seeds}) < len(flags.random_seeds):
        raise UserError(f"{flag}: expected two or more different seeds, such as 1,2,3. For one there is --random_seed.")
    search_flags.check_several_runs(flag, flags, is_run)
