"""The token embedding, whose matrix is shared with the output layer (paper, section 3.4)."""

import keras
from keras import ops

from t2t_lite.layers.base import Initializer, Layer, check_initializers, table_initializer
from t2t_lite.layers.checks import check_required_sizes, check_sizes, integer_dtype, known_range, shape_of
from t2t_lite.layers.quantization import TABLE_MODES, float_rows, own_policy, quantized_rows


@keras.saving.register_keras_serializable("t2t_lite")
class TokenEmbedding(Layer):
    """Embeds token ids, scaled by √hidden_size, and computes logits with the same matrix (`reverse=True`).

    Id 0 is padding, and its embedding is the zero vector, as in tensor2tensor's layers/modalities.py.

    `quantize("int8")` and `quantize("int4")` store one or two values per byte, with a scale per row (per block of a row
    in int4). Rows are dequantized where they are used, so logits are products of floats.

    Args:
        vocab_size: int, V.
        hidden_size: int, d_model.
        mask_zero: bool, whether the embeddings have a Keras mask that hides id 0. Logits keep the mask of the hidden
            states.
        use_bias: bool, whether the logits have a bias (not in the paper, but in Marian).
        embeddings_initializer: initializer of the matrix: see `keras.layers.Embedding`. Defaults to N(0,
            hidden_size^-0.5), so that scaled embeddings have unit variance.
        scale: bool, whether embeddings are multiplied by √hidden_size.
        embedding_size: int, E. The embedding matrix is then [V, E], and a second matrix projects from E to hidden_size,
            or back for the logits (Lan et al. 2020, "ALBERT"). If None, only one matrix is used.

    Attributes:
        avoids_scatter: bool, whether the gradient of a lookup is a product instead of a scatter; TensorFlow only.

    Raises:
        ValueError: if a size is not positive, or an initializer is unknown; in eager calls, also if an id is outside
            [0, vocab_size).
    """

    avoids_scatter = False

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        mask_zero: bool = False,
        use_bias: bool = False,
        embeddings_initializer: Initializer = None,
        scale: bool = True,
        embedding_size: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_required_sizes(vocab_size=vocab_size, hidden_size=hidden_size)
        check_sizes(embedding_size=embedding_size)
        check_initializers(embeddings_initializer=embeddings_initializer)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.mask_zero = mask_zero
        self.use_bias = use_bias
        self.embeddings_initializer = embeddings_initializer
        self.scale = scale
        self.embedding_size = embedding_size
        self._row_size = embedding_size or hidden_size

    def build(self, input_shape=None):
        """Creates the matrix and, if needed, the projection (from N(0, embedding_size^-0.5)) and the biases (all 0)."""
        if self.quantization_mode in TABLE_MODES:
            self.quantized_build((self.vocab_size, self._row_size), self.quantization_mode)
        else:
            initializer = table_initializer(self.embeddings_initializer, self.hidden_size)
            self.embeddings = self.add_weight(
                name="embeddings", shape=(self.vocab_size, self._row_size), initializer=initializer
            )
        self.projection = None
        if self.embedding_size is not None:
            initializer = keras.initializers.RandomNormal(stddev=self.embedding_size**-0.5)
            shape = (self.embedding_size, self.hidden_size)
            self.projection = self.add_weight(name="projection", shape=shape, initializer=initializer)
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.vocab_size,), initializer="zeros")

    def quantized_build(self, input_shape, mode, block_size=None):
        """Creates the weights for a quantized matrix of shape `input_shape`, [V, E]: see `quantized_rows`."""
        rows, size = input_shape
        self.block_size = block_size or getattr(own_policy(self), "block_size", None)
        if self.block_size == -1:  # -1 means one block per row in Keras' dtype policies
            self.block_size = None
        packed, blocks = (size, 1) if mode == "int8" else (-(-size // 2), -(-size // (self.block_size or size)))
        common = {"initializer": "zeros", "trainable": False}
        self.embeddings = self.add_weight(name="embeddings", shape=(rows, packed), dtype="int8", **common)
        self.scale_of_rows = self.add_weight(name="scale", shape=(rows, blocks), **common)
        self.zero_of_rows = None
        if mode == "int4":
            self.zero_of_rows = self.add_weight(name="zero", shape=(rows, blocks), dtype="int8", **common)
        self._is_quantized = True  # Keras reads this attribute

    def quantize(self, mode=None, type_check=True, config=None):
        """Quantizes the matrix to "int8" or "int4"; the projection and the bias are not quantized.

        Args:
            mode: str.
            type_check: unused.
            config: `keras.quantizers.QuantizationConfig`; only its `block_size` is used.

        Raises:
            NotImplementedError: if the mode is not supported. `keras.Model.quantize` then warns and skips the layer.
        """
        if mode not in TABLE_MODES:
            raise NotImplementedError(
                f"{self.name} is not quantized: a TokenEmbedding only supports int8 and int4, received {mode}."
            )
        matrix, block_size = self.embeddings, getattr(config, "block_size", None) if mode == "int4" else None
        del self.embeddings
        self.quantized_build(matrix.shape, mode, block_size)
        rows = quantized_rows(matrix, mode, self.block_size)
        self.embeddings.assign(rows["values"])
        self.scale_of_rows.assign(rows["scale"])
        if mode == "int4":
            self.zero_of_rows.assign(rows["zero"])
        if self.quantization_mode is None:
            name = f"int4/{self.block_size or -1}" if mode == "int4" else mode
            self.dtype_policy = keras.dtype_policies.get(f"{name}_from_{own_policy(self).name}")

    def quantized_call(self, *args, **kwargs):
        """Calls `call`, which handles quantized matrices as well."""
        return self.call(*args, **kwargs)

    def _rows(self, ids=None):
        """Returns the matrix rows for `ids` (all rows if None) in the compute dtype: [..., E]."""
        if self.quantization_mode not in TABLE_MODES:
            matrix = ops.cast(self.embeddings, self.compute_dtype)
            if ids is None:
                return matrix
            return _rows_without_scatter(matrix, ids) if self.avoids_scatter else ops.take(matrix, ids, axis=0)
        rows = [self.embeddings, self.scale_of_rows, self.zero_of_rows]
        if ids is not None:
            rows = [None if weight is None else ops.take(weight, ids, axis=0) for weight in rows]
        return float_rows(*rows, self._row_size, self.block_size, self.compute_dtype)

    def __call__(self, inputs, **kwargs):
        """Casts float ids, such as ids from a `keras.Input` without dtype, to integers, and calls the layer.

        Without the cast, low precision would round the ids, and `compute_mask` could not distinguish ids from hidden
        states.
        """
        if not kwargs.get("reverse") and not keras.backend.is_int_dtype(getattr(inputs, "dtype", "int32")):
            inputs = ops.cast(inputs, "int32")
        return super().__call__(inputs, **kwargs)

    def call(self, inputs, reverse=False, matrix=None):
        """Embeds int ids [...] as [..., hidden]; with `reverse`, maps [..., hidden] to float32 logits [...,
        vocab_size].

        For the logits, `matrix` may be the result of `reverse_matrix`.
        """
        if reverse:
            self._check_hidden(inputs)
            matrix = self.reverse_matrix() if matrix is None else matrix
            # A two-dimensional product is used, because the batched form is slower and its gradient much slower.
            rows = ops.reshape(ops.cast(inputs, self.compute_dtype), (-1, self.hidden_size))
            if self.projection is not None:
                rows = ops.matmul(rows, ops.transpose(ops.cast(self.projection, self.compute_dtype)))
            matrix = ops.transpose(matrix) if self._is_bfloat16 else matrix
            logits = ops.reshape(ops.matmul(rows, matrix), (*shape_of(inputs)[:-1], self.vocab_size))
            logits = ops.cast(logits, "float32")
            return logits + ops.cast(self.bias, "float32") if self.use_bias else logits
        ids = inputs if keras.backend.standardize_dtype(inputs.dtype) == "int64" else ops.cast(inputs, integer_dtype())
        check_ids(ids, self.vocab_size)
        x = self._rows(ids)
        # Python numbers would have the dtype of `keras.config.floatx()`.
        zero, factor = (ops.cast(n, x.dtype) for n in (0.0, self.hidden_size**0.5 if self.scale else 1.0))
        x = x * ops.expand_dims(ops.where(ids == 0, zero, factor), -1)
        return x if self.projection is None else ops.matmul(x, ops.cast(self.projection, x.dtype))

    def _check_hidden(self, inputs):
        if inputs.shape[-1] not in (None, self.hidden_size):
            raise ValueError(
                f"{self.name}: expected hidden states of size {self.hidden_size}, received {tuple(inputs.shape)}."
            )

    def reverse_matrix(self):
        """Returns the matrix for `reverse` in the compute dtype, which can be reused for many calls.

        Its shape is [hidden, vocab_size], because products with few rows, as in a decoding step, are up to 1.4 times as
        fast on a CPU (measured) if the matrix is not transposed each time. In bfloat16, its shape is [vocab_size,
        hidden], because oneDNN packs the matrix for each product, and packing is faster if pairs of values are adjacent
        (measured: 1.2 times as fast).
        """
        matrix = self._rows()
        return matrix if self._is_bfloat16 else ops.transpose(matrix)

    @property
    def _is_bfloat16(self):
        return self.compute_dtype == "bfloat16"

    def compute_mask(self, inputs, mask=None):
        """Returns the padding mask of ids, bool [...], True where not padding. For hidden states, returns `mask`."""
        if not keras.backend.is_int_dtype(inputs.dtype):
            return mask
        return ops.not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_shape(self, input_shape, reverse=False, matrix=None):
        """Returns the shape of the outputs, [..., hidden], or [..., vocab_size] with `reverse`."""
        return (*input_shape[:-1], self.vocab_size) if reverse else (*input_shape, self.hidden_size)

    def compute_output_spec(self, inputs, reverse=False, matrix=None):
        """Returns a symbolic tensor; logits are float32 whatever the dtype policy."""
        if reverse:
            self._check_hidden(inputs)
        dtype = "float32" if reverse else self.compute_dtype
        return keras.KerasTensor(self.compute_output_shape(inputs.shape, reverse), dtype=dtype)


def _rows_without_scatter(matrix, ids):
    """Computes `ops.take(matrix, ids, axis=0)`, but its gradient is a product with one-hot vectors; TensorFlow only."""
    import tensorflow as tf

    @tf.custom_gradient
    def rows(matrix):
        def gradient(upstream):
            places = tf.one_hot(tf.reshape(ids, (-1,)), matrix.shape[0], dtype=upstream.dtype)
            return tf.matmul(places, tf.reshape(upstream, (-1, matrix.shape[1])), transpose_a=True)

        return tf.gather(matrix, ids), gradient

    return rows(matrix)


def check_ids(ids, vocab_size):
    """Raises `ValueError` if an id is outside [0, vocab_size); does nothing in a traced graph, where ids are unknown.

    In a graph an invalid id would silently be clamped or give zeros, so callers also check the ids of their inputs.
    """
    low, high = known_range(ids) or (0, 0)
    if low < 0 or high >= vocab_size:
        raise ValueError(f"id {low if low < 0 else high} is outside the vocabulary: ids must be in [0, {vocab_size}).")
