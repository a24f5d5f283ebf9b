"""Mirrors tensor2tensor's models/__init__.py, whose import registers models; here a model is imported when named."""

from t2t_lite.extras.tensor2tensor import names_elsewhere

__getattr__ = names_elsewhere(__name__)
