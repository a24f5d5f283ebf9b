"""Mirrors tensor2tensor's data_generators/text_problems.py."""

from t2t_lite.data.problem import *  # noqa: F403
