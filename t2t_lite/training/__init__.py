"""Training: the loop, its step, its checkpoints and what it says; and what Keras' own `fit` needs of it."""

from t2t_lite.lazy import lazy_names

_MODULES = {  # imported when asked for: the trainer imports TensorFlow
    "CheckpointSettings": "t2t_lite.training.settings",
    "DeviceSettings": "t2t_lite.training.settings",
    "EarlyStopping": "t2t_lite.training.settings",
    "EvaluationSettings": "t2t_lite.training.settings",
    "LogSettings": "t2t_lite.training.settings",
    "MaskedAccuracy": "t2t_lite.training.losses",
    "SmoothedCrossEntropy": "t2t_lite.training.losses",
    "Trainer": "t2t_lite.training.trainer",
}
__all__ = sorted(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
