"""Runs on disk. The functions are imported when they are used: they need TensorFlow."""

import importlib

_MODULES = {"open_run": "opening", "save_run": "saving"}
__all__ = sorted(_MODULES)


def __getattr__(name):
    if name in _MODULES:
        return getattr(importlib.import_module(f"t2t_lite.runs.{_MODULES[name]}"), name)
    raise AttributeError(f"module 't2t_lite.runs' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_MODULES])
