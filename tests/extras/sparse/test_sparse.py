"""The Sparse Transformer's patterns, against its equations written as loops."""

import keras
import numpy as np
import pytest

from t2t_lite import layers
from t2t_lite.extras.sparse import sparse
from t2t_lite.extras.sparse.sparse import Fixed, Strided
from tests.layers.equations import array, attention_in_numpy

X = np.random.default_rng(0).normal(size=(2, 157, 8)).astype("float32")
CASES = {"strided": Strided(5), "strided above the smallest block": Strided(37), "fixed": Fixed(7, 2)}
OPTIONS = {"strided": {"type": "strided", "stride": 5}, "fixed": {"type": "fixed", "stride": 7, "summary": 2}}
OPTIONS["strided above the smallest block"] = {"type": "strided", "stride": 37}


def sees(pattern, i, j):
    """Sections 4.2 and 4.3 of the paper, one pair of positions at a time."""
    if isinstance(pattern, Strided):
        return j <= i and (i - j < pattern.stride or (i - j) % pattern.stride == 0)
    same_block = i // pattern.stride == j // pattern.stride
    return j <= i and (same_block or j % pattern.stride in range(pattern.stride - pattern.summary, pattern.stride))


def visible(pattern, length):
    return np.array([[sees(pattern, i, j) for j in range(length)] for i in range(length)])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("training", [False, True])
def test_attention_in_parts_is_dense_attention_to_the_papers_positions(name, training):
    """Long enough for parts; the last block is incomplete; keys that are padding are not seen."""
    layer = layers.MultiHeadAttention(2, pattern=OPTIONS[name])
    layer.build((None, None, 8))
    seen = visible(CASES[name], 157)
    size = max(32, layer.pattern.stride) if "strided" in name else 7  # blocks have 32 positions at least
    assert layer.pattern.parts(157, True)[0].mask(157).shape[2] == size
    for there in (157, 90):
        mask = np.tile(np.arange(157) < there, (2, 1))
        expected = attention_in_numpy(layer, X, X, seen & mask[0])
        output = array(layer(X, use_causal_mask=True, query_mask=mask, training=training))
        np.testing.assert_allclose(output[:, :there], expected[:, :there], atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_short_sequences_in_parts(name, monkeypatch):
    """Around the edges of blocks, with distances, which count in each part."""
    monkeypatch.setattr(sparse, "is_short", lambda *sizes: False)
    score = {"type": "relative", "max_relative_position": 6, "add_relative_to_values": True}
    layer, full = (layers.MultiHeadAttention(2, score=score, pattern=kind) for kind in (OPTIONS[name], "full"))
    for each in (layer, full):
        keras.utils.set_random_seed(3)
        each.build((None, None, 8))
    for length in (1, 5, 8, 14, 38, 76):
        expected = full(X[:, :length], attention_mask=visible(CASES[name], length))
        np.testing.assert_allclose(
            array(layer(X[:, :length], use_causal_mask=True)), array(expected), atol=1e-5, err_msg=str(length)
        )


@pytest.mark.parametrize("name", CASES)
def test_a_step_reads_each_position_that_it_sees_once(name):
    pattern = CASES[name]
    for at in (0, 6, 7, 41, 76):
        positions, seen = pattern.positions_seen(np.array([[at]], "int32"), 80)
        assert sorted(array(positions)[array(seen)]) == [j for j in range(80) if sees(pattern, at, j)]
    assert len(array(Strided(5).positions(np.array([[41]], "int32"), 80))[0]) == 5 + 16
    assert len(array(Fixed(7, 2).positions(np.array([[41]], "int32"), 80))[0]) == 7 + 2 * 12


@pytest.mark.parametrize(
    "pattern, keys, scores",
    [
        (Strided(5), 1000, 2 * 32 + 200),
        (Strided(40), 1000, 2 * 40 + 25),
        (Strided(5), 60, 60),
        (Fixed(7, 2), 1000, 7 + 285),
        (Fixed(40, 3), 1000, 40 + 75),
        (Fixed(40, 3), 41, 41),
    ],
)
def test_the_number_of_scores_per_query(pattern, keys, scores):
    assert pattern.seen(keys) == scores


@pytest.mark.parametrize(
    "options, message",
    [
        ({"type": "strided", "stride": 0}, "stride=0"),
        ({"type": "fixed", "stride": 3, "summary": 0}, "summary=0"),
        ({"type": "fixed", "stride": 3, "summary": 4}, "`summary`.*`stride`=3.*summary=4"),
    ],
)
def test_sizes_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        layers.MultiHeadAttention(2, pattern=options)
    assert Fixed(3, 3).summary == 3


def test_settings_have_the_defaults_of_the_arguments():
    settings = {name: (field.default, str(field.metadata["limits"])) for name, field in Fixed.HPARAMS.items()}
    assert settings == {
        "attention_stride": (128, "from 1 to 1,048,576"),
        "attention_summary": (Fixed(9).summary, "from 1 to 1,048,576"),
    }
    assert Strided.HPARAMS["attention_stride"] == Fixed.HPARAMS["attention_stride"]
