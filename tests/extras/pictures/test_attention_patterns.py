"""What the layers of a model see, and that the model's own weights are there and nowhere else."""

import numpy as np
import pytest
from keras import ops

from t2t_lite.errors import UserError
from t2t_lite.extras.memory.transformer_memory import TransformerMemory
from t2t_lite.extras.pictures.attention_patterns import attention_patterns
from t2t_lite.models import Transformer, TransformerLM
from tests.layers.patterns import visible

SIZES = {"hidden_size": 8, "filter_size": 8, "num_heads": 2}
SIDES = {"num_encoder_layers": 1, "num_decoder_layers": 1}
LOCAL = {"type": "local_1d", "block_length": 3}
STRIDED = {"type": "strided+dot_product_relative_v2", "stride": 4, "max_relative_position": 4}
BLOCKS = {"type": "local_2d", "block_height": 2, "block_width": 2, "image_width": 4}
LENGTH = 15


@pytest.mark.slow
def test_each_pattern_is_there_once_with_its_layers_and_holds_the_models_weights():
    kinds = [LOCAL, STRIDED, LOCAL, BLOCKS]
    model = TransformerLM(20, num_layers=4, self_attention=kinds, **SIZES)
    found = attention_patterns(model, LENGTH)
    assert [(one.kind, one.layers, one.is_full, one.before) for one in found] == [
        ("decoder", layers, False, 0) for layers in ([1, 3], [2], [4])
    ]
    assert [one.name for one in found] == [
        "local_1d(block_length=3)",
        "strided(stride=4)",
        "local_2d(block_height=2;block_width=2;image_width=4;blocks_above=1;blocks_beside=1)",
    ]
    cases = [("local_1d", (3,)), ("strided", (4,)), ("local_2d", (2, 2, 4, 1, 1))]
    weights = model.attention_weights({"targets": np.arange(3, 3 + LENGTH)[None]})["decoder"]
    for one, case in zip(found, cases, strict=True):
        np.testing.assert_array_equal(one.visible, visible(LENGTH, case))
        for layer in one.layers:
            of_layer = ops.convert_to_numpy(weights[layer - 1])[0]
            np.testing.assert_allclose(of_layer.sum(-1), 1, atol=1e-5)
            np.testing.assert_array_equal(of_layer > 0, np.stack([one.visible] * 2))


def test_an_encoder_sees_to_both_sides_and_a_decoder_what_is_earlier():
    model = Transformer(20, self_attention={"type": "restricted", "neighborhood": 3}, **SIDES, **SIZES)
    encoder, decoder = attention_patterns(model, 5)
    assert (encoder.name, decoder.name) == ("restricted(neighborhood=3)",) * 2
    assert encoder.visible[2].tolist() == [False, True, True, True, False]
    assert decoder.visible[3].tolist() == [False, True, True, True, False]
    full = attention_patterns(Transformer(20, **SIDES, **SIZES), 3)
    assert [(one.name, one.is_full, one.visible.tolist()) for one in full] == [
        ("full", True, np.ones((3, 3), bool).tolist()),
        ("full", True, np.tri(3, dtype=bool).tolist()),
    ]


def test_a_memory_is_before_the_first_query():
    model = TransformerMemory(20, num_layers=1, memory_length=2, **SIZES)
    (one,) = attention_patterns(model, 3)
    assert one.before == 2
    np.testing.assert_array_equal(one.visible, np.concatenate([np.ones((3, 2), bool), np.tri(3, dtype=bool)], 1))


def test_a_model_without_stacks():
    with pytest.raises(UserError, match="model object"):
        attention_patterns(object(), 3)
