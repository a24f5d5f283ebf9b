"""Checks whether a model can do what t2t-decoder is asked for, by its problem and without Keras if possible."""

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.settings.config import parse_assignments
from t2t_lite.tasks.task import check_answered_by

_OF_LINES = ("decode_from_file", "score_file", "decode_interactive")
_OF_TRANSLATIONS = (
    "decode_reference", "prefix_file", "alignments_file", "mbr", "tune", "eval_use_test_set", "split_sentences",
)  # fmt: skip
_SETTINGS = (
    "batch_size", "delimiter", "log_results", "max_input_size", "shards", "shard_id", "shards_start_offset",
    "shard_google_format",
)  # fmt: skip


def check_task(runs, flags):
    """Refuses what cannot be done with the model of a run, or with an ensemble.

    Args:
        runs: list of `runs.locating.LocatedRun`, of one task.
        flags: {name: value} of t2t-decoder.

    Raises:
        UserError: no class of this package answers with it, or a flag or setting is about another kind of model.
    """
    found = runs[0]
    predicts = _task(found).answered_by == "Predictor"
    if flags["features_file"] and not predicts:
        raise UserError(f"--features_file: only of encoders, and {found.checkpoint} is none. Leave it out.")
    if not predicts and _task(found).answered_by != "Generator":
        check_answered_by(found.problem, "Translator", found.checkpoint)
        _check_model(runs, flags)
        return
    what, lines = ("an encoder", "texts") if predicts else ("a language model", "prompts")
    told = [registry.teller(name).flag for name in registry.list_tellers()]
    lost = [f"--{name}" for name in (*_OF_TRANSLATIONS, *told, *["score_file"] * predicts) if flags[name]]
    if lost:
        raise UserError(
            f"{', '.join(lost)}: only of translations, and {found.checkpoint} is {what}. Leave "
            f"{'it' if len(lost) == 1 else 'them'} out."
        )
    if flags["problem"] and flags["data_dir"] and not any(flags[name] for name in _OF_LINES):
        raise UserError(
            f"--data_dir: {what}'s records are evaluated by t2t-eval, not decoded. Name a file of {lines}, "
            "--decode_from_file (- is standard input)."
        )
    if predicts:
        known = settings_of(_task(found))
        given = parse_assignments(flags["decode_hparams"], "--decode_hparams")
        if lost := [name for name in given if name not in known]:
            raise UserError(
                f"--decode_hparams: {', '.join(lost)}: no effect on predictions. Expected some of {', '.join(known)}."
            )
    _check_model(runs, flags)


def _check_model(runs, flags):
    """Refuses what the model of a run does not have; its class, which needs Keras, is only asked about such flags."""
    found = runs[0]
    model = found.config["model"]
    for name, teller in ((name, registry.teller(name)) for name in registry.list_tellers()):
        flag = teller.flag
        if flags[flag] and len(runs) > 1:
            raise UserError(f"--{flag}: each of the ensemble's {len(runs)} models has {teller.own}. Leave it out.")
        if flags[flag] and not hasattr(registry.model(model), name):
            raise UserError(f"--{flag}: {found.checkpoint} is a {model}, which {teller.without}. Leave it out.")
    if flags["alignments_file"] and not all(
        hasattr(registry.model(r.config["model"]), "attention_weights") for r in runs
    ):
        raise UserError(
            f"--alignments_file: {found.checkpoint} is a {model}, which does not show what it attends to. Leave it out."
        )
    of_beams = {"mbr": flags["mbr"], "tune": flags["tune"], "n_best_format=json": flags["n_best_format"] == "json"}
    lost = [f"--{name}" for name, is_set in of_beams.items() if is_set]
    if lost and callable(getattr(registry.model(model), "search", None)):
        raise UserError(
            f"{lost[0]}: only of models that predict one id after the other, and {found.checkpoint} is a {model}, "
            "whose own search finds one output. Leave it out."
        )


def settings_of(task):
    """Returns the names of the --decode_hparams settings that affect a task's predictions."""
    return (*_SETTINGS, "n_best") if task.has_hypotheses else _SETTINGS


def _task(found):
    return registry.task_of(found.problem)
