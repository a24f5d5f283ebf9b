"""Guards the output_dir of a run, so that only one trainer uses it at a time and its settings do not change."""

import os
import re
import sys

from t2t_lite import registry
from t2t_lite.data.named_problems import with_vocabulary_of
from t2t_lite.errors import LOGGER, UserError, counted, located
from t2t_lite.files import check_is_no_file
from t2t_lite.files.folders import check_kinds, held_lock
from t2t_lite.files.request import Request
from t2t_lite.process.registering_modules import may_be_declared
from t2t_lite.runs.checkpoint_files import check_can_be_placed
from t2t_lite.runs.log import RunLog
from t2t_lite.runs.run_config import check_set, hparams_of, model_for_task, model_of_set, read_run_config
from t2t_lite.settings.config import HParams, parse_assignments
from t2t_lite.settings.tensor2tensor_names import without_multistep

# Settings that affect the order of the data. After a change, the data stream starts from its beginning.
STREAM = (
    "batch_size", "max_length", "min_length", "bpe_dropout", "random_seed", "xla_compile", "xla_shapes",
    "records_sha256", "segment_length",
)  # fmt: skip
# Settings of the outputs that evaluations decode.
_OUTPUT_SETTINGS = ("eval_decode_examples", "eval_beam_size", "eval_alpha", "eval_tokenization")
# Regular expressions of files and folders that training and evaluation write.
_FILES = (
    r"hparams\.json", r"flags\.txt", r"(train|eval)\.log", r"\.lock", "checkpoint",
    r"model\.ckpt-[0-9]+\.(index|data-.*|state\..*)", r"events\.out\.tfevents\..*",
)  # fmt: skip
_FOLDERS = ("best", "decode", "eval", "eval_test", "eval_train", "export")


def locked(output_dir):
    """Returns a context manager that locks a local output_dir against a second trainer: see `held_lock`."""
    return held_lock(os.path.join(output_dir, ".lock"), f"--output_dir={output_dir}: another trainer")


def accumulation_for(replicas, accumulation, earlier, keep_batches=True):
    """Returns the number of batches that each replica accumulates per training step.

    A training step takes replicas x accumulation batches from the data. If a run is resumed with a different number of
    replicas, each step still takes the same batches, unless the user requested a different number of batches.

    Args:
        replicas: int.
        accumulation: int, the hyperparameter gradient_accumulation_steps.
        earlier: dict, the `hparams.json` of the resumed run, or None.
        keep_batches: bool; if False, `accumulation` is returned regardless of the run.

    Raises:
        UserError: the batches of a step cannot be shared equally by this number of replicas.
    """
    batches = (earlier or {}).get("batches_a_step")
    if not keep_batches or batches is None:
        return accumulation
    if accumulation != earlier["hparams"].get("gradient_accumulation_steps"):
        return accumulation
    if batches % replicas:
        possible = [str(n) for n in range(1, batches + 1) if batches % n == 0]
        raise UserError(
            f"{counted(replicas, 'replica')} cannot equally share the batches of a step, {batches} in this run. "
            f"Expected a number of replicas that divides it: {', '.join(possible)}. For steps of a different size, add "
            f"--hparams=gradient_accumulation_steps={accumulation} --allow_hparams_change"
        )
    return batches // replicas


def run_hparams(earlier, hparams_set=None, changes="", *, model=None, random_seed=None, mixed_precision=False):
    """Returns the HParams of a resumed run, or the set of a new run, with `changes` applied; see `without_multistep`.

    Args:
        earlier: dict, the `hparams.json` of the resumed run, or {}.
        hparams_set: str, name of the set, or None. If it names the run's set, the values of the run are used instead of
            the values of the set, so that repeating all or part of a command gives the same settings.
        changes: str, see `HParams.parse`.
        model: str, name of the model whose settings apply (see `model_name`), or None for the model of the run or the
            set.
        random_seed: int, which replaces the seed of the set, or None to keep it.
        mixed_precision: bool, whether to set dtype_policy to mixed_bfloat16.

    Raises:
        UserError: a name is unknown or is not a setting of the model, a value is out of range, or there is neither a
            set nor a run.
    """
    check_known(earlier, hparams_set, changes)
    model_class = registry.model(model_name(model or earlier.get("model"), hparams_set=hparams_set))
    if not _is_of_run(earlier, hparams_set):
        hparams = registry.hparams(hparams_set)
        check_set(hparams_set, hparams, model_class)
        hparams = without_multistep(hparams.of_model(model_class).parse(changes))
    else:
        hparams = parse_changes(hparams_of(earlier), changes)
    check_meaning(parse_assignments(changes, "--hparams"), model_class, "--hparams", hparams)
    if random_seed is not None:
        hparams.random_seed = random_seed
    if mixed_precision:
        if parse_assignments(changes, "--hparams").get("dtype_policy", "mixed_bfloat16") != "mixed_bfloat16":
            raise UserError(
                "--gpu_automatic_mixed_precision contradicts dtype_policy in --hparams. Remove one of the two settings."
            )
        hparams.dtype_policy = "mixed_bfloat16"
    return hparams


def check_known(earlier, hparams_set=None, changes="", output_dir="", allow_change=False):
    """Checks the hyperparameters that every model has. The check works without Keras, so that errors are immediate.

    Args:
        earlier, hparams_set, changes: see `run_hparams`.
        output_dir: str, the run with which the hyperparameters must agree (see `changed_hparams`), or "".
        allow_change: bool, see `changed_hparams`.

    Raises:
        UserError: the set or a name is unknown, a value is out of range, or a value differs from the run's.
    """
    if not hparams_set and not earlier:
        raise UserError("missing --hparams_set: --output_dir does not contain an earlier run that names a set.")
    before = HParams.from_dict(earlier["hparams"]) if earlier else None
    is_resumed = _is_of_run(earlier, hparams_set)
    hparams = before if is_resumed else registry.hparams(hparams_set)
    if "keras" in sys.modules:  # imported by a user's folder, which may declare more hyperparameters
        return
    hparams = (parse_changes if is_resumed else HParams.parse)(hparams, changes, may_be_declared)
    if before and output_dir:
        requested, stored = hparams.values(), before.values()
        names = {*requested} - {"gradient_accumulation_steps"}  # may change with the number of replicas
        _check_changes(output_dir, Request(requested, stored, sorted(names)), before, allow_change)


def _is_of_run(earlier, hparams_set):
    return bool(earlier) and hparams_set in (None, "", earlier["hparams_set"])


def check_meaning(names, model_class, where, hparams=None):
    """Raises `UserError`, whose message begins with `where`, unless a model has all these hyperparameters.

    If `hparams` (all values) is given, names that have no effect with these values are refused as well: see
    `SequenceModel.check_has`. If only the value of a hyperparameter of all models leaves another one unread, a warning
    is logged: see `warn_of_unread`.
    """
    from t2t_lite.models.sequence_model import SequenceModel
    from t2t_lite.models.unread_settings import warn_of_unread

    if issubclass(model_class, SequenceModel):
        with located(where):
            model_class.check_has(names, hparams)
    if hparams is not None:
        changed = [name for name in names if hparams.get(name) != hparams.settings()[name].default]
        warn_of_unread(changed, hparams, model_class, where)


def warn_of_problem(problem, changes):
    """Logs a warning for each hyperparameter in `changes`, `name=value,…`, that a problem does not read."""
    unread = {}
    if hasattr(type(problem), "sequence_length"):
        unread["max_length"] = "its rows have the length with which t2t-datagen made them (sequence_length)"
    if not problem.eval_decode_metric:
        unread |= dict.fromkeys(_OUTPUT_SETTINGS, "its evaluations do not decode outputs")
    for name, value in parse_assignments(changes, "--hparams").items():
        if name in unread and (name, value) != ("eval_decode_examples", "0"):
            LOGGER.warning(f"--hparams: {name} has no effect on {problem.full_name}: {unread[name]}.")


def parse_changes(hparams, changes, skips=None):
    """Applies changes to a run's HParams, `hparams.parse(changes, skips)`. Repeating a change has no effect."""
    again = "optimizer_multistep_accumulate_steps" in parse_assignments(changes, "--hparams")
    if again and hparams.optimizer == "adam" and not hparams.optimizer_multistep_accumulate_steps:
        # Undo `without_multistep`, so that the change applies to the value given by the user.
        hparams = hparams.override_from_dict({"optimizer": "multistep_adam", "gradient_accumulation_steps": 1})
    return without_multistep(hparams.parse(changes, skips))


def model_name(model=None, problem=None, hparams_set=None):
    """Returns the name of the model to build.

    As in tensor2tensor, "transformer" is a family of models. For a language model, it means only the decoder; this
    choice is logged.

    Args:
        model: str. If None or "", the set determines the model: see `model_for_task`. Without a set, the default is
            "transformer".
        problem: str, name of the problem, or None if unknown.
        hparams_set: str, name of a new run's set, or None if unknown.

    Raises:
        UserError: the problem or the set is unknown.
    """
    if not problem:
        return model or (hparams_set and model_of_set(hparams_set)) or "transformer"
    if model and model != "transformer":
        return model
    task = registry.task_of(registry.problem(problem))
    if not model and hparams_set:
        model = model_for_task(hparams_set, task.model)
        if model != task.model:
            return model
    if task.model != "transformer":
        LOGGER.info(f"{problem} has the task {task.name}, so the model is {task.model}")
    return task.model


def fill_in_settings(output_dir, problem, model, hparams, hparams_set):
    """Returns (problem, model, hparams, hparams_set), with None replaced by the earlier run's values.

    All given values must agree with the earlier run: see `changed_hparams`.

    Raises:
        UserError: a new run lacks a problem or hyperparameters, or the folder contains other checkpoints.
    """
    earlier = check_place(output_dir)
    problem = problem or earlier.get("problem")
    if not problem or (hparams is None and not (hparams_set or earlier)):
        raise UserError(f"{output_dir}: a new run needs a problem and an hparams_set (or hparams).")
    if isinstance(hparams, str):
        hparams, hparams_set = None, hparams
    is_known = hparams is None or hparams_set in registry.Registries.hparams  # an unregistered name is only a label
    model = model_name(model or earlier.get("model"), problem, hparams_set if is_known else None)
    if hparams is None:
        hparams = run_hparams(earlier, hparams_set, model=model)
    return problem, model, registry.hparams(hparams), hparams_set or earlier.get("hparams_set")


def check_place(output_dir):
    """Returns the `hparams.json` of an output_dir as a dict, or {} for a new run.

    Raises `UserError` if the path cannot be an output_dir.
    """
    check_is_no_file(output_dir)
    earlier = read_run_config(output_dir)
    events = {line["event"] for line in RunLog(output_dir).read()}
    check_can_be_placed(output_dir, earlier is not None, "checkpoint" in events if events else None)
    return earlier or {}


def check_names(config, problem=None, model=None, hparams_set=None):
    """Raises `UserError` if a given name (not None or "") differs from the name in `hparams.json`.

    Args:
        config: dict, the contents of `hparams.json`.
        problem, model, hparams_set: str, names given by the user.
    """
    for name, value, look_up in (
        ("problem", problem, registry.problem),
        ("model", model, registry.check_model),
        ("hparams_set", hparams_set, registry.hparams),
    ):
        if value and (model_name(value, config["problem"]) if name == "model" else value) != config[name]:
            look_up(value)  # raises an error with the nearest names if the name is unknown
            raise UserError(
                f"--{name}={value}: this model was trained with {name}={config[name] or '(own)'}. Remove the flag."
            )


def check_unchanged(config, changes):
    """Raises `UserError` if changes, `name=value,…`, differ from the hyperparameters in `config`, see `check_names`."""
    check_known(config, changes=changes)
    trained = hparams_of(config)
    if change := Request(parse_changes(trained, changes).values(), trained.values()).first:
        raise UserError(
            f"--hparams: {change.name}={change.requested}, but this model was trained with "
            f"{change.name}={change.stored}. Remove the flag."
        )


def check_belongs(output_dir, facts):
    """Raises `UserError` if `facts`, {key of `hparams.json`: value}, differ from the facts of the run in output_dir."""
    if change := Request(facts, read_run_config(output_dir) or facts, facts).first:
        raise UserError(
            f"{output_dir}: trained with {change.name}={change.stored}, but this run has {change.requested}. Use "
            "the same value, or another output_dir."
        )


def check_places(output_dir, others=()):
    """Raises `UserError` if there is a folder in place of a file that a run will write, or vice versa.

    Args:
        output_dir: str, a folder that may be missing.
        others: names of additional files, such as the vocabulary.
    """
    check_kinds(output_dir, (*_FILES, *map(re.escape, others)), _FOLDERS)
    for name in _FOLDERS:
        check_kinds(os.path.join(output_dir, name), (*_FILES, *map(re.escape, others)))


def changed_hparams(output_dir, config, allow_change):
    """Compares a run's settings with the settings stored in its output_dir.

    Args:
        output_dir: str.
        config: dict as in `hparams.json`, including "batches_a_step".
        allow_change: bool, whether the records and the hyperparameters (except architecture and optimizer) may differ.

    Returns:
        {name: [old, new]} of the changed hyperparameters, and of "records_sha256". A different number of replicas or
        accumulated batches counts as a change, of "batches_a_step", only if it changes the number of batches per step.

    Raises:
        UserError: a difference is not allowed; the message names it.
    """
    earlier = read_run_config(output_dir)
    if earlier is None:
        return {}
    check_belongs(output_dir, {key: config[key] for key in ("problem", "model")})
    if any(config[key] != earlier[key] for key in ("vocabulary_sha256", "vocab_size", "target_vocab_size")):
        remedy = with_vocabulary_of(registry.problem(config["problem"]), output_dir)
        raise UserError(
            f"{output_dir}: the vocabulary in --data_dir differs from the vocabulary with which this run was trained. "
            f"Expected data made with its vocabulary ({remedy}). For a new run choose another output_dir."
        )
    if "batches_a_step" not in earlier:  # not a training run; `restore_latest` refuses its checkpoints
        return {}
    hparams = hparams_of(earlier)  # use defaults for hyperparameters that an earlier version lacked
    stored, requested = {**earlier, **hparams.values()}, {**config, **config["hparams"]}
    names = {*hparams.values(), *config["hparams"]}
    if stored["batches_a_step"] == requested["batches_a_step"]:
        names -= {"gradient_accumulation_steps"}
    others = ["hparams_set", "xla_compile", "batches_a_step"]
    if stored.get("xla_compile") and requested["xla_compile"]:
        others.append("xla_shapes")
    request = Request(requested, stored, [*sorted(names), *others])
    _check_changes(output_dir, request, hparams, allow_change)
    records = Request(config, earlier, ["records_sha256"]).changes
    if records and not allow_change:
        raise UserError(
            f"{output_dir}: the training records in --data_dir differ from the records on which this run was trained. "
            "To continue with the new records, from their beginning, add --allow_hparams_change. For a new run choose "
            "another output_dir."
        )
    return request.changes | records


def _check_changes(output_dir, request, hparams, allow_change):
    """Raises `UserError` if the changes in a `Request` are not allowed for a run trained with `hparams`."""
    settings = hparams.settings()  # a model's checkpoints depend on its `fixed` settings
    if fixed := [name for name in request.changes if name in settings and settings[name].fixed]:
        raise UserError(
            f"{output_dir}: {request.difference()}. {', '.join(fixed)} cannot change during a run. Train in another "
            "output_dir."
        )
    if request.changes and not allow_change:
        raise UserError(
            f"{output_dir}: some hyperparameters differ from the run's: {request.difference()}. To continue with the "
            "new values, add --allow_hparams_change. For a new run choose another output_dir."
        )
