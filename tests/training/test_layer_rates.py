"""Rates by layer and weight decay against AdamW written out, on one replica and two."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.config import HParams
from t2t_lite.training.distribution import choose_replicas, update_locally
from t2t_lite.training.layer_rates import layer_factors
from t2t_lite.training.optimizers import make_optimizer

RATE = "learning_rate_schedule=constant,learning_rate_constant=0.1"


def test_factors_fall_from_the_top_of_each_stack_to_the_embeddings():
    hparams = registry.hparams("transformer_tiny").parse(
        "num_encoder_layers=3,num_decoder_layers=1,pos=emb,shared_embedding_and_softmax_weights=False,hidden_size=8,"
        "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
    )
    paths = [w.path for w in registry.model("transformer").from_hparams(hparams, 20).trainable_variables]
    expected = {
        "encoder_2/": 0.5, "encoder_1/": 0.25, "encoder_0/": 0.125, "decoder_0/": 0.5, "_norm/": 1.0,
        "softmax_embedding/": 1.0, "input_embedding/": 0.0625, "target_embedding/": 0.0625, "_position/": 0.0625,
    }  # fmt: skip
    for path, factor in zip(paths, layer_factors(paths, 0.5), strict=True):
        (named,) = {value for name, value in expected.items() if name in path}
        assert factor == named, path


def updated(words, replicas):
    """Returns {name: (weight before, after)} of two updates whose gradients are ones."""
    chosen = choose_replicas(0, replicas)
    with chosen.scope():
        keras.utils.set_random_seed(1)
        kernel = keras.Variable(np.arange(1.0, 5.0).reshape(2, 2), name="kernel", dtype="float32")
        with keras.name_scope("encoder"), keras.name_scope("encoder_0"):
            inner = keras.Variable(np.arange(1.0, 5.0).reshape(2, 2), name="inner", dtype="float32")
        bias = keras.Variable(np.ones(2), name="bias", dtype="float32")
        variables = [kernel, inner, bias]
        optimizer = make_optimizer(HParams().parse(f"{RATE},{words}"), 10)
        optimizer.build(variables)
    if chosen.strategy is not None:
        update_locally(optimizer, chosen.strategy)
    before = [v.numpy() for v in variables]

    @tf.function(autograph=False)
    def step():
        gradients = chosen.run(lambda: [tf.ones(v.shape) for v in variables])
        optimizer.apply(gradients, variables)

    for _ in range(2):
        step()
    return {v.name: (old, v.numpy()) for v, old in zip(variables, before, strict=True)}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("optimizer", ["adam_w", "sgd"])
def test_matrices_decay_by_their_own_rate_and_vectors_do_not(optimizer, replicas):
    words = f"optimizer={optimizer},weight_decay=0.5,learning_rate_layer_decay=0.25"
    found = updated(words, replicas)
    # Of gradients that are always 1, Adam's update is the rate, as SGD's is.
    for name, rate, decay in (("kernel", 0.1, 0.5), ("inner", 0.025, 0.5), ("bias", 0.1, 0.0)):
        expected, after = found[name]
        for _ in range(2):
            expected = expected * (1 - rate * decay) - rate
        np.testing.assert_allclose(after, expected, rtol=1e-5)


def test_off_is_the_optimizer_as_it_was():
    alone, off = updated("optimizer=adam", 1), updated("optimizer=adam_w,weight_decay=0,learning_rate_layer_decay=1", 1)
    for name, (_, after) in alone.items():
        np.testing.assert_array_equal(after, off[name][1])


def test_lamb_is_that_of_keras():
    start = np.arange(1.0, 7.0, dtype="float32").reshape(2, 3)
    ours, other = keras.Variable(start), keras.Variable(start)
    gradient = tf.constant([[1.0, -2.0, 3.0], [0.5, 0.0, 1.0]])
    make_optimizer(HParams().parse(f"{RATE},optimizer=lamb"), 10).apply([gradient], [ours])
    keras.optimizers.Lamb(0.1, beta_1=0.9, beta_2=0.98, epsilon=1e-9).apply([gradient], [other])
    np.testing.assert_allclose(ours.numpy(), other.numpy(), rtol=1e-6)
