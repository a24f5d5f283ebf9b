"""--hparams_range=NAME searches for hyperparameters. Needs: pip install 't2t_lite[tune]'.

The search samples hyperparameters from the ranges called NAME, and trains --autotune_max_trials runs in the subfolders
trial-0, trial-1, … of --output_dir. Then it trains the best run again with other seeds.
"""

import os

from t2t_lite.bin.trainer.training_modes import check_training
from t2t_lite.cli.commands import Mode
from t2t_lite.errors import UserError
from t2t_lite.files import is_remote
from t2t_lite.settings.ranges import Range

_FLAGS = (
    "autotune_objective", "autotune_maximize", "autotune_max_trials", "autotune_parallel_trials", "autotune_seeds"
)  # fmt: skip


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_string("hparams_range", None, "Name of the ranges that Optuna searches; see docs/extras/autotune.md.")
    flags.DEFINE_string("autotune_objective", None, "Metric to optimize. Default: --best_checkpoint_metric.")
    flags.DEFINE_bool("autotune_maximize", None, "Whether a larger metric is better. Default: the metric's direction.")
    flags.DEFINE_integer("autotune_max_trials", 10, "Number of trials of a search.", limits=Range(1, 100_000))
    flags.DEFINE_integer("autotune_parallel_trials", 1, "Number of trials trained at once.", limits=Range(1, 256))
    flags.DEFINE_integer(
        "autotune_seeds",
        3,
        "Number of other seeds with which to train the best trial again. 0: do not train it again.",
        limits=Range(2, 1000, also=(0,)),
    )


def check(flags):
    """Raises `UserError` for flags that contradict a search."""
    flag = f"--hparams_range={flags.hparams_range}"
    check_training(flags, flag)
    if flags.output_dir and is_remote(flags.output_dir):
        raise UserError(
            f"{flag}: --output_dir={flags.output_dir} is not local, but the processes of a search append to the same "
            "file. Expected a local folder."
        )


def check_others(flags):
    """Raises `UserError` if --output_dir of an ordinary run is the folder of a search."""
    folder = flags.output_dir
    if folder and not is_remote(folder) and os.path.exists(os.path.join(folder, "study.journal")):
        raise UserError(
            f"--output_dir={folder} is the folder of a search. Expected a trial such as {folder}/trial-0, a new "
            "folder, or --hparams_range=NAME to continue the search."
        )


def run(flags):
    """Runs the search and returns the exit status."""
    from t2t_lite import registry
    from t2t_lite.bin.trainer.training_modes import prepare
    from t2t_lite.extras.autotune.search_command import search_hparams

    registry.ranged_hparams(flags.hparams_range)  # raises for an unknown name
    prepare(flags)
    from t2t_lite.training.distribution import set_threads

    set_threads(flags.inter_op_parallelism_threads, flags.intra_op_parallelism_threads)
    return search_hparams(flags)


MODES = {
    "search": Mode(
        "--hparams_range",
        ("random_seed", *_FLAGS),
        run=run,
        instead={
            "random_seeds": "In a search, use --autotune_seeds=N.",
            "export_saved_model": "Export the best trial with t2t-exporter afterwards.",
            "allow_hparams_change": "The trials of a search cannot change their hyperparameters.",
        },
        selected_by=lambda flags: flags.hparams_range,
        check=check,
        others=check_others,
    )
}
