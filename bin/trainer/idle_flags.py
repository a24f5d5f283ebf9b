"""Warns of flags of t2t-trainer that other flags leave without effect."""

from t2t_lite.errors import LOGGER
from t2t_lite.settings.ranges import settings_of
from t2t_lite.training.settings import EARLY, EarlyStopping, EvaluationSettings


def warn_of_idle_flags(flags, earlier):
    """Logs a warning for each flag on the command line that has no effect because of the values of other flags.

    Args:
        flags: absl's FlagValues, after `recall`.
        earlier: dict, the `hparams.json` of the run in output_dir, or {}.
    """
    # Without --…_steps: 0 turns early stopping off, and other values are checked elsewhere.
    early = [f"{EARLY}{name}" for name in settings_of(EarlyStopping) if name != "steps"]
    compiles = earlier.get("xla_compile", False) if flags.xla_compile is None else flags.xla_compile
    for names, is_idle, because in (
        ([*settings_of(EvaluationSettings), *early], flags.schedule == "train", "with --schedule=train"),
        (early, not flags.eval_early_stopping_steps, "without --eval_early_stopping_steps"),
        (["xla_shapes"], not compiles, "without --xla_compile"),
    ):
        for name in [name for name in names if is_idle and name in flags and flags[name].present]:
            LOGGER.warning(f"--{name} has no effect {because}.")
