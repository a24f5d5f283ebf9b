"""Stores in `.weights.h5` files the settings of the model, since the shapes reveal little of them."""

import json
import logging

import numpy as np

from t2t_lite.files.safe_json import parse_json
from t2t_lite.layers.checks import FileCheck
from t2t_lite.models.arguments import fixed_arguments
from t2t_lite.settings.ranges import typed_text

_LOGGER = logging.getLogger("t2t_lite")
_NAME = "settings"  # beside the model's own weights; files of version 0.1.0 have none


class SettingsInFiles(FileCheck):
    """Base of models whose `.weights.h5` files hold the constructor's arguments that checkpoints depend on.

    As with `--warm_start_from`, weights of a model with other settings are loaded with a warning, since some of them
    may be meant, such as another kind of attention; only heads that would be cut out of the kernels at other places are
    refused.
    """

    def save_own_variables(self, store):
        """Stores the model's own weights, and its settings."""
        super().save_own_variables(store)
        if settings := _settings(self):
            store[_NAME] = np.frombuffer(json.dumps(settings).encode(), "uint8")

    def load_own_variables(self, store):
        """Loads the model's own weights. Raises `ValueError` if the file is of a model with other heads."""
        self.check_file(store)
        super().load_own_variables({name: store[name] for name in store.keys() if name != _NAME})  # noqa: SIM118

    def refusal_of(self, store):
        """Returns a `ValueError` if a file is of a model with other heads, otherwise None; other settings are named."""
        if _NAME not in list(store.keys()):
            return None
        saved = parse_json(bytes(np.asarray(store[_NAME], "uint8")), "the file's settings", schema=dict)
        own = _settings(self)
        changed = {name: value for name, value in saved.items() if name in own and own[name] != value}
        values = (f"{name}={typed_text(value)} (here {typed_text(own[name])})" for name, value in changed.items())
        text = ", ".join(values)
        if "num_heads" in changed:
            return ValueError(
                f"{self.name}: the file is of a model with {text}. Its weights mean nothing in other heads."
            )
        if changed:
            _LOGGER.warning(f"{self.name}: the weights are of a model with other settings: {text}")
        return None


def _settings(model):
    """Returns {argument: value} of what a JSON file can hold, as it comes out of one."""
    found = {}
    for name, value in fixed_arguments(model).items():
        try:
            found[name] = json.loads(json.dumps(getattr(value, "__name__", value)))  # functions have one
        except TypeError:  # an initializer, for one, whose values the weights have replaced
            continue
    return found
