"""The systems that papers compare the Transformer with, a `--t2t_usr_dir`: each module is one, with its sets."""

import importlib

from t2t_lite.lazy import module_paths

for _name in module_paths(__name__):
    importlib.import_module(f"{__name__}.{_name}")
