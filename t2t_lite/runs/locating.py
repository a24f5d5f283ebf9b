"""Finds a run or an export on disk and its settings, without loading the model or importing TensorFlow or Keras.

A SavedModel written by t2t-exporter contains the model's settings, vocabulary and weights:

    <export>/saved_model.pb, variables/       for servers; weights have the same names as in checkpoints
    <export>/assets.extra/t2t_lite/           hparams.json and the vocabulary, as in an output_dir, and export.json
    <export>/assets.extra/t2t_lite/model_2/   hparams.json of the second model of an ensemble, and so on

Servers ignore `assets.extra`.
"""

import dataclasses
import functools
import json
import os
import re

from t2t_lite import registry
from t2t_lite.errors import UserError, shown
from t2t_lite.files import exists, is_folder, list_files, read_json
from t2t_lite.files.file_system import list_names
from t2t_lite.runs.checkpoint_files import newest_checkpoint, parts_of_checkpoints
from t2t_lite.runs.run_config import (
    FILE_NAME,
    MOST_BYTES,
    check_registered,
    import_usr_dir,
    is_registered,
    read_run_config,
)

# Files in the folder of a run or of an export's weights. Files of the vocabulary may have other names as well.
_RUN_FILES = (
    r"model\.ckpt-.*|variables\..*|checkpoint|hparams\.json|flags.*\.txt|(train|eval)\.log|problem\.json|vocab.*|"
    r".*\.(model|subwords)"
)
EXPORT_FOLDER = os.path.join("assets.extra", "t2t_lite")
EXPORT_FACTS = "export.json"
_VARIABLES = os.path.join("variables", "variables")
_EXPORT_SCHEMA = {"format": int, "models": int, "steps": [int], "weights_dtype": str}
_EXPORT_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class LocatedRun:
    """A trained model on disk that has not been loaded.

    Attributes:
        checkpoint: str, path of the checkpoint, without suffix.
        config: dict, the contents of `hparams.json`.
    """

    checkpoint: str
    config: dict

    @functools.cached_property
    def problem(self):
        """The Problem, whose own settings, such as protected texts, are known after a call of `check_encoders`."""
        return registry.problem(self.config["problem"])

    def check_encoders(self, data_dir=None):
        """Raises `UserError` unless the run's vocabulary is in the checkpoint's folder or in data_dir."""
        encoders_and_folder(self.problem, self.config, folder_of(self.checkpoint), data_dir)


def find_run(path) -> LocatedRun:
    """Finds the trained model at `path` (see `open_run`), or returns a `LocatedRun` unchanged. Raises `UserError`."""
    if isinstance(path, LocatedRun):
        return path
    checkpoint = find_checkpoint(path)
    return LocatedRun(checkpoint, read_config_of(checkpoint))


def read_config_of(checkpoint):
    """Returns the `hparams.json` of a checkpoint, and imports the user's folder that the file names, if needed.

    Raises:
        UserError: the file or the user's folder is missing.
    """
    config = read_config(folder_of(checkpoint))
    if not is_registered(config):
        import_usr_dir(export_of(checkpoint) or os.path.dirname(checkpoint), config)
        check_registered(folder_of(checkpoint), config)
    return config


def read_config(folder):
    """Returns the `hparams.json` of a folder as a dict. Raises `UserError` if the file is missing."""
    config = read_run_config(folder)
    if config is None:
        raise UserError(
            f"{os.path.join(folder, FILE_NAME)}: no such file. This file names the model of a checkpoint. Expected a "
            "folder written by t2t-trainer or t2t-avg-all, or an export."
        )
    return config


def run_files(folder):
    """Returns the paths of a run's or an export's files: weights, settings, logs."""
    return list_files(folder, _RUN_FILES) + list_files(os.path.join(folder, "..", "assets.extra", "t2t_lite"), ".*")


def find_checkpoint(path):
    """Returns the checkpoint (without suffix) at a path, or the newest checkpoint in a folder of a run or of exports.

    Raises:
        UserError: the path does not lead to a checkpoint.
    """
    path = str(path).removesuffix(".index")
    if exists(path + ".index"):
        return path
    if not is_folder(path):
        if path.endswith(".keras") and exists(path):
            raise UserError(
                f"{path}: a model file of Keras, not a run. Load it with keras.saving.load_model, then write a run "
                "with the model's method save_run."
            )
        raise UserError(
            f"{path}: no such folder or checkpoint. Expected an output_dir of t2t-trainer, or a checkpoint in one, "
            f"such as {os.path.join(os.path.dirname(path) or '.', 'model.ckpt-1000')}."
        )
    newest = newest_checkpoint(path) or find_variables(path)
    if newest is None:
        parts = parts_of_checkpoints(path)
        only = f", only {parts[0]}, without its index" if parts else ""
        raise UserError(
            f"{path}: holds no checkpoint (model.ckpt-N){only}. Train there first, or wait for the first checkpoint."
        )
    return newest


def encoders_and_folder(problem, config, folder, data_dir=None):
    """Returns the encoders of the vocabulary with which a model was trained, and the folder in which it was found.

    Args:
        problem: Problem.
        config: dict, the contents of `hparams.json`.
        folder: str, the folder of the vocabulary.
        data_dir: str, another folder that may contain the vocabulary.

    Raises:
        UserError: the vocabulary is missing, or differs from the model's vocabulary.
    """
    try:
        encoders = problem.get_feature_encoders(folder)
    except UserError:
        if not data_dir:
            raise
        encoders, folder = problem.get_feature_encoders(data_dir), data_dir
    for side, expected in config["vocabulary_sha256"].items():
        fingerprint = encoders[side].fingerprint
        if fingerprint != expected:
            raise UserError(
                f"{folder}: the vocabulary of the {side} differs from the model's (SHA-256 {fingerprint[:12]}…, "
                f"expected {expected[:12]}…). Restore the original file: {config['problem']} needs "
                f"{', '.join(map(os.path.basename, problem.vocabulary_files(folder))) or 'its definition'}."
            )
    return encoders, folder


def model_names(count):
    """Returns the names of the models in an export: model, model_2, model_3 …"""
    return ["model", *(f"model_{number}" for number in range(2, count + 1))]


def find_variables(path):
    """Returns the checkpoint (without suffix) of a folder's export or newest complete numbered export, or None.

    Args:
        path: str, a folder.
    """
    numbers = sorted((name for name in list_names(path) if re.fullmatch("[0-9]{1,18}", name)), key=int, reverse=True)
    folders = [path, *(os.path.join(path, number) for number in numbers)]
    exports = (folder for folder in folders if exists(os.path.join(folder, "saved_model.pb")))
    return next((os.path.join(export, _VARIABLES) for export in exports), None)


def export_of(checkpoint):
    """Returns the folder of the export to which a checkpoint belongs, or None."""
    export = checkpoint.removesuffix(_VARIABLES).rstrip("/")
    is_export = export != checkpoint and exists(os.path.join(export, "saved_model.pb"))
    return export if is_export else None


def folder_of(checkpoint):
    """Returns the folder of a checkpoint's settings and vocabulary; in an export, it is not the checkpoint's folder."""
    export = export_of(checkpoint)
    return os.path.dirname(checkpoint) if export is None else os.path.join(export, EXPORT_FOLDER)


def read_facts(export):
    """Returns the contents of `export.json`: "models" (int), "steps" (list of int), "weights_dtype" and more.

    Raises:
        UserError: the export is damaged, or was not written by this package.
    """
    path = os.path.join(export, EXPORT_FOLDER, EXPORT_FACTS)
    if not exists(path):
        raise UserError(f"{path}: no such file. Expected a SavedModel written by t2t-exporter.")
    facts = read_json(path, _EXPORT_SCHEMA, MOST_BYTES)
    if facts["format"] != _EXPORT_FORMAT:
        raise UserError(
            f"{path}: format {shown(facts['format'])}, expected {_EXPORT_FORMAT}. The export was written by another "
            "version."
        )
    if not 1 <= facts["models"] == len(facts["steps"]):
        raise UserError(f"{path}: the numbers of models and steps differ. Expected one step per model.")
    return facts


def check_is_one(checkpoint, path):
    """Raises `UserError`, which names `path`, if a checkpoint belongs to the export of an ensemble."""
    export = export_of(checkpoint)
    if export and (count := read_facts(export)["models"]) > 1:
        raise UserError(f"{path}: this is an export of an ensemble of {count} models. Expected one model.")


def facts_json(**facts):
    """Returns the contents of a new `export.json` as bytes."""
    return (json.dumps({"format": _EXPORT_FORMAT, **facts}, indent=1) + "\n").encode()
