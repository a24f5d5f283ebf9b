"""Mirrors tensor2tensor's models/transformer.py: its sets."""

from t2t_lite.hparams.transformer import *  # noqa: F403
