"""A centred or causal convolution over a sequence. A causal one can also run one position at a time."""

import keras
from keras import ops

from t2t_lite.layers.base import GLOROT, Initializer, Layer, check_initializers, own_initializer
from t2t_lite.layers.checks import check_required_sizes, shape_of
from t2t_lite.layers.dense import Dense
from t2t_lite.settings.ranges import setting

KERNEL_HPARAMS = {
    "kernel_height": setting(
        3, 1, 64, argument="kernel_size", fixed=True, meaning="Number of positions that a convolution reads."
    )
}


@keras.saving.register_keras_serializable("t2t_lite")
class Convolution(Layer):
    """Computes y_t = b + Σ_j W_j · x_{t + (j - before) · dilation}, summed over j from 0 to kernel_size - 1.

    Masked positions and positions outside of the sequence are read as zeros, so that padding does not change the
    result. (`keras.layers.Conv1D` reads the padding, and TensorFlow has no gradient for its dilated convolutions on a
    CPU.) The convolution is computed as one matrix product with all windows.

    Args:
        filters: int, the number of output features.
        kernel_size: int, the number of positions in a window.
        dilation: int, the distance between neighbours in a window.
        causal: bool, whether `before` is kernel_size - 1, so that a position only sees itself and earlier positions.
            Otherwise `before` is (kernel_size - 1) // 2, which centres windows of odd size.
        use_bias: bool.
        kernel_initializer, bias_initializer: see `keras.layers.Dense`. The kernel is [kernel_size · input size,
            filters]: W_0, W_1, … stacked along the first axis.

    Raises:
        ValueError: a size is not positive, or an initializer is unknown.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: int,
        dilation: int = 1,
        causal: bool = False,
        use_bias: bool = True,
        kernel_initializer: Initializer = GLOROT,
        bias_initializer: Initializer = "zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_required_sizes(filters=filters, kernel_size=kernel_size, dilation=dilation)
        check_initializers(kernel_initializer=kernel_initializer, bias_initializer=bias_initializer)
        self.filters, self.kernel_size, self.dilation, self.causal = filters, kernel_size, dilation, causal
        self.dense_options = {
            "use_bias": use_bias,
            "kernel_initializer": own_initializer(kernel_initializer),
            "bias_initializer": own_initializer(bias_initializer),
        }
        self.input_spec = keras.InputSpec(ndim=3)

    def build(self, input_shape):
        """Creates the kernel and the bias for inputs [B, T, size]."""
        self.require_size(input_shape)
        self.windows = Dense(self.filters, dtype=self.dtype_policy, name="windows", **self.dense_options)
        self.windows.build((None, self.kernel_size * input_shape[-1]))

    def call(self, inputs, mask=None):
        """Maps [B, T, size] to [B, T, filters]. `mask` is bool [B, T], False at padding, or None."""
        if mask is not None:
            inputs = ops.where(ops.expand_dims(mask, -1), inputs, ops.zeros_like(inputs))
        batch, length, size = shape_of(inputs)
        before = self.kernel_size - 1 if self.causal else (self.kernel_size - 1) // 2
        around = before * self.dilation, (self.kernel_size - 1 - before) * self.dilation
        padded = ops.pad(inputs, ((0, 0), around, (0, 0)))
        starts = (j * self.dilation for j in range(self.kernel_size))
        windows = ops.concatenate([padded[:, start : start + length] for start in starts], axis=-1)
        outputs = self.windows(ops.reshape(windows, (-1, self.kernel_size * size)))
        return ops.reshape(outputs, (batch, length, self.filters))

    def compute_output_shape(self, input_shape):
        """Returns [B, T, filters]."""
        return (*input_shape[:-1], self.filters)

    def first_past(self, batch, size):
        """Returns the past of a causal convolution before the first `step`: zeros of shape [batch, width, size]."""
        return ops.zeros((batch, (self.kernel_size - 1) * self.dilation, size), self.compute_dtype)

    def step(self, x, past):
        """Computes the next position of a causal convolution.

        Args:
            x: [..., size], the inputs at this position.
            past: [..., width, size], the inputs at earlier positions, from `first_past` or the previous step.

        Returns:
            (outputs [..., filters], the past for the next step).
        """
        seen = ops.concatenate([past, ops.expand_dims(ops.cast(x, past.dtype), -2)], axis=-2)
        window = seen[..., :: self.dilation, :]
        *rows, size = shape_of(x)
        return self.windows(ops.reshape(window, (*rows, self.kernel_size * size))), seen[..., 1:, :]


def read_at(x, at):
    """Reads x [B, S, hidden] at the positions `at`, int32 [n]. Returns [B, n, hidden], with zeros past the end of x."""
    width = ops.shape(x)[1]
    values = ops.take(x, ops.minimum(at, width - 1), axis=1)
    return ops.where(ops.expand_dims(at < width, -1), values, ops.zeros_like(values))
