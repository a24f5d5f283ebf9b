"""Training: the loop, its steps, evaluations and messages, and losses and metrics for Keras' own `fit`."""

from t2t_lite.process.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
