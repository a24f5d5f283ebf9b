"""tensor2tensor's checkpoints (t2t-importer --from=tensor2tensor), and its modules for users' folders.

    from t2t_lite.extras.tensor2tensor import registry, text_problems, translate

For who comes from there. Each of these is the module here that has the same classes and functions; the page
docs/coming_from_tensor2tensor.md has the command that changes a folder's imports, and says what differs.
Uses t2t_lite.extras.autotune, for ranges of hyperparameters.
"""

import importlib
import sys

from t2t_lite.settings.tensor2tensor_names import module_answer

_MODULES = {
    "common_hparams": "t2t_lite.extras.tensor2tensor.common_hparams",
    "generator_utils": "t2t_lite.extras.tensor2tensor.generator_utils",
    "hparam": "t2t_lite.settings.config",
    "problem": "t2t_lite.extras.tensor2tensor.problem",
    "registry": "t2t_lite.registry",
    "text_encoder": "t2t_lite.extras.tensor2tensor.text_encoder",
    "text_problems": "t2t_lite.data.problem",
    "transformer": "t2t_lite.hparams.transformer",
    "translate": "t2t_lite.data.problem",
}

for _name, _module in _MODULES.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = importlib.import_module(_module)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(module_answer(name))
