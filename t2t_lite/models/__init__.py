"""Models; each is registered under the name that `--model` takes."""

from t2t_lite.models.encoder_decoder import EncoderDecoder
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.models.transformer import Transformer
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.models.transformer_memory import TransformerMemory
from t2t_lite.models.xlnet import XLNet

__all__ = ["EncoderDecoder", "SequenceModel", "Transformer", "TransformerEncoder", "TransformerLM", "TransformerMemory"]
__all__ = ["SequenceModel", "Transformer", "TransformerEncoder", "TransformerLM", "TransformerMemory", "XLNet"]
from t2t_lite.models.transformer_moe import TransformerMoe

__all__ = ["SequenceModel", "Transformer", "TransformerEncoder", "TransformerLM", "TransformerMemory", "TransformerMoe"]
from t2t_lite.models.universal_transformer import UniversalTransformer

__all__ = [
    "SequenceModel",
    "Transformer",
    "TransformerEncoder",
    "TransformerLM",
    "TransformerMemory",
    "UniversalTransformer",
]
