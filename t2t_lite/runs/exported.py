"""What of a SavedModel of t2t-exporter this package reads again: the model's settings, vocabulary and weights.

    <export>/saved_model.pb, variables/       the server's; weights lie in it under the names that checkpoints have
    <export>/assets.extra/t2t_lite/           hparams.json and the vocabulary, as in an output_dir, and export.json
    <export>/assets.extra/t2t_lite/model_2/   hparams.json of the second model of an ensemble, and so on

A server does not look at `assets.extra`.
"""

import json
import os
import re

import tensorflow as tf

from t2t_lite.errors import UserError, shown
from t2t_lite.files import read_bytes
from t2t_lite.files.safe_json import MOST_BYTES, parse_json

FOLDER = os.path.join("assets.extra", "t2t_lite")
FACTS = "export.json"
_VARIABLES = os.path.join("variables", "variables")
_SCHEMA = {"format": int, "models": int, "steps": [int], "weights_dtype": str}
_FORMAT = 1


def model_names(count):
    """Returns what the weights of an export's models lie under: model, model_2, model_3 …"""
    return ["model", *(f"model_{number}" for number in range(2, count + 1))]


def find_variables(path):
    """Returns the checkpoint (without suffix) in an export, or in the newest one of numbered exports; None: no export.

    Args:
        path: str, a folder.
    """
    if not tf.io.gfile.exists(os.path.join(path, "saved_model.pb")):
        names = [name.rstrip("/") for name in tf.io.gfile.listdir(path)]
        numbers = [name for name in names if re.fullmatch(r"\d{1,18}", name)]
        path = os.path.join(path, max(numbers, key=int)) if numbers else path
    is_export = tf.io.gfile.exists(os.path.join(path, "saved_model.pb"))
    return os.path.join(path, _VARIABLES) if is_export else None


def export_of(checkpoint):
    """Returns the export that a checkpoint is the variables of, or None."""
    export = checkpoint.removesuffix(_VARIABLES).rstrip("/")
    is_export = export != checkpoint and tf.io.gfile.exists(os.path.join(export, "saved_model.pb"))
    return export if is_export else None


def folder_of(checkpoint):
    """Returns the folder that has a checkpoint's `hparams.json` and vocabulary: its own, or in an export another."""
    export = export_of(checkpoint)
    return os.path.dirname(checkpoint) if export is None else os.path.join(export, FOLDER)


def read_facts(export):
    """Returns what the exporter wrote down, a dict: "models" (int), "steps" (list of int), "weights_dtype" and more.

    Raises:
        UserError: not an export of this package, or a damaged one.
    """
    path = os.path.join(export, FOLDER, FACTS)
    if not tf.io.gfile.exists(path):
        raise UserError(f"{path}: no such file. Expected a SavedModel that t2t-exporter wrote.")
    facts = parse_json(read_bytes(path, MOST_BYTES), path, schema=_SCHEMA)
    if facts["format"] != _FORMAT:
        raise UserError(f"{path}: format {shown(facts['format'])}, expected {_FORMAT}: written by another version.")
    if not 1 <= facts["models"] == len(facts["steps"]):
        raise UserError(f"{path}: the numbers of models and steps differ. Expected one step per model.")
    return facts


def check_is_one(checkpoint, path):
    """Raises `UserError`, which names `path`, where a checkpoint is the variables of an ensemble's export."""
    export = export_of(checkpoint)
    if export and (count := read_facts(export)["models"]) > 1:
        raise UserError(f"{path}: an export of {count} models, an ensemble. Expected one model.")


def facts_json(**facts):
    """Returns the contents of `export.json`, bytes."""
    return (json.dumps({"format": _FORMAT, **facts}, indent=1) + "\n").encode()
