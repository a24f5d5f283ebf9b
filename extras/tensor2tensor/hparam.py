"""Mirrors tensor2tensor's utils/hparam.py."""

from t2t_lite.extras.tensor2tensor import names_elsewhere
from t2t_lite.settings.config import *  # noqa: F403

__getattr__ = names_elsewhere(__name__)
