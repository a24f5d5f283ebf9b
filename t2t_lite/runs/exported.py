"""Reads a SavedModel of t2t-exporter: the model's settings, vocabulary and weights.

    <export>/saved_model.pb, variables/       for servers; weights have the same names as in checkpoints
    <export>/assets.extra/t2t_lite/           hparams.json and the vocabulary, as in an output_dir, and export.json
    <export>/assets.extra/t2t_lite/model_2/   hparams.json of the second model of an ensemble, and so on

Servers ignore `assets.extra`.
"""

import json
import os
import re

from t2t_lite.errors import UserError, shown
from t2t_lite.files import exists, read_bytes
from t2t_lite.files.file_system import list_names
from t2t_lite.files.safe_json import MOST_BYTES, parse_json

FOLDER = os.path.join("assets.extra", "t2t_lite")
FACTS = "export.json"
_VARIABLES = os.path.join("variables", "variables")
_SCHEMA = {"format": int, "models": int, "steps": [int], "weights_dtype": str}
_FORMAT = 1


def model_names(count):
    """Returns the names of the models in an export: model, model_2, model_3 …"""
    return ["model", *(f"model_{number}" for number in range(2, count + 1))]


def find_variables(path):
    """Returns the checkpoint (without suffix) of an export or of the newest numbered export; None: no export.

    Args:
        path: str, a folder.
    """
    if not exists(os.path.join(path, "saved_model.pb")):
        names = list_names(path)
        numbers = [name for name in names if re.fullmatch(r"\d{1,18}", name)]
        path = os.path.join(path, max(numbers, key=int)) if numbers else path
    is_export = exists(os.path.join(path, "saved_model.pb"))
    return os.path.join(path, _VARIABLES) if is_export else None


def export_of(checkpoint):
    """Returns the export whose variables a checkpoint is, or None."""
    export = checkpoint.removesuffix(_VARIABLES).rstrip("/")
    is_export = export != checkpoint and exists(os.path.join(export, "saved_model.pb"))
    return export if is_export else None


def folder_of(checkpoint):
    """Returns the folder of a checkpoint's `hparams.json` and vocabulary: its own, or another one in an export."""
    export = export_of(checkpoint)
    return os.path.dirname(checkpoint) if export is None else os.path.join(export, FOLDER)


def read_facts(export):
    """Returns the contents of `export.json`: "models" (int), "steps" (list of int), "weights_dtype" and more.

    Raises:
        UserError: it is not an export of this package, or it is damaged.
    """
    path = os.path.join(export, FOLDER, FACTS)
    if not exists(path):
        raise UserError(f"{path}: no such file. Expected a SavedModel that t2t-exporter wrote.")
    facts = parse_json(read_bytes(path, MOST_BYTES), path, schema=_SCHEMA)
    if facts["format"] != _FORMAT:
        raise UserError(f"{path}: format {shown(facts['format'])}, expected {_FORMAT}: written by another version.")
    if not 1 <= facts["models"] == len(facts["steps"]):
        raise UserError(f"{path}: the numbers of models and steps differ. Expected one step per model.")
    return facts


def check_is_one(checkpoint, path):
    """Raises `UserError`, which names `path`, if a checkpoint is from the export of an ensemble."""
    export = export_of(checkpoint)
    if export and (count := read_facts(export)["models"]) > 1:
        raise UserError(f"{path}: an export of {count} models, an ensemble. Expected one model.")


def facts_json(**facts):
    """Returns the contents of `export.json`, bytes."""
    return (json.dumps({"format": _FORMAT, **facts}, indent=1) + "\n").encode()
