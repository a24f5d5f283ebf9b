"""Problems of texts (mirrors tensor2tensor's text_problems.py). `t2t_lite.data.problem` has the same names."""

from t2t_lite.process.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
