"""tensor2tensor's checkpoints and subwords (t2t-importer --from=tensor2tensor), and its modules for users' folders.

    from t2t_lite.extras.tensor2tensor import registry, text_problems, translate

For users of tensor2tensor. Each name stands for the module that has the same classes and functions here; the page
docs/coming_from_tensor2tensor.md has the command that changes a folder's imports, and lists the differences.
Uses t2t_lite.extras.autotune, for ranges of hyperparameters.
"""

import importlib

from t2t_lite.process.lazy import module_paths
from t2t_lite.settings.tensor2tensor_names import module_answer


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in module_paths(__name__):
        return importlib.import_module(f"{__name__}.{name}")
    raise ImportError(module_answer(name))
