"""The flags of t2t-trainer's search for hyperparameters, and the flags that contradict them."""

import os

from t2t_lite.bin.trainer import schedules
from t2t_lite.errors import UserError
from t2t_lite.files import is_remote
from t2t_lite.settings.ranges import Range

FLAGS = (
    "autotune_objective", "autotune_maximize", "autotune_max_trials", "autotune_parallel_trials", "autotune_seeds"
)  # fmt: skip


def define_search_flags(flags):
    """Declares the flags."""
    flags.DEFINE_string("hparams_range", None, "Search in these registered ranges, with Optuna: docs/training.md.")
    flags.DEFINE_string("autotune_objective", None, "Of a search: its metric; default: --best_checkpoint_metric's.")
    flags.DEFINE_bool("autotune_maximize", None, "Whether more of it is better; default: the metric's own.")
    flags.DEFINE_integer("autotune_max_trials", 10, "Trials of a search.", limits=Range(1, 100_000))
    flags.DEFINE_integer("autotune_parallel_trials", 1, "Trials trained at once, by processes.", limits=Range(1, 256))
    flags.DEFINE_integer(
        "autotune_seeds", 3, "Seeds with which the best trial is trained again.", limits=Range(2, 1000, also=(0,))
    )


def check_several_runs(flag, flags, is_run):
    """Raises `UserError` unless the flags describe several runs that are trained and evaluated on one machine."""
    if flags.schedule not in schedules.TRAINING or flags.schedule in ("train", "test"):
        raise UserError(f"{flag}: needs runs that are trained and evaluated, not --schedule={flags.schedule}.")
    if os.environ.get("TF_CONFIG"):
        raise UserError(f"{flag}: each run is trained on one machine. Unset TF_CONFIG.")
    if is_run:
        raise UserError(f"{flag}: --output_dir={flags.output_dir} is a run already. Expected a folder for several.")


def check_search(flags, is_run):
    """Raises `UserError` for flags that contradict a search, or that would put a run into its folder.

    Args:
        flags: absl's FlagValues.
        is_run: bool, whether the output_dir holds an ordinary run.
    """
    folder = flags.output_dir
    if not flags.hparams_range:
        if folder and not is_remote(folder) and os.path.exists(os.path.join(folder, "study.journal")):
            raise UserError(
                f"--output_dir={folder}: is the folder of a search. Expected one of its trials, {folder}/trial-0, a "
                "new folder, or --hparams_range=NAME to continue the search."
            )
        return
    flag = f"--hparams_range={flags.hparams_range}"
    check_several_runs(flag, flags, is_run)
    if folder and is_remote(folder):
        raise UserError(
            f"{flag}: --output_dir={folder}: the processes of a search append to one file, which only local file "
            "systems allow. Expected a local folder."
        )
