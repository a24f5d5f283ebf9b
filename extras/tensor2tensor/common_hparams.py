"""Mirrors tensor2tensor's layers/common_hparams.py."""

from t2t_lite.extras.autotune.ranged_hparams import RangedHParams as RangedHParams
from t2t_lite.settings.config import HParams


def basic_params1() -> HParams:
    """Returns default hyperparameters to start from (for a Transformer, start from `transformer.transformer_base`)."""
    return HParams()
