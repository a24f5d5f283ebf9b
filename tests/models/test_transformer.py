"""The Transformer: sizes of the paper, weights of attention, what it refuses, Keras' own training."""

# Nearest tests of: t2t_lite/models/encoder_decoder.py

import numpy as np
import pytest
from keras import ops

from t2t_lite import registry
from t2t_lite.models import Transformer
from t2t_lite.models.shapes_only import shapes_only
from tests.models.every_model import ROWS

VOCAB = 20
SMALL = {
    "vocab_size": VOCAB, "hidden_size": 16, "filter_size": 32, "num_heads": 4, "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}  # fmt: skip
OPTIONS = {name: row for name, row in ROWS.items() if row.name == "transformer"}


def example(rng, target_vocab=VOCAB):
    inputs, targets = rng.integers(3, VOCAB, (3, 7)), rng.integers(3, target_vocab, (3, 6))
    inputs[1, 4:] = 0
    return inputs.astype("int32"), targets.astype("int32")


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.mark.slow
@pytest.mark.parametrize("name, expected", [("transformer_base_v1", 63_045_632), ("transformer_big_v1", 214_171_648)])
def test_parameters_of_the_paper(name, expected):
    model = shapes_only(Transformer, registry.hparams(name), 37_000)
    assert sum(int(np.prod(w.shape)) for w in model.trainable_weights) == expected


def test_the_matrix_of_the_softmax_is_made_once_a_decoding(rng):
    model = Transformer(**SMALL)
    cache = model.init_cache(model.encode(example(rng)[0]), 9)
    args = ops.zeros(3, "int32"), ops.convert_to_tensor(0, "int32")
    once, twice = (model.decode_step(*args, {**cache, "shared": times * cache["shared"]})[0] for times in (1.0, 2.0))
    np.testing.assert_allclose(ops.convert_to_numpy(twice), 2 * ops.convert_to_numpy(once), atol=1e-5)


def test_without_positions_the_encoder_is_equivariant(rng):
    model = Transformer(**SMALL, position="none")
    inputs = rng.integers(3, VOCAB, (1, 7)).astype("int32")
    order = rng.permutation(7)
    hidden = ops.convert_to_numpy(model.encode(inputs)["hidden"])
    permuted = ops.convert_to_numpy(model.encode(inputs[:, order])["hidden"])
    np.testing.assert_allclose(permuted, hidden[:, order], atol=1e-5)


@pytest.mark.few("transformer", "transformer_relative_values", "transformer_rotary", "transformer_restricted")
@pytest.mark.parametrize("name", OPTIONS)
def test_attention_weights_of_every_layer_and_head(name, rng):
    (inputs, targets), model = example(rng), OPTIONS[name].make()
    weights = model.attention_weights({"inputs": inputs, "targets": targets})
    assert [w.shape for w in weights["encoder"]] == [(3, 4, 7, 7)] * model.config["num_encoder_layers"]
    assert [w.shape for w in weights["decoder"]] == [(3, 4, 6, 6)] * model.config["num_decoder_layers"]
    for w in weights["memory"]:
        w = ops.convert_to_numpy(w)
        np.testing.assert_allclose(w.sum(-1), 1.0, atol=1e-5)
        assert w[1, :, :, 4:].max() < 1e-6  # padding is not seen


def test_weights_keep_their_order():
    """Checkpoints know the optimizer's variables by the order of the weights: earlier runs resume."""
    sizes = {"hidden_size": 8, "filter_size": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Transformer(20, **sizes, norm="pre")
    model.build()
    parts = dict.fromkeys(weight.path.split("/")[1] for weight in model.trainable_weights)
    assert [*parts] == ["embedding", "encoder", "decoder", "encoder_norm", "decoder_norm"]
