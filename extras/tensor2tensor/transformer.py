"""Mirrors the hparams sets in tensor2tensor's models/transformer.py."""

from t2t_lite.extras.tensor2tensor import names_elsewhere
from t2t_lite.hparams.transformer import *  # noqa: F403

__getattr__ = names_elsewhere(__name__)
