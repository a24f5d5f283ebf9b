"""Reads and writes `hparams.json`, the settings of a run, and builds the model that these settings define."""

import contextlib
import json
import os
import re

from t2t_lite import registry
from t2t_lite.errors import UnknownName, UserError, located, nearest, shown
from t2t_lite.files import exists, read_json, write_bytes
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.process.lazy import extras
from t2t_lite.registry import Registries
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import own_settings
from t2t_lite.text.vocabulary import vocabulary_sizes

FILE_NAME = "hparams.json"
MOST_BYTES = 2**24  # parsed JSON may take 26 times the memory of its text, and a model may come from anywhere
_FORMAT = 1
_MOST = {"vocab_size": 2**24, "target_vocab_size": 2**24, "batches_a_step": 2**31}  # the largest values
_SCHEMA = {
    "format": int,
    "problem": str,
    "model": str,
    "hparams_set": str,
    "vocab_size": int,
    "target_vocab_size": int | None,
    "vocabulary_sha256": {"inputs?": str, "targets?": str},
    "usr_dir": str,
    "extras?": {"problem?": str, "model?": str},
    "hparams": dict,
    "batches_a_step?": int,
    "xla_compile?": bool,
    "xla_shapes?": int,
    "records_sha256?": str,
    "plan?": {str: bool | int | float | str | dict | None},
    "several_sentences?": float | None,
}
_LORA_MATRICES = ("/lora_kernel_a", "/lora_kernel_b")
# The values of the fine-tuning settings once LoRA is merged into the kernels.
_MERGED = {"frozen": "", "lora_rank": 0, "lora_alpha": 0.0, "lora_targets": ""}


def run_config(problem, model, hparams, encoders, *, hparams_set="", usr_dir=""):
    """Collects the settings of a run in a dict for `write_run_config`.

    Args:
        problem, model: str, their full names.
        hparams: HParams.
        encoders: {feature: encoder} of the problem.
        hparams_set: str, name of the set of `hparams`, or "".
        usr_dir: str, the user's folder or package that registers the problem or the model, or "".
    """
    vocab_size, target_vocab_size = vocabulary_sizes(encoders)
    extra_of = {"problem": Registries.problems.extra_of(_base(problem)), "model": Registries.models.extra_of(model)}
    extra_names = {kind: extra for kind, extra in extra_of.items() if extra}
    return {
        "problem": problem,
        "model": model,
        "hparams_set": hparams_set or "",
        "vocab_size": vocab_size,
        "target_vocab_size": target_vocab_size,
        "vocabulary_sha256": {side: encoder.fingerprint for side, encoder in encoders.items()},
        "usr_dir": usr_dir if not usr_dir or registry.is_package_name(usr_dir) else os.path.abspath(usr_dir),
        "hparams": hparams.values(),
        **({"extras": extra_names} if extra_names else {}),
    }


def _base(problem):
    return re.sub("(_rev|_copy)*$", "", problem)  # in any order, like `registry.problem`


def write_run_config(directory, config):
    """Writes `<directory>/hparams.json` atomically.

    Args:
        directory: str, an output_dir.
        config: dict, the result of `run_config`. A training run adds "batches_a_step", "xla_compile", "xla_shapes",
            "records_sha256" (the `Records.fingerprint` of its training records), "several_sentences" (the share of
            these records whose inputs have several sentences, or None) and "plan" (see
            `training.settings.RememberedFlags`).
    """
    text = json.dumps({"format": _FORMAT, **config}, indent=1, sort_keys=True) + "\n"
    write_bytes(os.path.join(directory, FILE_NAME), text.encode())


def read_run_config(directory):
    """Reads `<directory>/hparams.json` as a dict, or returns None if there is no such file.

    Raises:
        UserError: the file is not valid JSON of this form, or has invalid values; the message names the file.
    """
    path = os.path.join(directory, FILE_NAME)
    if not exists(path):
        return None
    config = read_json(path, _SCHEMA, MOST_BYTES)
    if config["format"] != _FORMAT:
        raise UserError(
            f"{path}: format {shown(config['format'])}, expected {_FORMAT}. The file was written by another version."
        )
    if other := [*config["vocabulary_sha256"].keys() - {"inputs", "targets"}]:
        raise UserError(f"{path}: 'vocabulary_sha256': expected inputs and targets, found {shown(other[0])}.")
    for key, most in _MOST.items():
        if config.get(key) is not None and not 0 < config[key] <= most:
            raise UserError(f"{path}: {key!r}: expected 1 to {most:,}, found {shown(config[key])}.")
    if not 0 <= (config.get("several_sentences") or 0.0) <= 1:
        raise UserError(f"{path}: 'several_sentences': expected 0 to 1, found {shown(config['several_sentences'])}.")
    with located(path):
        HParams.from_dict(config["hparams"])  # raises an error for wrong types, names or ranges
    if any(extra not in extras() for extra in config.get("extras", {}).values()):
        check_registered(directory, config)
    return config


def is_registered(config):
    """Returns whether the problem and the model in the dict of a `hparams.json` are registered."""
    return config["model"] in Registries.models and _base(config["problem"]) in Registries.problems


def check_registered(directory, config):
    """Raises `UnknownName` unless problem and model are registered; the message names a missing extra.

    Args:
        directory: str, the folder of `hparams.json`.
        config: dict, the contents of `hparams.json`.
    """
    for kind, entries in (("problem", Registries.problems), ("model", Registries.models)):
        if (name := _base(config[kind])) in entries:
            continue
        where = f"{os.path.join(directory, FILE_NAME)}: {kind}={shown(config[kind]).strip(chr(39))}"
        if extra := config.get("extras", {}).get(kind):
            raise UnknownName(
                f"{where} belongs to the extra {extra!r}, which is not installed here. Expected the folder {extra} in "
                "t2t_lite's extras. Install t2t_lite again, or restore the folder."
            )
        raise UnknownName(
            f"{where} is not registered. {nearest(name, entries.names(), ' ')}It may be part of an extra that is not "
            "installed here, or be defined in a folder of your own: pass that folder with --t2t_usr_dir=FOLDER"
        )


def hparams_of(config):
    """Converts the dict of a `hparams.json` to HParams, with the settings that the model declares.

    Raises:
        UserError: the model is not registered, or a value is out of range.
    """
    return HParams.from_dict(config["hparams"]).of_model(registry.model(config["model"]))


def import_usr_dir(directory, config):
    """Imports the user's folder with which a run was trained.

    Importing executes code, and `directory` may come from a stranger. Therefore, folders inside it are never imported.
    Packages given by name are imported only if they belong to t2t_lite.

    Args:
        directory: str, the folder of `hparams.json`.
        config: dict, the contents of `hparams.json`.

    Raises:
        UserError: the folder is missing or inside `directory`, its path is relative or contains links, or the import
            fails (see `registry.import_usr_dir`).
    """
    path = config["usr_dir"]
    if not path:
        return
    full, inside = os.path.realpath(path), os.path.realpath(directory)
    is_own = registry.is_package_name(path) and path.startswith("t2t_lite.")
    is_outside = os.path.isabs(path) and full == os.path.normpath(path) and not f"{full}/".startswith(f"{inside}/")
    where = f"{os.path.join(directory, FILE_NAME)}: usr_dir={path!r}"
    if not (is_own or is_outside):
        raise UserError(
            f"{where}: Python code that may have come with a model is not executed. If the folder is yours, add "
            "--t2t_usr_dir=FOLDER"
        )
    if is_outside and not os.path.isdir(path):
        raise UserError(f"{where}: no such folder. If it has moved, add --t2t_usr_dir=FOLDER")
    registry.import_usr_dir(path)


def read_earlier_run(output_dir, imports=True):
    """Returns the `hparams.json` of the run in output_dir, or {} if it is missing.

    Args:
        output_dir: str or None.
        imports: bool, whether to import the user's folder with which the run was trained, see `import_usr_dir`.
    """
    config = (output_dir and read_run_config(output_dir)) or {}
    if config and imports:
        import_usr_dir(output_dir, config)
    if config:
        check_registered(output_dir, config)
    return config


def build_model(config, dtype_policy=None):
    """Builds the model of a run, with all its weights.

    Args:
        config: dict, see `write_run_config`.
        dtype_policy: str, which replaces the policy with which the run was trained, or None to keep it.

    Raises:
        UserError: the model is unknown, or its hyperparameters are invalid.
    """
    # Imported here, since reading the settings must work without Keras.
    from t2t_lite.layers import number_seeds
    from t2t_lite.models.fine_tuning import fine_tune
    from t2t_lite.models.sequence_model import call_on_ones

    check_tensorflow("A run")
    hparams = hparams_of(config)
    hparams.dtype_policy = dtype_policy or hparams.dtype_policy
    model_class = registry.model(config["model"])
    model = model_class.from_hparams(hparams, config["vocab_size"], config["target_vocab_size"])
    if not model.built or not model.weights:
        call_on_ones(model, registry.problem(config["problem"]).features)
    fine_tune(model, hparams)
    number_seeds(model)
    return model


def lora_names(names):
    """Returns the set of those weight names that belong to LoRA matrices."""
    return {name for name in names if name.endswith(_LORA_MATRICES)}


def lora_facts(config):
    """Returns (LoRA rank, factor of the product A B) from the dict of a `hparams.json`, or (0, 0.0) without LoRA."""
    hparams = hparams_of(config)
    rank = hparams.lora_rank
    return rank, (hparams.lora_alpha or rank) / rank if rank else 0.0


def merged_config(config):
    """Returns the dict of `hparams.json` for the same model with LoRA merged into the kernels and nothing frozen."""
    names = _MERGED.keys() & config["hparams"].keys()
    return {**config, "hparams": config["hparams"] | {name: _MERGED[name] for name in names}}


def model_of_set(name):
    """Returns the name of the model for which a set is meant, or None if the set suits the model of any task.

    If several models have all settings of the set, the result is the model from which the others derive.

    Args:
        name: str, name of the set.
    """
    if declared := registry.model_of_hparams(name):
        return declared
    hparams, models = registry.hparams(name), {one: registry.model(one) for one in registry.list_models()}
    known = {one: own_settings(model, **hparams.kinds()).keys() for one, model in models.items()}
    own_names = (hparams.values().keys() - HParams().values().keys()) & set().union(*known.values())
    fitting = [one for one in models if own_names <= known[one]]
    general = (one for one in fitting if all(issubclass(models[other], models[one]) for other in fitting))
    return next(general, None)


def model_for_task(name, task_model):
    """Returns the name of the model for a set and a task: the task's model, unless the set is meant for another model.

    A set for one task's model also suits another task's model that has all hyperparameters of the set.

    Args:
        name: str, name of the set.
        task_model: str, name of the task's model.
    """
    model = model_of_set(name)
    if model in (None, *(registry.task(task).model for task in registry.list_tasks())):
        with contextlib.suppress(UserError):
            check_set(name, registry.hparams(name), registry.model(task_model))
            return task_model
    return model or task_model


def check_set(name, hparams, model_class):
    """Raises `UserError` if a set has a hyperparameter that this model lacks, but that another model declares.

    For example, a set for Universal Transformers leaves positional encoding to the steps of the model, so that a
    Transformer would be trained without positions. A model that overrides `from_hparams` may read any name, and a
    problem may read names that no model declares.

    Args:
        name: str, name of the set.
        hparams: HParams, the result of the set's function.
        model_class: the class of the model.
    """
    from t2t_lite.models.sequence_model import SequenceModel  # imported here, so that names are found without Keras

    if not issubclass(model_class, SequenceModel) or model_class.reads_any():
        return
    known = {**HParams().values(), **own_settings(model_class, **hparams.kinds())}
    for missing in (one for one in hparams.values() if one not in known):
        others = (other for other in registry.list_models() if missing in own_settings(registry.model(other)))
        if model := next(others, None):
            raise UserError(
                f"--hparams_set={name}: this set is for --model={model}, since {model_class.__name__} has no "
                f"{missing}. Use that model, or another set."
            )
