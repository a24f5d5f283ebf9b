"""Position encodings: sinusoids (section 3.5 of the paper), the learned table of its row E, and rotary positions."""

import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers.positions import POSITIONS, Steps, Strides, rotation, split_by_run
from t2t_lite.settings.config import HParams
from tests.layers.backend import BACKEND, compiled
from tests.layers.equations import array
from tests.layers.harness import MEMORY, X, check_layer
from tests.layers.patterns import check_steps_of_beams

HEADS = np.random.default_rng(0).normal(size=(3, 2, 5, 6)).astype("float32")  # [B, heads, T, d]
BOTH = [layers.SinusoidalPositionEmbedding, lambda: layers.LearnedPositionEmbedding(9)]


@pytest.mark.slow
@pytest.mark.parametrize("kind, init", [("Sinusoidal", {"layout": "marian"}), ("Learned", {"max_length": 9})])
def test_contract(kind, init, tmp_path):
    check_layer(getattr(layers, f"{kind}PositionEmbedding"), init, X, kind == "Learned", tmp_path)


def test_paper_formula():
    output = array(layers.SinusoidalPositionEmbedding()(np.zeros((1, 50, 16), "float32")))[0]
    for pos in (0, 1, 49):
        for i in range(8):
            angle = pos / 10000 ** (2 * i / 16)
            assert output[pos, 2 * i] == pytest.approx(np.sin(angle), abs=1e-5)
            assert output[pos, 2 * i + 1] == pytest.approx(np.cos(angle), abs=1e-5)


def test_layouts_of_peers():
    zeros = np.zeros((1, 50, 16), "float32")
    paper, marian, t2t = (
        array(layers.SinusoidalPositionEmbedding(layout)(zeros))[0]
        for layout in ("interleaved", "marian", "tensor2tensor")
    )
    np.testing.assert_allclose(marian, np.concatenate([paper[:, ::2], paper[:, 1::2]], -1), atol=1e-6)
    angles = np.arange(50)[:, None] * 10000.0 ** (-np.arange(8) / 7)  # the last timescale is 10,000
    np.testing.assert_allclose(t2t, np.concatenate([np.sin(angles), np.cos(angles)], -1), atol=1e-5)


@pytest.mark.parametrize("make", BOTH)
def test_one_position_for_all_beams(make):
    layer = make()
    full = array(layer(X))
    beams = array(layer(np.tile(X[:, 3:4], (1, 2, 1)), position=ops.convert_to_tensor(3)))
    np.testing.assert_allclose(beams, np.tile(full[:, 3:4], (1, 2, 1)), atol=1e-6)


@pytest.mark.parametrize("make", BOTH)
def test_rows_may_have_positions_of_their_own(make):
    layer, x = make(), np.tile(X[:1, :1], (3, 2, 1))
    each = [array(layer(x[:1], position=ops.convert_to_tensor(at)))[0] for at in (4, 0, 8)]
    np.testing.assert_allclose(array(layer(x, position=ops.convert_to_tensor([4, 0, 8]))), each, atol=1e-6)


def test_learned_rows_are_added():
    layer = layers.LearnedPositionEmbedding(6)
    np.testing.assert_allclose(array(layer(X)), X + array(layer.table)[None, :5], atol=1e-6)
    layer = layers.LearnedPositionEmbedding(2000)
    layer.build((None, None, 16))
    assert array(layer.table).std() == pytest.approx(16**-0.5, rel=0.05)


class TestBeyondTheLearnedTable:
    """Never the last row again for what lies beyond it, and never a sequence cut to the table."""

    @pytest.mark.parametrize("rows", [1, 4])
    def test_a_longer_sequence(self, rows):
        with pytest.raises(ValueError, match=f"5 positions.*max_length={rows}"):
            layers.LearnedPositionEmbedding(rows)(X)

    @pytest.mark.parametrize("position", [4, np.int32(4), np.array(9), -1, np.array([2, -1, 3])])
    def test_another_decoding_step(self, position):
        layer = layers.LearnedPositionEmbedding(4)
        assert array(layer(X[:, :1], position=3)).shape == (3, 1, 8)
        with pytest.raises(ValueError, match="max_length=4"):
            layer(X[:, :1], position=position)

    @pytest.mark.skipif(BACKEND == "torch", reason="nothing is compiled")
    def test_a_decoding_step_known_to_python_in_a_compiled_graph(self):
        layer = layers.LearnedPositionEmbedding(4)
        expected = array(layer(X[:, :1], position=3))
        found = compiled(lambda x: layer(x, position=3), X[:, :1])
        np.testing.assert_allclose(array(found), expected, atol=1e-6)
        with pytest.raises(ValueError, match="max_length=4"):
            compiled(lambda x: layer(x, position=4), X[:, :1])

    @pytest.mark.skipif(BACKEND == "torch", reason="nothing is compiled")
    def test_a_later_decoding_step_of_a_compiled_graph_is_nan(self):
        layer = layers.LearnedPositionEmbedding(4)
        layer.build(X.shape)
        for position, finite in ((3, True), (4, False), (100, False), (-1, False)):
            output = compiled(lambda x, p: layer(x, position=p), X[:, :1], np.array(position, "int32"))
            assert np.isfinite(array(output)).all() == finite

    @pytest.mark.skipif(BACKEND != "tensorflow", reason="lengths are known when a graph is made")
    @pytest.mark.parametrize("jit_compile", [True, False])
    @pytest.mark.parametrize("rows", [1, 4])
    def test_a_longer_sequence_of_a_graph_with_unknown_lengths(self, rows, jit_compile):
        import tensorflow as tf

        layer = layers.LearnedPositionEmbedding(rows)
        layer.build(X.shape)
        signature = [tf.TensorSpec([None, None, 8])]
        graph = tf.function(layer, input_signature=signature, jit_compile=jit_compile, autograph=False)
        assert graph(X[:, :rows]).shape == (3, rows, 8)
        with pytest.raises(tf.errors.InvalidArgumentError):
            graph(X)


def test_odd_size():
    with pytest.raises(ValueError, match=r"even hidden size.*7"):
        layers.SinusoidalPositionEmbedding()(X[..., :7])


def rotated_in_numpy(x, positions):
    """Pairs as complex numbers, times e^(i · position · 10000^(-2j/d)); positions broadcast to [B, heads, T]."""
    half = x.shape[-1] // 2
    turns = np.exp(1j * np.asarray(positions)[..., None] * 10_000.0 ** (-2 * np.arange(half) / x.shape[-1]))
    turned = (x[..., :half] + 1j * x[..., half:]) * turns
    return np.concatenate([turned.real, turned.imag], axis=-1)


def test_pairs_are_turned_by_their_positions():
    np.testing.assert_allclose(
        array(rotation(6)(ops.convert_to_tensor(HEADS))), rotated_in_numpy(HEADS, np.arange(5)), atol=1e-5
    )
    moved = rotation(6)(ops.convert_to_tensor(HEADS), first=4)
    np.testing.assert_allclose(array(moved), rotated_in_numpy(HEADS, 4 + np.arange(5)), atol=1e-5)
    for position in (7, np.array([0, 900, 3], "int32")):
        found = rotation(6)(ops.convert_to_tensor(HEADS), ops.convert_to_tensor(position, "int32"))
        expected = rotated_in_numpy(HEADS, np.reshape(position, (-1, 1, 1)))
        np.testing.assert_allclose(array(found), expected, atol=2e-4)  # float32 has 900 to within 6e-5


@pytest.mark.long
def test_rotary_contract(tmp_path):
    check_layer(layers.MultiHeadAttention, {"num_heads": 2, "positions": "rotary"}, X, 4, tmp_path)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("pattern", ["full", {"type": "window", "neighborhood": 3}], ids=["full", "window"])
def test_cached_steps_of_beams_equal_one_causal_call(pattern, in_place):
    layer, plain = (layers.MultiHeadAttention(2, positions=p, pattern=pattern) for p in ("rotary", "none"))
    for each in (layer, plain):
        each.build(X.shape)
    plain.set_weights(layer.get_weights())
    both = [array(each(X, use_causal_mask=True)) for each in (layer, plain)]
    assert np.abs(both[0] - both[1]).max() > 1e-3, "positions are not seen"
    check_steps_of_beams(layer, X, in_place)


@pytest.mark.parametrize(
    "options", [{"positions": "rotary"}, {"score": {"type": "relative_v2", "max_relative_position": 3}}], ids=str
)
def test_a_step_does_not_know_its_position_for_a_memory(options):
    """A call does, so its outputs would differ."""
    layer = layers.TransformerDecoderLayer(2, 16, cross_attention=layers.MultiHeadAttention(2, **options))
    layer(X, MEMORY)
    cache = layer.init_cache(ops.convert_to_tensor(MEMORY), len(X), 5)
    with pytest.raises(ValueError, match="`attend_to` knows no positions"):
        layer.step(X[:, :1], cache, 0)


def test_an_odd_head_is_refused():
    with pytest.raises(ValueError, match=r"even `key_dim`.*3"):
        layers.MultiHeadAttention(2, key_dim=3, positions="rotary").build(X.shape)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_attention_refuses_positions_that_a_layer_adds_to_its_inputs(kind):
    with pytest.raises(ValueError, match=f"rotary, none.*{kind}.*SinusoidalPositionEmbedding"):
        layers.MultiHeadAttention(2, positions=kind)


def test_each_kind_of_position_is_a_choice_of_the_hyperparameter():
    assert {*POSITIONS} == {*HParams().settings()["pos"].values.values()}


def test_products_by_distance_are_placed_by_key():
    """Each run of keys has the number of its distance; `collect` and `split_by_run` take them apart again."""
    wide, kept = (
        np.arange(8.0),
        np.arange(5),
    )  # T = 3 queries and S = 5 keys: distances -2 to 5, of which 5 never occurs
    strides = Strides(0)
    assert array(strides.offsets(3, 5)).tolist() == [*range(-2, 6)]
    placed = array(strides.place(ops.convert_to_tensor(np.tile(wide, (3, 1)))))
    assert placed.tolist() == [[j - i + 2.0 for j in kept] for i in range(3)]
    back = array(strides.collect(ops.convert_to_tensor(placed)))
    assert [row[2 - i : 7 - i].tolist() for i, row in enumerate(back)] == placed.tolist() and back.sum() == placed.sum()
    assert array(Strides(4, 3).offsets(3, 5)).tolist() == [3 * step + 4 for step in range(-2, 6)]
    assert array(Strides(np.array([1, 7])).offsets(2, 2)).tolist() == [[0, 1, 2, 3], [6, 7, 8, 9]]
    assert array(Steps(np.array([3, 1, 9])).offsets(2, 3)).tolist() == [3, 1, 9]
    runs = [Strides(0, keys=2), Strides(0, keys=1), Strides(0, keys=4)]
    assert [piece.tolist() for piece in split_by_run(np.arange(7), runs)] == [[0, 1], [2], [3, 4, 5, 6]]
