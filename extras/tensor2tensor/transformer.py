"""Mirrors the hparams sets in tensor2tensor's models/transformer.py."""

from t2t_lite.hparams.transformer import *  # noqa: F403
