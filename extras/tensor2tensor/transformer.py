"""Mirrors tensor2tensor's models/transformer.py, whose sets are here."""

from t2t_lite.hparams.transformer import *  # noqa: F403
