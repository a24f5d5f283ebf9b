"""Heads with patterns of their own against dense attention under each head's predicate."""

# Nearest tests of: t2t_lite/layers/key_patterns.py, t2t_lite/layers/attention_kinds.py

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import check_layer
from tests.layers.kinds import needs, registered
from tests.layers.patterns import RNG, SCORES, X, check_steps_of_beams, pattern, steps, visible

CASES = registered(
    {
        "full:window": [("full", ()), ("window", (3,))],
        "strided:fixed": [("strided", (3,)), ("fixed", (4, 2))],
        "full:local_1d": [("full", ()), ("local_1d", (3,))],
        "local_2d:window:local_1d": [("local_2d", (2, 2, 4, 1, 1)), ("window", (3,)), ("local_1d", (2,))],
    }
)


def patterns(case):
    return [pattern(each) for each in CASES[case]]


def made(case, score="dot_product", **options):
    """A layer of two heads for each pattern, and one with the same weights that sees what a mask says."""
    options = {"num_heads": 2 * len(CASES[case]), "key_dim": 5, "value_dim": 3, "score": score, **options}
    layer, full = layers.MultiHeadAttention(**options, pattern=patterns(case)), layers.MultiHeadAttention(**options)
    weights = None
    for each in (layer, full):
        each.build((None, None, 8))
        weights = weights or [RNG.normal(size=w.shape) / 2 for w in each.weights]
        each.set_weights(weights)
    return layer, full


def seen(length, case):
    """Which keys each head sees, [1, heads, T, T]."""
    return np.stack([visible(length, each) for each in CASES[case] for _ in range(2)])[None]


@pytest.mark.slow
@pytest.mark.few("strided:fixed")
@pytest.mark.parametrize("case", CASES)
def test_all_lengths_around_the_edges_of_blocks(case, in_parts):
    layer, full = made(case)
    if keras.backend.backend() != "torch":  # whose maximum of no numbers has no shape in Keras
        assert layer(X[:, :0], use_causal_mask=True).shape == (2, 0, 8)
    for length in (1, 3, 4, 7, 8, 9, 13):
        expected = full(X[:, :length], attention_mask=seen(length, case))
        output = layer(X[:, :length], use_causal_mask=True)
        np.testing.assert_allclose(array(output), array(expected), atol=1e-5, err_msg=str(length))
    _, weights = layer(X[:, :9], use_causal_mask=True, return_attention_scores=True)
    assert ((array(weights) > 0) == seen(9, case)).all()


@pytest.mark.slow
@pytest.mark.few("full:local_1d-memory", "strided:fixed-relative_v2")
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("case", CASES)
def test_any_score_padded_and_step_by_step(case, score, in_parts):
    layer, full = made(case, SCORES[score])
    expected = array(full(X[:, :14], attention_mask=seen(14, case)))
    np.testing.assert_allclose(array(layer(X[:, :14], use_causal_mask=True)), expected, atol=1e-5)
    padded = layer(X, use_causal_mask=True, query_mask=np.arange(31) < np.array([[31], [14]]))
    np.testing.assert_allclose(array(padded)[1, :14], expected[1], atol=1e-5)
    lengths = np.array([8, 3], "int32")
    rest = np.stack([row[n : n + 4] for row, n in zip(X, lengths, strict=True)])
    continued = np.stack([row[n : n + 4] for row, n in zip(expected, lengths, strict=True)])
    np.testing.assert_allclose(steps(layer, rest, X[:, :8], lengths), continued, atol=1e-5)
    np.testing.assert_allclose(steps(layer, X[:, :8], count=8), expected[:, :8], atol=1e-5)
    context = layers.Context(ops.convert_to_tensor(X[:, :9]))
    output = layer(X[:, 9:14], use_causal_mask=True, context=context)
    np.testing.assert_allclose(array(output), expected[:, 9:], atol=1e-5)


@pytest.mark.slow
def test_two_beams_read_their_own_slots():
    check_steps_of_beams(made("full:window")[0], X[:, :9])


def test_an_encoders_heads_may_have_a_window(in_parts):
    options = {"num_heads": 2, "key_dim": 4}
    window, full = {"type": "window", "neighborhood": 5}, "full"
    layer = layers.MultiHeadAttention(**options, pattern=[full, window])
    layer.build((None, None, 8))
    outputs = []
    for kind in (full, window):
        one = layers.MultiHeadAttention(**options, pattern=kind)
        one.build((None, None, 8))
        kernels = [array(w) for w in layer.get_weights()]
        kernels[-1][4 * (kind == full) : 4 + 4 * (kind == full)] = 0  # the other head's part of the output
        one.set_weights(kernels)
        outputs.append(array(one(X, query_mask=np.arange(31) < np.array([[31], [14]]))))
    output = array(layer(X, query_mask=np.arange(31) < np.array([[31], [14]])))
    np.testing.assert_allclose(output[0], sum(outputs)[0], atol=1e-5)
    np.testing.assert_allclose(output[1, :14], sum(outputs)[1, :14], atol=1e-5)


def test_dropout_of_the_groups_of_heads_differs(in_parts):
    window = {"type": "window", "neighborhood": 4}
    layer = layers.MultiHeadAttention(2, dropout=0.5, pattern=[window, window])
    layer.build((None, None, 8))
    kernels = [array(w) for w in layer.get_weights()]
    for kernel in kernels[:3]:
        kernel[:, 4:] = kernel[:, :4]
    kernels[3] = np.concatenate([np.eye(8)[:4], -np.eye(8)[:4]])  # the heads' difference
    layer.set_weights(kernels)
    assert np.abs(array(layer(X, use_causal_mask=True))).max() < 1e-6
    with layers.dropout_seed(ops.convert_to_tensor(3, "int32")):
        layers.number_seeds(keras.Sequential([layer]))
        assert np.abs(array(layer(X, use_causal_mask=True, training=True))).max() > 0.1


@pytest.mark.long
def test_contract(in_parts, tmp_path):
    options = {"num_heads": 4, "pattern": patterns("full:window"), "score": SCORES["relative_v2"], "dropout": 0.2}
    check_layer(layers.MultiHeadAttention, options, X, 6, tmp_path)


@pytest.mark.parametrize(
    "pattern, words",
    [
        ([], "0 kinds in `pattern`.*num_heads=4"),
        (["full"] * 3, "3 kinds in `pattern`.*num_heads=4"),
        (["full", "loca_1d"], "`pattern` .*'loca_1d'"),
    ],
)
def test_bad_patterns(pattern, words):
    with pytest.raises(ValueError, match=words):
        layers.MultiHeadAttention(4, pattern=pattern)


@needs("strided", "fixed")
def test_scores_are_those_of_each_head():
    layer, full = made("strided:fixed")
    strided, fixed = (layers.MultiHeadAttention(4, pattern=p).pattern for p in patterns("strided:fixed"))
    assert full.flops(64) == 2 * 4 * (5 + 3) * 64 > layer.flops(64) > 0
    assert layer.pattern.seen(64) == (strided.seen(64) + fixed.seen(64)) / 2 < 64


@needs("local_1d")
@pytest.mark.parametrize(
    "kind", [{"pattern": ["full", {"type": "local_1d", "block_length": 3}]}, {"type": "local_1d", "block_length": 3}]
)
def test_the_layer_of_a_kind(kind):
    layer = layers.make_self_attention(kind, 0, num_heads=2)
    assert layer.pattern.needs_order or layer.pattern.patterns[1].needs_order
    with pytest.raises(ValueError, match=r"`self_attention` .* encoder"):
        layers.make_self_attention(kind, 0, has_order=False, num_heads=2)
