"""The modes of t2t-trainer, and the flags of each."""

import functools
import os
import shlex

from t2t_lite.bin.trainer import schedules
from t2t_lite.cli.modes import Mode, all_modes, asked_modes, check_mode, require
from t2t_lite.errors import UserError

_TRAINING = ("export_saved_model", "allow_hparams_change")
_OWN = {
    "seeds": Mode("--random_seeds", ("random_seeds", *_TRAINING)),
    "evaluate": Mode("--schedule=evaluate", ("eval_use_test_set", "random_seed", *_TRAINING)),
    "train": Mode("training", ("random_seed", *_TRAINING)),
}


@functools.cache
def modes():
    """Returns {key: Mode}, those of extras first; `run` of one takes the flags and returns an exit status or None."""
    return all_modes("t2t-trainer", _OWN)


def chosen_mode(flags):
    """Returns the mode that the flags choose."""
    own = _OWN["evaluate" if flags.schedule in schedules.EVALUATING else "train"]
    return [*asked_modes(flags, modes()), own][0]


def check(flags):
    """Raises `UserError` for flags that are missing or of other modes, and for unknown schedules."""
    schedules.check(flags)
    if flags.decode_from_file:
        raise UserError(
            f"--decode_from_file: t2t-trainer translates no files. Type instead: t2t-decoder "
            f"--output_dir={shlex.quote(flags.output_dir or 'OUTPUT_DIR')} "
            f"--decode_from_file={shlex.quote(flags.decode_from_file)}"
        )
    mode = chosen_mode(flags)
    check_mode(flags, mode, modes())
    if mode.is_lenient:
        return
    schedules.check_early_stopping(flags)
    if flags.random_seeds:
        _check_seeds(flags)
    settings = ["problem"] if flags.warm_start_from else ["problem", "hparams_set"]
    may_train = flags.schedule in schedules.TRAINING and not may_remember(flags.output_dir)
    require(flags, "data_dir", "output_dir", *(settings if may_train else []))


def may_remember(output_dir):
    """Returns whether an output_dir has the settings of a run. Remote files are not checked yet: they may be there."""
    return bool(output_dir) and ("://" in output_dir or _is_run(output_dir))


def check_several_runs(flag, flags):
    """Raises `UserError` unless the flags describe several runs that are trained and evaluated on one machine."""
    if flags.schedule not in schedules.TRAINING or flags.schedule in ("train", "test"):
        raise UserError(f"{flag}: needs runs that are trained and evaluated, not --schedule={flags.schedule}.")
    if os.environ.get("TF_CONFIG"):
        raise UserError(f"{flag}: each run is trained on one machine. Unset TF_CONFIG.")
    if _is_run(flags.output_dir):
        raise UserError(f"{flag}: --output_dir={flags.output_dir} is a run already. Expected a folder for several.")


def _check_seeds(flags):
    """Raises `UserError` unless --random_seeds describe several runs with evaluations."""
    flag = f"--random_seeds={','.join(map(str, flags.random_seeds))}"
    if len(flags.random_seeds) < 2 or len({*flags.random_seeds}) < len(flags.random_seeds):
        raise UserError(f"{flag}: expected two or more different seeds, such as 1,2,3. For one there is --random_seed.")
    check_several_runs(flag, flags)


def _is_run(output_dir):
    return bool(output_dir) and os.path.exists(os.path.join(output_dir, "hparams.json"))
