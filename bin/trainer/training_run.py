"""Trains a run with the flags of t2t-trainer."""

import dataclasses

from t2t_lite.bin._setting_flags import hparams_changes
from t2t_lite.bin.trainer.training_flags import also_asked, inexact_flags, recall, trainer_settings
from t2t_lite.cli.flags import as_typed
from t2t_lite.errors import UserError


def train_run(flags, output_dir, random_seed, **trial):
    """Trains in an output_dir and returns why the run ended: `Trainer.ended_by`, or "signal" after any signal.

    Args:
        flags: absl's FlagValues.
        output_dir: str.
        random_seed: int, or None for the seed of the hyperparameter set.
        trial: additional arguments of `make_trainer`.
    """
    from t2t_lite.export.saved_model import export_best
    from t2t_lite.runs.checkpoints import newest_step

    trainer = make_trainer(flags, output_dir, random_seed, **trial)
    prepare_data(flags, trainer)
    trainer.train(newest_step(output_dir) + 1 if flags.schedule == "test" else flags.train_steps)
    if flags.export_saved_model and trainer.ended_by != "signal" and (path := export_best(output_dir)):
        print(path)
    return "signal" if trainer.was_signalled else trainer.ended_by  # after a signal no further run starts


def make_trainer(flags, output_dir, random_seed, *, changes=None, metric=None, stop_when=None):
    """Returns the `Trainer` of an output_dir.

    Args:
        flags, output_dir, random_seed: see `train_run`.
        changes: dict of hyperparameters that override the flags.
        metric: str, the metric that selects the best model, or None for the flag's value.
        stop_when: see `Trainer`.
    """
    from t2t_lite.runs.directory import model_name
    from t2t_lite.settings.config import parse_assignments
    from t2t_lite.training.trainer import Trainer

    earlier = earlier_run(flags, output_dir)
    recall(flags, output_dir, earlier)
    settings, name = _begins_as(flags, earlier)
    model = model_name(flags.model or settings.get("model"), name, flags.hparams_set)
    run_settings = trainer_settings(flags)
    if metric:
        run_settings["evaluation"] = dataclasses.replace(run_settings["evaluation"], best_checkpoint_metric=metric)
    return Trainer(
        problem=name,
        model=model,
        hparams=hparams_of_flags(flags, settings, model, random_seed).override_from_dict(changes or {}),
        hparams_set=flags.hparams_set or settings.get("hparams_set"),
        data_dir=flags.data_dir,
        output_dir=output_dir,
        inexact=inexact_flags(flags),
        allow_hparams_change=flags.allow_hparams_change,
        keep_batches_a_step="gradient_accumulation_steps" not in parse_assignments(flags.hparams, "--hparams"),
        warm_start_from=flags.warm_start_from or "",
        usr_dir=flags.t2t_usr_dir or settings.get("usr_dir", ""),
        flags_text="".join(f"{as_typed(name, flags[name].value)}\n" for name in flags if flags[name].present),
        also_asked=also_asked(flags),
        remembers=flags.schedule != "test",
        stop_when=stop_when,
        **run_settings,
    )


def _begins_as(flags, earlier):
    """Returns (a dict as in `hparams.json` of the settings with which a run starts, the name of its problem)."""
    from t2t_lite.runs.locating import find_run

    begins_as = flags.warm_start_from and not (earlier or flags.hparams_set)  # a new run with another run's settings
    settings = find_run(flags.warm_start_from).config if begins_as else earlier
    return settings, flags.problem or earlier.get("problem")


def check_run(flags):
    """Makes all checks of names, folders and hyperparameters that need no TensorFlow, so that errors appear at once.

    `Trainer.check` repeats these checks and makes all others. Raises `UserError`.
    """
    from t2t_lite import registry
    from t2t_lite.data.records import Records
    from t2t_lite.data.splits import DatasetSplit
    from t2t_lite.runs import directory
    from t2t_lite.runs.locating import find_checkpoint

    earlier = directory.check_place(flags.output_dir)
    settings, name = _begins_as(flags, earlier)
    if not name:
        raise UserError("missing --problem: --output_dir does not hold an earlier run, which would name it.")
    problem, model = registry.problem(name), flags.model or settings.get("model")
    facts = {"problem": name}
    if model:  # otherwise the set or the task determines the model; finding it needs Keras
        flags.model = model = directory.model_name(model, name)  # so that `make_trainer` does not log it again
        registry.check_model(model)
        facts["model"] = model
    directory.check_belongs(flags.output_dir, facts)
    run_options = {"output_dir": flags.output_dir, "allow_change": flags.allow_hparams_change} if earlier else {}
    directory.check_known(settings, flags.hparams_set, hparams_changes(flags), **run_options)
    directory.warn_of_problem(problem, hparams_changes(flags))
    if flags.warm_start_from and not earlier:
        find_checkpoint(flags.warm_start_from)
    if not flags.generate_data:
        problem.get_feature_encoders(flags.data_dir)
        schedule = earlier.get("plan", {}).get("schedule", flags.schedule)
        schedule = flags.schedule if flags["schedule"].present else schedule
        for split in (DatasetSplit.TRAIN, *([DatasetSplit.EVAL] if schedule != "train" else [])):
            _ = Records(problem, flags.data_dir, split).paths  # raises an error if files of the data are missing


def prepare_data(flags, trainer):
    """Generates the data if --generate_data is set.

    Before it generates anything, checks all names, and whether the model can be exported.
    """
    from t2t_lite import registry
    from t2t_lite.data.named_problems import generate_problems, select_problems
    from t2t_lite.export import by_task

    problem, _ = registry.problem(trainer.problem), registry.model(trainer.model)
    if flags.export_saved_model:
        by_task.check(problem, "--export_saved_model")
    if flags.generate_data:
        generate_problems(select_problems(trainer.problem), flags.data_dir, flags.tmp_dir)


def earlier_run(flags, output_dir):
    """Returns the `hparams.json` of the run in output_dir as a dict, or {} without a run."""
    from t2t_lite.runs.run_config import read_earlier_run

    return read_earlier_run(output_dir, imports=not flags.t2t_usr_dir)  # the flag's folder is already imported


def hparams_of_flags(flags, earlier, model, random_seed):
    """Returns the HParams that the flags describe; the arguments are those of `run_hparams`."""
    from t2t_lite.runs.directory import run_hparams

    return run_hparams(
        earlier, flags.hparams_set, hparams_changes(flags), model=model, random_seed=random_seed,
        mixed_precision=flags.gpu_automatic_mixed_precision,
    )  # fmt: skip
