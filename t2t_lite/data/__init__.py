"""Problems, and their records and batches. `Problem` is imported when it is used: it needs TensorFlow."""

from t2t_lite.process.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
