"""What encoder-decoders of any layers share: their embeddings, the shift of targets, and decoding from a state."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite.layers import TokenEmbedding
from t2t_lite.models.encoder_decoder import EncoderDecoder, shifted_right, tied_embeddings
from tests.layers.equations import array

INPUTS = np.array([[5, 6, 7, 1], [9, 1, 0, 0], [3, 4, 1, 0]], "int32")  # 3 rows of 4 ids
TARGETS = np.array([[7, 4, 6, 11, 1], [3, 1, 0, 0, 0], [8, 10, 1, 0, 0]], "int32")


class Summing(EncoderDecoder):
    """Predicts from the sum of the inputs and of the targets before."""

    def build_layers(self, shape):
        self.scale = self.add_weight(name="scale", shape=(shape[-1],), initializer="ones")

    def encode(self, inputs, training=None):
        self.build_if_needed()
        return {"sum": ops.sum(self.input_embedding(inputs), axis=1)}

    def decode(self, x, memory, training=None):
        return ops.cumsum(x, axis=1) * self.scale + ops.expand_dims(memory["sum"], 1)

    def first_state(self, memory):
        return ops.zeros_like(memory["sum"])

    def step(self, x, state, memory, position):
        state = state + x
        return state * self.scale + ops.expand_dims(memory["sum"], 1), state


@pytest.mark.parametrize("options", [{}, {"target_vocab_size": 17, "tie_embeddings": False}], ids=["tied", "untied"])
def test_steps_of_beams_are_one_pass(options):
    model = Summing(12, hidden_size=8, **options)
    logits = model({"inputs": INPUTS, "targets": TARGETS})
    vocab_size = options.get("target_vocab_size", 12)
    assert logits.shape == (3, 5, vocab_size) and model.target_vocab_size == vocab_size
    np.testing.assert_array_equal(array(model.compute_mask({"targets": TARGETS})), TARGETS != 0)
    cache, before = model.init_cache(model.encode(INPUTS), 5, beam_size=2), np.full(6, 11, "int32")
    for position in range(5):  # both beams of a row have its targets
        step, cache = model.decode_step(ops.convert_to_tensor(before), ops.convert_to_tensor(position), cache)
        np.testing.assert_allclose(array(step).reshape(3, 2, -1)[:, 1], array(logits)[:, position], atol=1e-5)
        before = np.repeat(TARGETS[:, position], 2)
    assert cache["beams"].shape == (3, 2, 8)


def test_the_configuration_is_the_constructors_arguments():
    model = Summing(12, hidden_size=8)
    config = {"vocab_size": 12, "target_vocab_size": None, "hidden_size": 8, "tie_embeddings": True}
    assert model.config == config
    assert model.token_embeddings() == {"inputs": model.input_embedding, "targets": model.target_embedding}
    for name in ("vocab_size", "target_vocab_size", "hidden_size"):
        with pytest.raises(ValueError, match=f"{name}=0"):
            Summing(**{**config, name: 0})


@pytest.mark.parametrize(
    "target_vocab_size, tie, sizes, names",
    [
        (None, True, (9, 9, 9), ["embedding", "embedding", "embedding"]),
        (7, True, (9, 7, 7), ["input_embedding", "target_embedding", "target_embedding"]),
        (None, False, (9, 9, 9), ["input_embedding", "target_embedding", "softmax_embedding"]),
        (7, False, (9, 7, 7), ["input_embedding", "target_embedding", "softmax_embedding"]),
    ],
)
def test_what_shares_a_matrix_is_one_layer(target_vocab_size, tie, sizes, names):
    def make(size, name, use_bias=False):
        return TokenEmbedding(size, 8, use_bias=use_bias, name=name)

    made = tied_embeddings(make, 9, target_vocab_size, tie, use_bias=True)
    assert [layer.name for layer in made] == names and tuple(layer.vocab_size for layer in made) == sizes
    assert [layer.use_bias for layer in made] == [name == names[-1] for name in names]
    assert len({id(layer) for layer in made}) == len({*names})


def test_targets_are_read_one_position_later():
    x = np.random.default_rng(0).normal(size=(3, 5, 8)).astype("float32")
    shifted = array(shifted_right(x))
    assert not shifted[:, 0].any()
    np.testing.assert_array_equal(shifted[:, 1:], x[:, :-1])
    assert keras.ops.shape(shifted_right(x[:, :0])) == (3, 0, 8)
