"""Reads tensor2tensor's checkpoints and subwords (t2t-importer --from=tensor2tensor) and mirrors its modules.

    from t2t_lite.extras.tensor2tensor import registry, text_problems, translate

For users of tensor2tensor. Each module of this package provides the classes and functions of the tensor2tensor module
with the same name. docs/coming_from_tensor2tensor.md shows the command that rewrites a folder's imports, and lists the
differences.
Uses t2t_lite.extras.autotune for hyperparameter ranges.
"""

import importlib

from t2t_lite.errors import UserError
from t2t_lite.process.lazy import module_paths
from t2t_lite.settings.tensor2tensor_names import module_answer


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in module_paths(__name__):
        return importlib.import_module(f"{__name__}.{name}")
    raise ImportError(module_answer(name))


def names_elsewhere(module):
    """Returns the `__getattr__` of a mirrored module; for a name that the module lacks, it raises a `UserError`."""
    short = module.rpartition(".")[2]

    def get(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise UserError(f"{module_answer(f'{short}.{name}')}.")

    return get
