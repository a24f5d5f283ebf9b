"""Training: the loop, its step, its checkpoints and what it says."""

from t2t_lite.training.trainer import Trainer

__all__ = ["Trainer"]
