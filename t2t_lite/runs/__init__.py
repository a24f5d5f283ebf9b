"""Runs on disk. The functions are imported when they are used: they need TensorFlow."""

from t2t_lite.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
