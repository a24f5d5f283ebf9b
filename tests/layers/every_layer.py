"""Every public layer in one table, small, with inputs: a new layer is one row.

Those of extras stand in `tests/extras/<name>/every_layer.py`.
"""

from t2t_lite import layers
from tests.layers.harness import IDS, MASK, MEMORY, Row, X
from tests.models.every_model import of_extras

__all__ = ["IDS", "MASK", "ROWS"]


def _encoder():
    return layers.TransformerEncoderLayer(2, 16, name="encoder")


def _decoder():
    return layers.TransformerDecoderLayer(2, 16, name="decoder")


_SIZES = {"num_heads": 2, "filter_size": 16}
ROWS = {
    "ClassHead": Row(layers.ClassHead, {"num_classes": 3, "pooler": True}),
    "Dropout": Row(layers.Dropout, {"rate": 0.5}, matrices=False),
    "FeedForward": Row(layers.FeedForward, {"filter_size": 16}),
    "LayerNormalization": Row(layers.LayerNormalization, {}, matrices=False),
    "LearnedPositionEmbedding": Row(layers.LearnedPositionEmbedding, {"max_length": 9}, matrices=False),
    "LeftRelativeAttention": Row(layers.LeftRelativeAttention, {"num_heads": 2, "max_relative_position": 3}),
    "MaskedIdsHead": Row(layers.MaskedIdsHead, {"size": 6}),
    "MultiHeadAttention": Row(layers.MultiHeadAttention, {"num_heads": 2, "dropout": 0.1}, X, {"value": MEMORY}),
    "RelativeAttention": Row(layers.RelativeAttention, {"num_heads": 2, "max_relative_position": 3}),
    "Residual": Row(layers.Residual, {"layer": lambda: layers.FeedForward(16)}),
    "RestrictedAttention": Row(layers.RestrictedAttention, {"num_heads": 2, "neighborhood": 3}),
    "SinusoidalPositionEmbedding": Row(layers.SinusoidalPositionEmbedding, {}, matrices=False),
    "SpanHead": Row(layers.SpanHead, {}, X, {"allowed": MASK}),
    "TokenEmbedding": Row(layers.TokenEmbedding, {"vocab_size": 9, "hidden_size": 8, "mask_zero": True}, IDS),
    "TransformerDecoderLayer": Row(layers.TransformerDecoderLayer, _SIZES, X, {"memory": MEMORY}),
    "TransformerEncoderLayer": Row(layers.TransformerEncoderLayer, _SIZES),
    "TransformerStack": Row(layers.TransformerStack, {"layers": [_decoder]}, X, {"memory": MEMORY}),
}
for _module in of_extras("every_layer"):
    ROWS |= _module.ROWS
