"""Keras layers of the Transformer, written with `keras.ops`. Layers from `extras` are imported on first use."""

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.attention_kinds import (
    SELF_ATTENTION,
    LeftRelativeAttention,
    RelativeAttention,
    RestrictedAttention,
    make_self_attention,
)
from t2t_lite.layers.attention_scores import AttentionScore
from t2t_lite.layers.context import Context, Results
from t2t_lite.layers.dropout import Dropout, ScopedSeed, dropout_seed, normal, number_seeds, uniform
from t2t_lite.layers.encoder_heads import ClassHead, MaskedIdsHead, SpanHead
from t2t_lite.layers.feed_forward import FeedForward, make_feed_forward
from t2t_lite.layers.key_patterns import Pattern
from t2t_lite.layers.masks import causal_mask, masked_softmax
from t2t_lite.layers.positions import LearnedPositionEmbedding, SinusoidalPositionEmbedding, by_key
from t2t_lite.layers.residual import LayerNormalization, Residual
from t2t_lite.layers.stack import TransformerStack
from t2t_lite.layers.token_embedding import TokenEmbedding
from t2t_lite.layers.transformer_layers import TransformerDecoderLayer, TransformerEncoderLayer
from t2t_lite.process.registering_modules import names_in_extras

__all__ = [
    "SELF_ATTENTION",
    "AttentionScore",
    "ClassHead",
    "Context",
    "Dropout",
    "FeedForward",
    "LayerNormalization",
    "LearnedPositionEmbedding",
    "LeftRelativeAttention",
    "MaskedIdsHead",
    "MultiHeadAttention",
    "Pattern",
    "RelativeAttention",
    "Residual",
    "RestrictedAttention",
    "Results",
    "ScopedSeed",
    "SinusoidalPositionEmbedding",
    "SpanHead",
    "TokenEmbedding",
    "TransformerDecoderLayer",
    "TransformerEncoderLayer",
    "TransformerStack",
    "by_key",
    "causal_mask",
    "dropout_seed",
    "make_feed_forward",
    "make_self_attention",
    "masked_softmax",
    "normal",
    "number_seeds",
    "uniform",
]

__getattr__ = names_in_extras(__name__, "register_keras_serializable")
