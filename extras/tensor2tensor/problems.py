"""Mirrors tensor2tensor's problems.py."""

from t2t_lite.extras.tensor2tensor import names_elsewhere
from t2t_lite.registry import list_problems as available
from t2t_lite.registry import problem

__all__ = ["available", "problem"]
__getattr__ = names_elsewhere(__name__)
