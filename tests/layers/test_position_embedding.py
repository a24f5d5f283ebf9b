"""Position encodings: sinusoids against section 3.5 of the paper, and the learned table of its row E."""

import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.backend import BACKEND, compiled
from tests.layers.equations import array
from tests.layers.harness import X, check_layer


@pytest.mark.few("marian")
@pytest.mark.slow
@pytest.mark.parametrize("layout", ["interleaved", "marian", "tensor2tensor"])
def test_sinusoids_contract(layout, tmp_path):
    check_layer(layers.SinusoidalPositionEmbedding, {"layout": layout}, X, 0, tmp_path)


@pytest.mark.slow
def test_learned_contract(tmp_path):
    check_layer(layers.LearnedPositionEmbedding, {"max_length": 9}, X, 1, tmp_path)


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
    np.testing.assert_allclose(t2t[:, 7], np.sin(np.arange(50) / 10000.0), atol=1e-5)  # the last timescale


def test_an_encoding_k_further_is_a_linear_function():
    layer = layers.SinusoidalPositionEmbedding()
    pe = array(layer(np.zeros((1, 60, 16), "float32")))[0]
    matrix, *_ = np.linalg.lstsq(pe[:40], pe[7:47], rcond=None)
    np.testing.assert_allclose(pe[40:53] @ matrix, pe[47:60], atol=1e-3)


@pytest.mark.parametrize("make", [layers.SinusoidalPositionEmbedding, lambda: layers.LearnedPositionEmbedding(9)])
def test_one_position_for_all_beams(make):
    layer = make()
    full = array(layer(X))
    beams = array(layer(np.tile(X[:, 3:4], (1, 2, 1)), position=ops.convert_to_tensor(3)))
    np.testing.assert_allclose(beams, np.tile(full[:, 3:4], (1, 2, 1)), atol=1e-6)


@pytest.mark.parametrize("make", [layers.SinusoidalPositionEmbedding, lambda: layers.LearnedPositionEmbedding(9)])
def test_rows_may_have_positions_of_their_own(make):
    layer, x = make(), np.tile(X[:1, :1], (3, 2, 1))
    each = [array(layer(x[:1], position=ops.convert_to_tensor(at)))[0] for at in (4, 0, 8)]
    np.testing.assert_allclose(array(layer(x, position=ops.convert_to_tensor([4, 0, 8]))), each, atol=1e-6)


def test_learned_rows_are_added():
    layer = layers.LearnedPositionEmbedding(5)
    np.testing.assert_allclose(array(layer(X)), X + array(layer.table)[None], atol=1e-6)


class TestBeyondTheLearnedTable:
    """Never the last row again for what lies beyond it, and never a sequence cut to the table."""

    @pytest.mark.parametrize("rows", [1, 4])
    def test_a_longer_sequence(self, rows):
        with pytest.raises(ValueError, match=f"5 positions is longer than the learned table: max_length={rows}"):
            layers.LearnedPositionEmbedding(rows)(X)

    @pytest.mark.parametrize("position", [4, np.int32(4), np.array(9)])
    def test_a_later_decoding_step(self, position):
        layer = layers.LearnedPositionEmbedding(4)
        assert array(layer(X[:, :1], position=3)).shape == (2, 1, 8)
        with pytest.raises(ValueError, match="max_length=4"):
            layer(X[:, :1], position=position)

    @pytest.mark.skipif(BACKEND == "torch", reason="nothing is compiled")
    def test_a_later_decoding_step_of_a_compiled_graph_is_nan(self):
        layer = layers.LearnedPositionEmbedding(4)
        layer.build(X.shape)
        for position, finite in ((3, True), (4, False), (100, False)):
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
        assert graph(X[:, :rows]).shape == (2, rows, 8)
        with pytest.raises(tf.errors.InvalidArgumentError):
            graph(X)


def test_odd_size():
    with pytest.raises(ValueError, match="even hidden size: received 7"):
        layers.SinusoidalPositionEmbedding()(X[..., :7])


@pytest.mark.parametrize("rows", [0, -1, 2.5])
def test_bad_max_length(rows):
    with pytest.raises(ValueError, match=f"max_length={rows}"):
        layers.LearnedPositionEmbedding(rows)


def test_bad_layout():
    with pytest.raises(ValueError, match="interleaved, marian, tensor2tensor: received layout='sines'"):
        layers.SinusoidalPositionEmbedding("sines")
