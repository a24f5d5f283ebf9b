"""Layer normalisation (Ba et al. 2016), as around every sub-layer (paper, section 3.1)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("t2t_lite")
class LayerNormalization(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` of the last axis, with fewer passes over the data.

    Keras' formula, written for any axes, takes half as long again in TensorFlow on a CPU (measured: 1.4 to 1.6 times),
    in training as in decoding. Computed in float32 at least, as Keras does. Weights, config and results, but for
    rounding, are Keras'.

    Args:
        epsilon: float, added to the variance.
        kwargs: see `keras.layers.LayerNormalization`; `axis`, `center` and `scale` have to stay as they are.
    """

    def call(self, inputs):
        """[..., hidden] -> [..., hidden]."""
        if keras.backend.backend() == "torch":  # has a kernel for it, which Keras calls
            return super().call(inputs)
        x = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        gamma, beta = ops.cast(self.gamma, x.dtype), ops.cast(self.beta, x.dtype)
        outputs = centred * ops.rsqrt(variance + self.epsilon) * gamma + beta
        return ops.cast(outputs, self.compute_dtype)
