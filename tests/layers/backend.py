"""What the tests must ask of each backend in its own words: gradients, and compiled functions."""

import keras
import numpy as np
from keras import ops

from tests.layers.equations import array

BACKEND = keras.backend.backend()


def gradients(function, weights):
    """Returns the gradient of the scalar that `function()` returns, an array or None for each weight."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = function()
        found = [tf.convert_to_tensor(g) for g in tape.gradient(loss, [w.value for w in weights])]
    elif BACKEND == "jax":
        import jax

        def loss_of(values):
            with keras.StatelessScope(state_mapping=zip(weights, values, strict=True)):
                return function()

        found = jax.jit(jax.grad(loss_of))([w.value for w in weights])
    else:
        for weight in weights:
            weight.value.grad = None
        function().backward()
        found = [weight.value.grad for weight in weights]
    return [None if g is None else array(g) for g in found]


def compiled(function, *arrays):
    """Returns `function(*arrays)` as XLA computes it, in TensorFlow with batch sizes and lengths unknown to Python."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        signature = [tf.TensorSpec([None, None, *x.shape[2:]][: x.ndim], x.dtype) for x in arrays]
        function = tf.function(function, jit_compile=True, input_signature=signature, autograph=False)
    elif BACKEND == "jax":
        import jax

        function = jax.jit(function)
    return function(*arrays)  # torch.compile takes minutes, and Keras does not use it unless asked


def check_gradients(call, weights):
    """Asserts that a change of any weight changes the output of `call()`, by the gradient of a random projection."""
    if not weights:
        return

    def loss():
        output = ops.cast(call(), "float32")
        projection = np.random.default_rng(1).normal(size=output.shape)
        return ops.sum(output * ops.convert_to_tensor(projection, "float32"))

    for weight, gradient in zip(weights, gradients(loss, weights), strict=True):
        assert gradient is not None, weight.path
        assert np.abs(gradient).sum() > 0, weight.path
