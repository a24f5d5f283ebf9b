"""Training: the loop, its step, its checkpoints and what it says; and what Keras' own `fit` needs of it."""

import importlib

_MODULES = {  # imported when asked for: the trainer imports TensorFlow
    "MaskedAccuracy": "masked_accuracy",
    "SmoothedCrossEntropy": "losses",
    "Trainer": "trainer",
}
__all__ = ["MaskedAccuracy", "SmoothedCrossEntropy", "Trainer"]


def __getattr__(name):
    if name in _MODULES:
        return getattr(importlib.import_module(f"t2t_lite.training.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
