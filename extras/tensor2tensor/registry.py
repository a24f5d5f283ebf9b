"""Mirrors tensor2tensor's utils/registry.py."""

from t2t_lite.registry import *  # noqa: F403
