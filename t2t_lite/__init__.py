"""t2t_lite: the Transformer of "Attention Is All You Need" on current TensorFlow and Keras, in tensor2tensor's manner.

Importing this package is cheap: sub-packages are imported when first used.
"""

import importlib
import os

from t2t_lite import keras_files
from t2t_lite.lazy import lazy_names

# oneDNN is off by default on AMD CPUs, where it makes training 1.3x faster. TensorFlow reads this when it is
# imported, and never again; a user's own setting wins.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

__version__ = "0.1.0"

keras_files.register()

_SUBMODULES = (
    "config", "data", "decoding", "errors", "evaluation", "export", "hparams", "layers", "models", "problems",
    "registry", "runs", "tasks", "training",
)  # fmt: skip


_NAMES = {
    "Generator": "t2t_lite.decoding.generator",
    "HParams": "t2t_lite.config",
    "Predictor": "t2t_lite.decoding.predictor",
    "Translator": "t2t_lite.decoding.translator",
    "load": "t2t_lite.runs.opening",
}
_get, _names = lazy_names(__name__, _NAMES)


def __getattr__(name):
    return importlib.import_module(f"t2t_lite.{name}") if name in _SUBMODULES else _get(name)


def __dir__():
    return sorted([*_names(), *_SUBMODULES])
