"""Mirrors tensor2tensor's utils/hparam.py."""

from t2t_lite.settings.config import *  # noqa: F403
