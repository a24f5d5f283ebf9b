"""The cache of decoding: where a step is written, and which slots a beam sees."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers.cache import Past, add_to_cache, new_ancestry, see_ancestors, see_prompt, write_in_place
from tests.layers.backend import compiled
from tests.layers.equations import array
from tests.layers.harness import X

RNG = np.random.default_rng(0)


def test_beams_see_their_ancestors_slots():
    """Three beams and two steps: beam 2 continues beam 0, both others beam 1."""
    ancestry, mask = see_ancestors(new_ancestry(1, 3, 4), 0)
    own = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]  # slots of the first step, seen by each beam
    assert array(mask)[0].astype(int).tolist() == [[*row, *[0] * 9] for row in own]
    ancestry, mask = see_ancestors(ops.take(ancestry, [1, 1, 0], axis=1), 1)
    parents = [own[1], own[1], own[0]]
    assert array(ancestry)[0, :, :2].tolist() == [[1, 0], [1, 1], [0, 2]]
    seen = [[*parent, *row, *[0] * 6] for parent, row in zip(parents, own, strict=True)]
    assert array(mask)[0].astype(int).tolist() == seen


def test_slots_of_a_prompt_come_before_those_of_the_steps():
    mask = RNG.random((3, 2, 6)) > 0.5
    seen = array(see_prompt(ops.convert_to_tensor(mask), np.array([4, 0, 2], "int32"), 5))
    for row, prompt in enumerate([4, 0, 2]):
        assert seen[row].tolist() == [[True] * prompt + [False] * (5 - prompt) + [*own] for own in mask[row]]


@pytest.mark.parametrize("position", [2, None], ids=["in place", "at the end"])
def test_a_step_is_stored_in_the_caches_dtype(position):
    past, new = np.zeros((3, 2, 8, 4), "float16"), RNG.normal(size=(3, 2, 2, 4)).astype("float32")
    stored = add_to_cache(ops.convert_to_tensor(past), ops.convert_to_tensor(new), position)
    at = 8 if position is None else 4
    assert keras.backend.standardize_dtype(stored.dtype) == "float16" and stored.shape[2] == (8 if position else 10)
    np.testing.assert_array_equal(array(stored)[:, :, at : at + 2], new.astype("float16"))
    assert not array(stored)[:, :, :at].any() and not array(stored)[:, :, at + 2 :].any()


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("score", ["dot_product", {"type": "relative", "max_relative_position": 3}], ids=str)
def test_without_a_mask_beams_see_their_prompt_and_their_own_slots(score, in_place):
    """Two beams of each row, after prompts of different lengths, in a cache with two slots more than steps."""
    layer, lengths, slots = layers.MultiHeadAttention(2, score=score), [1, 3, 2], 5
    beams = RNG.normal(size=(3, 2, 3, 8)).astype("float32")
    layer.build(X.shape)
    past = layer.empty_past(3, slots * 2 if in_place else 0)
    past = past._replace(prompt=layer.prefill(X[:, :3])[1], lengths=ops.convert_to_tensor(lengths, "int32"))
    rows = [[np.concatenate([x[:n], beam]) for beam in own] for x, n, own in zip(X, lengths, beams, strict=True)]
    for i in range(3):
        output, past = layer.step(beams[:, :, i], past, i if in_place else None)
        for row, n, own in zip(array(output), lengths, rows, strict=True):
            full = array(layer(np.array(own), use_causal_mask=True))
            np.testing.assert_allclose(row, full[:, n + i], atol=1e-5)


@pytest.mark.parametrize("position", [-1, 3, np.int64(3)])
def test_a_step_outside_the_cache_is_refused(position):
    """The update would silently move to the nearest slots, whose keys it would overwrite."""
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape)
    with pytest.raises(ValueError, match=rf"position={position} is outside .* 3 steps"):
        layer.step(X[:, :2], layer.empty_past(3, 6), position)


def test_a_step_without_a_position_is_refused_by_a_cache_with_slots():
    """It would be appended after the slots, whose zeros it would read as keys."""
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape)
    with pytest.raises(ValueError, match=r"`position`.* 5 steps.* no slots"):
        layer.step(X[:, :1], layer.empty_past(3, 5))


def test_a_cached_step_compiled_equals_the_eager_one():
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape)
    past = RNG.normal(size=(3, 2, 5, 4)).astype("float32")

    def step(x, key, value, mask, position):
        return layer.step(x, Past(key, value), position, mask)[0]

    arguments = (X[:, :1], past, past, np.ones((3, 1, 5), bool), np.array(3, "int32"))
    eager = step(*map(ops.convert_to_tensor, arguments))
    np.testing.assert_allclose(array(compiled(step, *arguments)), array(eager), atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's alone")
def test_writing_in_place_equals_slice_update_and_leaves_the_past_as_it_was():
    import tensorflow as tf

    past, new = (RNG.normal(size=(2, 3, slots, 4)).astype("float32") for slots in (10, 2))
    signature = [tf.TensorSpec([None, 3, None, 4]), tf.TensorSpec([None, 3, 2, 4]), tf.TensorSpec([], tf.int32)]
    write = tf.function(write_in_place, input_signature=signature, autograph=False)
    held = ops.convert_to_tensor(past)
    for position in range(5):
        expected = ops.slice_update(past, (0, 0, 2 * position, 0), new)
        np.testing.assert_array_equal(write(held, new, tf.constant(position)), expected)
        np.testing.assert_array_equal(held, past)
