"""For commands that use a trained model: declares the flags that name the model, and finds it."""

import os
import re

from t2t_lite import files
from t2t_lite.bin import _app
from t2t_lite.cli.commands import require
from t2t_lite.decoding.command.flag_checks import FEATURES_FLAGS
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import ALL_POSITIONS, JOINS, POOLINGS


def define_flags(flags):
    """Declares the flags that name a trained model."""
    _app.define_common_flags(flags)
    flags.DEFINE_path(
        "checkpoint_path",
        None,
        "A checkpoint, …/model.ckpt-N, or several checkpoints separated by commas. Default: the newest one in "
        "--output_dir.",
    )
    if "worker_gpu" not in flags:
        flags.no_effect("worker_gpu", "this command uses one device: the first GPU, or the CPU if there is no GPU")


def check(flags):
    """Raises `UserError` unless the flags name a trained model."""
    if not flags.checkpoint_path:
        require(flags, "output_dir")


def paths(flags):
    """Returns the list of paths in --checkpoint_path or --output_dir, which may be separated by commas.

    Raises:
        UserError: a part of the comma-separated list is empty.
    """
    name = "checkpoint_path" if flags.checkpoint_path else "output_dir"
    path = os.path.expanduser(flags[name].value)
    if "," not in path or files.exists(path) or files.exists(f"{path}.index"):  # file names may contain commas
        return [path]
    parts = flags[name].value.split(",")
    if not all(parts):
        raise UserError(
            f"--{name}={flags[name].value}: a path is empty. Expected one path, or several separated by commas."
        )
    return [os.path.expanduser(part) for part in parts]


def find(flags):
    """Returns the runs at `paths`, a list of `runs.locating.LocatedRun`. Call it before heavy imports.

    Raises:
        UserError: a run or one of its files is missing, or another flag contradicts the model's training.
    """
    from t2t_lite.runs.directory import check_names, check_unchanged
    from t2t_lite.runs.locating import find_run

    runs = [find_run(path) for path in paths(flags)]
    check_names(runs[0].config, flags.problem, flags.model, flags.hparams_set)
    if flags.hparams:
        check_unchanged(runs[0].config, flags.hparams)
    for run in runs:
        run.check_encoders(flags.data_dir)
    return runs


def define_features_flags(flags):
    """Declares the flags that select which hidden states of an encoder are returned as features."""
    flags.DEFINE_string("features_layers", "last", "Layers whose hidden states are the features: first (the "
                        "embeddings), last, second_to_last, last_four, all, or numbers separated by commas, where 0 "
                        "means the embeddings.")  # fmt: skip
    flags.DEFINE_enum("features_join", None, JOINS, "How several layers are combined into one array.")
    flags.DEFINE_enum("features_pooling", None, [*POOLINGS, ALL_POSITIONS], "Return one vector per text: the mean or "
                      "the maximum of all positions, or the first position; none: a vector for every position. "
                      "Default: the model's features_pooling.")  # fmt: skip


def features_options(flags):
    """Returns the arguments "layers", "join" and "pooling" for `Predictor.features` that flags have set, as a dict."""
    options = {name.removeprefix("features_"): flags[name].value for name in FEATURES_FLAGS if flags[name].present}
    if re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4})*", options.get("layers", "")):
        options["layers"] = tuple(map(int, options["layers"].split(",")))
    return options
