"""Mirrors tensor2tensor's data_generators/translate.py."""

from t2t_lite.data.problem import *  # noqa: F403
