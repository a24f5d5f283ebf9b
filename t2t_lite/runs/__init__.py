"""Reads and writes training runs on disk. The functions are imported lazily, since they need TensorFlow."""

from t2t_lite.process.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
