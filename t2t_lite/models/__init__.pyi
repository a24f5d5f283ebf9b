from t2t_lite.models.encoder_decoder import EncoderDecoder as EncoderDecoder
from t2t_lite.models.sequence_model import SequenceModel as SequenceModel
from t2t_lite.models.transformer import Transformer as Transformer
from t2t_lite.models.transformer_encoder import TransformerEncoder as TransformerEncoder
from t2t_lite.models.transformer_lm import TransformerLM as TransformerLM
