"""Runs on disk. The functions are imported when they are used: they need TensorFlow."""

from t2t_lite.lazy import lazy_names

_MODULES = {"open_run": "t2t_lite.runs.opening", "save_run": "t2t_lite.runs.saving"}
__all__ = sorted(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
