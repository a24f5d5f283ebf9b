"""Position encodings: sinusoids (paper, section 3.5) and a learned table (table 3, row E)."""

import keras
import numpy as np
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_required_sizes, is_known
from t2t_lite.layers.keras_names import Initializer, check_initializers, own_initializer
from t2t_lite.layers.shapes import shape_of

LAYOUTS = ("interleaved", "marian", "tensor2tensor")


@keras.saving.register_keras_serializable("t2t_lite")
class SinusoidalPositionEmbedding(Layer):
    """Adds PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same) (paper, section 3.5).

    Args:
        layout: "interleaved" (the paper's), "marian" (the same frequencies, all sines, then all cosines) or
            "tensor2tensor" (likewise, frequencies 10000^(-i/(d/2 - 1))).

    Raises:
        ValueError: unknown layout, or an odd hidden size.
    """

    def __init__(self, layout: str = "interleaved", **kwargs):
        super().__init__(**kwargs)
        if layout not in LAYOUTS:
            raise ValueError(f"`layout` must be one of {', '.join(LAYOUTS)}: received layout={layout!r}.")
        self.layout = layout
        self.input_spec = keras.InputSpec(ndim=3)
        self.supports_masking = True

    def build(self, input_shape):
        """Checks the hidden size; there are no weights."""
        if input_shape[-1] % 2:
            raise ValueError(f"Sinusoidal positions need an even hidden size: received {input_shape[-1]}.")
        self.require_size(input_shape)
        self.hidden_size = input_shape[-1]

    def encode(self, positions):
        """Returns the encodings of integer positions [...] as [..., hidden]."""
        half = self.hidden_size // 2
        intervals = max(half - 1, 1) if self.layout == "tensor2tensor" else half
        frequencies = (10000.0 ** (-np.arange(half) / intervals)).astype("float32")
        angles = ops.multiply(ops.expand_dims(ops.cast(positions, "float32"), -1), frequencies)
        if self.layout == "interleaved":
            pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
            encodings = ops.reshape(pairs, (*shape_of(angles)[:-1], self.hidden_size))
        else:
            encodings = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        return ops.cast(encodings, self.compute_dtype)

    def call(self, inputs, position=None):
        """Adds the encodings.

        Args:
            inputs: [B, T, hidden].
            position: int scalar or [B]: the one position of all T (beams of one decoding step), of all rows or of
                each; None: 0 … T - 1.

        Returns:
            [B, T, hidden].
        """
        inputs = ops.cast(inputs, self.compute_dtype)  # of integers
        if position is None:
            return inputs + ops.expand_dims(self.encode(ops.arange(shape_of(inputs)[1])), 0)
        return inputs + self.encode(ops.reshape(position, (-1, 1)))


@keras.saving.register_keras_serializable("t2t_lite")
class LearnedPositionEmbedding(Layer):
    """Adds a trained vector for each position (paper, table 3, row E; Gehring et al. 2017).

    Args:
        max_length: int, rows of the table.
        embeddings_initializer: of the table: see `keras.layers.Embedding`; None: N(0, hidden_size^-0.5), as the token
            embeddings before their scaling.

    A graph whose lengths are only known when it runs cannot raise `ValueError`. There a longer sequence is an error of
    the backend's (a slice beyond its tensor), and a later `position` gives NaN; neither is clamped to the last row.

    Raises:
        ValueError: `max_length` is not positive, or the initializer unknown; or a sequence is longer than the table, or
            `position` beyond it.
    """

    def __init__(self, max_length: int, embeddings_initializer: Initializer = None, **kwargs):
        super().__init__(**kwargs)
        check_required_sizes(max_length=max_length)
        check_initializers(embeddings_initializer=embeddings_initializer)
        self.max_length = max_length
        self.embeddings_initializer = embeddings_initializer
        self.input_spec = keras.InputSpec(ndim=3)
        self.supports_masking = True

    def build(self, input_shape):
        """Creates the table."""
        self.require_size(input_shape)
        initializer = own_initializer(self.embeddings_initializer)
        if initializer is None:
            initializer = keras.initializers.RandomNormal(stddev=input_shape[-1] ** -0.5)
        self.table = self.add_weight(name="table", shape=(self.max_length, input_shape[-1]), initializer=initializer)

    def call(self, inputs, position=None):
        """Adds the vectors; arguments as `SinusoidalPositionEmbedding.call`."""
        inputs, table = (ops.cast(x, self.compute_dtype) for x in (inputs, self.table))
        if position is not None:
            if is_known(position):
                self._check(int(ops.max(position)) + 1)
            position = ops.reshape(position, (-1, 1))  # [B or 1, 1]
            # Beyond the table a row is of no use, but must be no error: a search's finished rows are read, too.
            rows = ops.take(table, ops.minimum(position, self.max_length - 1), axis=0)
            return inputs + ops.where(ops.expand_dims(ops.less(position, self.max_length), -1), rows, float("nan"))
        length, hidden_size = shape_of(inputs)[1:]
        if isinstance(length, int):
            self._check(length)
        return inputs + ops.expand_dims(ops.slice(table, (0, 0), (length, hidden_size)), 0)

    def _check(self, length):
        if length > self.max_length:
            raise ValueError(
                f"A sequence of {length} positions is longer than the learned table: max_length={self.max_length}."
            )
