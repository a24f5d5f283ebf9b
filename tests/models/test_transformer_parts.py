"""The stacks that models are made of: which layers share their weights, and which options reach each layer."""

import pytest

from t2t_lite.layers import TransformerDecoderLayer, TransformerEncoderLayer
from t2t_lite.layers.key_patterns import WindowPattern
from t2t_lite.models import Transformer, TransformerLM
from tests.layers.kinds import RESTRICTED

SIZES = {"hidden_size": 12, "filter_size": 20, "num_heads": 3}


@pytest.mark.parametrize(
    ("num_layers", "num_groups", "expected"),
    [
        (4, None, [0, 1, 2, 3]), (4, 4, [0, 1, 2, 3]), (4, 1, [0, 0, 0, 0]), (4, 2, [0, 0, 1, 1]),
        (6, 3, [0, 0, 1, 1, 2, 2]), (5, 2, [0, 0, 0, 1, 1]), (7, 3, [0, 0, 0, 1, 1, 2, 2]), (5, 4, [0, 0, 1, 2, 3]),
    ],
)  # fmt: skip
def test_neighbouring_layers_of_a_group_are_one_layer(num_layers, num_groups, expected):
    """The kinds of attention take turns over the groups."""
    model = TransformerLM(20, **SIZES, num_layers=1, self_attention=["dot_product", RESTRICTED])
    stack = model.make_stack("decoder", TransformerDecoderLayer, num_layers, num_groups=num_groups)
    assert [layer.name for layer in stack.layers] == [f"decoder_{i}" for i in expected]
    assert len({id(layer) for layer in stack.layers}) == len({*expected})
    windows = [isinstance(layer.self_attention.layer.pattern, WindowPattern) for layer in stack.layers]
    assert windows == [i % 2 == 1 for i in expected]


def test_options_reach_each_layer_of_both_stacks_and_the_attention_to_the_memory():
    options = {"key_dim": 5, "value_dim": 7, "attention_dropout": 0.13, "attention_bias": True, "relu_dropout": 0.17}
    more = {"activation": "gelu", "dropout": 0.11, "norm_epsilon": 0.003, "norm": "pre"}
    model = Transformer(20, **SIZES, **options, **more, num_encoder_layers=2, num_decoder_layers=2)
    model.build()
    layers = [*model.encoder.layers, *model.decoder.layers]
    assert [type(layer) for layer in layers] == [TransformerEncoderLayer] * 2 + [TransformerDecoderLayer] * 2
    attentions = [layer.self_attention for layer in layers] + [layer.cross_attention for layer in model.decoder.layers]
    found = [each.layer for each in attentions]
    sizes = {(one.num_heads, one.query_size, one.value_size, one.use_bias, one.dropout_rate) for one in found}
    assert sizes == {(3, 5, 7, True, 0.13)}
    networks = [layer.feed_forward for layer in layers]
    inner = {(each.layer.filter_size, each.layer.activation, each.layer.dropout_rate) for each in networks}
    assert inner == {(20, "gelu", 0.17)}
    around = {(each.norm, each.dropout_rate, each.normalization.epsilon) for each in attentions + networks}
    assert around == {("pre", 0.11, 0.003)}


def test_positions_turn_self_attention_alone():
    """The memory has positions of another sequence."""
    model = Transformer(20, **SIZES, num_encoder_layers=1, num_decoder_layers=1, position="rotary", key_dim=4)
    model.build()
    (reader,), (writer,) = model.encoder.layers, model.decoder.layers
    attentions = (reader.self_attention, writer.self_attention, writer.cross_attention)
    assert [each.layer.positions for each in attentions] == ["rotary", "rotary", "none"]
