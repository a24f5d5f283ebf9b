"""Training: the loop, its step, its checkpoints and what it says; and what Keras' own `fit` needs of it."""

from t2t_lite.process.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
