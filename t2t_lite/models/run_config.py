"""`hparams.json`: what a run was trained with, and the model that follows from it."""

import json
import os

import keras
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.config import HParams
from t2t_lite.data.files import write_bytes
from t2t_lite.errors import UserError
from t2t_lite.layers import number_dropouts

FILE_NAME = "hparams.json"
_FORMAT = 1
_KEYS = {
    "format": int,
    "problem": str,
    "model": str,
    "hparams_set": str,
    "vocab_size": int,
    "target_vocab_size": int | None,
    "vocabulary_sha256": dict,
    "usr_dir": str,
    "hparams": dict,
}


def write_run_config(directory, config):
    """Writes `<directory>/hparams.json`, under a temporary name first.

    Args:
        directory: str, an output_dir.
        config: dict of "problem", "model", "hparams_set" (names), "vocab_size", "target_vocab_size" (None: shared),
            "vocabulary_sha256" ({"inputs", "targets"}), "usr_dir" (str or "") and "hparams" (name -> value).
    """
    text = json.dumps({"format": _FORMAT, **config}, indent=1, sort_keys=True) + "\n"
    write_bytes(os.path.join(directory, FILE_NAME), text.encode())


def read_run_config(directory):
    """Returns what `write_run_config` wrote, or None where there is no such file.

    Raises:
        UserError: the file is not such JSON.
    """
    path = os.path.join(directory, FILE_NAME)
    if not tf.io.gfile.exists(path):
        return None
    try:
        with tf.io.gfile.GFile(path) as file:
            config = json.loads(file.read())
    except (ValueError, tf.errors.OpError) as error:
        raise UserError(f"{path}: not readable as JSON: {str(error).splitlines()[0]}") from error
    for key, kind in _KEYS.items():
        if not isinstance(config, dict) or key not in config or not isinstance(config[key], kind):
            raise UserError(
                f"{path}: {key!r} is missing or of the wrong type. Expected the file that t2t-trainer wrote."
            )
    if config["format"] != _FORMAT:
        raise UserError(f"{path}: format {config['format']}, expected {_FORMAT}: written by another version.")
    return config


def build_model(config):
    """Makes the model of a run, with all its weights.

    Args:
        config: as `write_run_config` takes it.

    Raises:
        UserError: unknown model or hyperparameters without meaning for it.
    """
    hparams = HParams.from_dict(config["hparams"])
    model_class = registry.model(config["model"])
    model = model_class.from_hparams(hparams, config["vocab_size"], config["target_vocab_size"])
    if not model.built or not model.weights:
        ids = keras.ops.ones((1, 2), "int32")
        model({"inputs": ids, "targets": ids}, training=False)
    number_dropouts(model)
    return model
