"""The models, registered under their names for `--model`. Models from `extras` are imported on first use."""

from t2t_lite.models.encoder_decoder import EncoderDecoder
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.models.transformer import Transformer
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.process.registering_modules import names_in_extras

__all__ = ["EncoderDecoder", "SequenceModel", "Transformer", "TransformerEncoder", "TransformerLM"]

__getattr__ = names_in_extras(__name__, "register_model")
