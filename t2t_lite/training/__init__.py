"""Training: the loop, its step, its checkpoints and what it says."""

__all__ = ["Trainer"]


def __getattr__(name):
    if name == "Trainer":  # imports TensorFlow
        from t2t_lite.training.trainer import Trainer

        return Trainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
