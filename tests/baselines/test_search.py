"""Beam search with the baselines' states as caches, and their training steps, both with and without XLA."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.search.adapters import FullPass
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.layers import dropout_seed
from t2t_lite.search_options import SearchOptions
from tests.baselines.models import MODELS, example, make
from tests.layers.equations import array

SOURCES = [[5, 9, 15, 3, 1], [7, 7, 12, 18, 3, 15, 4, 1], [6]]


def make_talkative(name):
    """Returns a model whose logits of the end are small, so that outputs are of some length."""
    model = make(name)
    table = array(model.softmax.embeddings).copy()
    table[1] *= 0.1
    model.softmax.embeddings.assign(table)
    return model


def assert_same_results(found, expected):
    assert any(len(result.ids) > 2 for results in expected for result in results)
    for one, other in zip(found, expected, strict=True):
        assert [r.ids for r in one] == [r.ids for r in other]
        assert [r.score for r in one] == pytest.approx([r.score for r in other], abs=1e-4)


@pytest.mark.few("multiplicative", "conv_seq2seq")
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_beam_is_that_of_full_passes(name, eager):
    model = make_talkative(name)
    options = SearchOptions(extra_length=3, beam_size=3, n_best=3, alpha=4.0, compile=False)  # long outputs
    found, expected = (Searcher(each).search(SOURCES, options) for each in (model, FullPass(model)))
    assert_same_results(found, expected)


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_a_compiled_search_finds_the_same(name):
    model = make_talkative(name)
    search = {"extra_length": 20, "beam_size": 3, "n_best": 3, "alpha": 4.0}
    found, expected = (Searcher(model).search(SOURCES, SearchOptions(compile=c, **search)) for c in (True, False))
    assert_same_results(found, expected)


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_a_step_that_xla_compiles_has_the_same_gradient(name):
    """Of shapes that are unknown where the step is traced, as the trainer has them."""
    model, batch = make(name, dropout=0.3), example()
    found = []
    for in_xla in (False, True):

        def gradient(inputs, targets):
            features = {"inputs": inputs, "targets": targets}
            with tf.GradientTape() as tape, dropout_seed(3, 1, in_xla):  # noqa: B023
                logits = model(features, training=True)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
                loss = tf.reduce_sum(tf.where(targets != 0, losses, 0))
            weights = [weight.value for weight in model.trainable_weights]
            return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, weights))]

        signature = [tf.TensorSpec([None, None], tf.int32)] * 2
        step = tf.function(gradient, input_signature=signature, jit_compile=in_xla, autograph=False)
        found.append([each.numpy() for each in step(*map(tf.constant, batch))])
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-4, atol=1e-5 * max(1.0, np.abs(plain).max()))


@pytest.mark.parametrize("name", [name for name in MODELS if name in ("additive", "multiplicative")])
def test_no_layer_takes_kernels_that_xla_does_not_have(name):
    """On a GPU Keras' LSTM would take cuDNN's, with which neither a step nor a search can be compiled."""
    layers = [layer for layer in make(name)._flatten_layers() if isinstance(layer, keras.layers.LSTM)]
    assert layers and not any(layer.use_cudnn for layer in layers)
