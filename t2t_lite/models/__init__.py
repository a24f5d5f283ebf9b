"""Models; each is registered under the name that `--model` takes."""

from t2t_lite.models.transformer import Transformer

__all__ = ["Transformer"]
