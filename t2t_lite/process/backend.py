"""Chooses and checks Keras' backend, which must be TensorFlow for commands, training, decoding and export."""

import json
import os
import sys

from t2t_lite.errors import UserError

_VARIABLE = "KERAS_BACKEND"


def check_tensorflow(what):
    """Raises `UserError`, whose message begins with `what`, if Keras' backend is not TensorFlow."""
    import keras

    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise UserError(
            f"{what} needs TensorFlow, but Keras was imported with the backend {backend}. Expected "
            f"{_VARIABLE}=tensorflow, set before Python imports Keras."
        )


def choose_tensorflow():
    """Sets Keras' backend to TensorFlow in a command; returns any other backend that the user has chosen, or "".

    Raises:
        UserError: Keras was already imported with a different backend.
    """
    if "keras" in sys.modules:
        check_tensorflow("The command")
    chosen = _chosen()
    os.environ[_VARIABLE] = "tensorflow"
    return "" if chosen.endswith("tensorflow") else chosen


def _chosen():
    """Describes the backend that the user has chosen and where it is set; returns "" if nothing is set."""
    if os.environ.get(_VARIABLE):
        return f"{_VARIABLE}={os.environ[_VARIABLE]}"
    path = os.path.join(os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras"), "keras.json")
    try:
        with open(path, encoding="utf-8") as file:
            backend = json.load(file)["backend"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # Keras also ignores an unreadable or invalid file
    return f"{path}: backend={backend}"
