"""Mirrors tensor2tensor's data_generators/translate.py."""

from t2t_lite.data.problem import *  # noqa: F403
from t2t_lite.extras.tensor2tensor import names_elsewhere

__getattr__ = names_elsewhere(__name__)
