"""Dropout: its rate, and masks that are a function of batch, run and layer alone."""

import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import X, check_layer


def test_contract(tmp_path):
    check_layer(layers.Dropout, {"rate": 0.5}, X, 0, tmp_path)


def test_rate_and_expectation():
    ones = np.ones((200, 200), "float32")
    output = array(layers.Dropout(0.3)(ones, training=True))
    assert (output == 0).mean() == pytest.approx(0.3, abs=0.02)
    assert output.mean() == pytest.approx(1.0, abs=0.02)
    assert (array(layers.Dropout(0.3)(ones, training=False)) == 1).all()


def test_masks_depend_on_batch_run_and_layer_alone():
    first, second = layers.Dropout(0.5), layers.Dropout(0.5)
    second.seed_generator.index = 1
    ones = np.ones((20, 20), "float32")

    def mask(layer, batch, run):
        with layers.dropout_seed(ops.convert_to_tensor(batch, "int64"), run):
            return array(layer(ones, training=True))

    np.testing.assert_array_equal(mask(first, 7, 1), mask(first, 7, 1))
    for other in (mask(first, 8, 1), mask(first, 7, 2), mask(second, 7, 1)):
        assert 0.3 < (other != mask(first, 7, 1)).mean() < 0.7
    assert (array(first(ones, training=True)) != array(first(ones, training=True))).any()  # outside: as Keras


WITH_A_RATE = {
    "feed_forward": lambda rate: layers.FeedForward(16, dropout=rate),
    "attention": lambda rate: layers.MultiHeadAttention(2, dropout=rate),
    "restricted": lambda rate: layers.RestrictedAttention(2, 3, dropout=rate),
    "residual": lambda rate: layers.Residual(layers.FeedForward(16), dropout=rate),
    "class_head": lambda rate: layers.ClassHead(3, pooler=True, dropout=rate),
}


@pytest.mark.parametrize("make", WITH_A_RATE.values(), ids=WITH_A_RATE)
def test_the_rate_of_a_layer_acts_in_training_alone(make):
    x = np.random.default_rng(0).normal(size=(1, 130, 8)).astype("float32")  # attention in blocks, where there are some
    for rate in (0.0, 0.5):
        layer = make(rate)
        kept, again, trained = (array(layer(x, training=training)) for training in (False, False, True))
        np.testing.assert_array_equal(kept, again)
        assert np.allclose(kept, trained, atol=1e-5) == (rate == 0)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan"), "0.1"])
def test_bad_rate(rate):
    with pytest.raises(ValueError, match=r"`rate` must be a rate in \[0, 1\)"):
        layers.Dropout(rate)
