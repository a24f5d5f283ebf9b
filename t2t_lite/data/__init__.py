"""Problems, their records and their batches. `Problem` needs TensorFlow and is therefore imported at its first use."""

from t2t_lite.process.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
