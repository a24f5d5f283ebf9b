"""Models; each is registered under the name that `--model` takes."""

from t2t_lite.models.lstm_lm import LSTMLanguageModel
from t2t_lite.models.transformer import Transformer
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.models.transformer_lm import TransformerLM

__all__ = ["LSTMLanguageModel", "Transformer", "TransformerEncoder", "TransformerLM"]
