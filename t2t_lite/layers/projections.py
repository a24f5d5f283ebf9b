"""The projections of multi-head attention to and from its heads (paper, section 3.2.2)."""

from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.dense import Dense
from t2t_lite.layers.keras_names import dense_initializers
from t2t_lite.layers.seeds import is_compiled
from t2t_lite.layers.shapes import shape_of


class Projections(Layer):
    """Base of `MultiHeadAttention`, which sets the sizes and options that are read here."""

    def _add_projection(self, role, input_size, output_size):
        own = dense_initializers(self.initializers, role == "output") | {"name": f"{role}_projection"}
        dense = Dense(output_size, use_bias=self.use_bias, dtype=self.dtype_policy, **own)
        dense.build((None, input_size))
        setattr(self, f"{role}_projection", dense)

    def project(self, x, role):
        """Projects to or from the heads. Override to change a projection.

        Args:
            x: [B, T, hidden] for the roles "query", "key" and "value"; [B, heads, T, value_dim] for "output".
            role: "query", "key", "value" or "output".

        Returns:
            [B, heads, T, head size], or [B, T, hidden] for "output".
        """
        dense = getattr(self, f"{role}_projection")
        if role == "output":
            batch, heads, length, size = shape_of(x)
            x = ops.reshape(_swap(x), (-1, heads * size))
            return ops.reshape(dense(x), (batch, length, dense.units))
        batch, length, hidden_size = shape_of(x)
        # One matrix product of two dimensions: the batched form is slower, and its gradient much slower.
        heads = (batch, length, self.num_heads, dense.units // self.num_heads)  # a -1 would mean 0 in an empty batch
        return _swap(ops.reshape(dense(ops.reshape(x, (-1, hidden_size))), heads))

    def project_alike(self, x):
        """Returns what `project` gives for queries, keys and values of the same [B, T, hidden].

        Where XLA compiles a training step it is one product with the three kernels side by side, and their gradients
        are one product each: base's step took 2 % less on an H200. Elsewhere they stay three, whose bits runs rely on.
        """
        roles = "query", "key", "value"
        joins = is_compiled() and type(self).project is Projections.project  # others may have no such layers
        layers = [getattr(self, f"{role}_projection") for role in roles] if joins else []
        if not joins or any(layer.lora_enabled for layer in layers):
            return [self.project(x, role) for role in roles]
        batch, length, hidden_size = shape_of(x)
        kernel = ops.cast(ops.concatenate([layer.kernel for layer in layers], axis=1), self.compute_dtype)
        joined = ops.matmul(ops.reshape(x, (-1, hidden_size)), kernel)
        if self.use_bias:
            joined = joined + ops.cast(ops.concatenate([layer.bias for layer in layers]), self.compute_dtype)
        ends = self.num_heads * self.query_size, 2 * self.num_heads * self.query_size
        return [
            _swap(ops.reshape(part, (batch, length, self.num_heads, part.shape[-1] // self.num_heads)))
            for part in ops.split(joined, ends, axis=1)
        ]


def _swap(x):
    """[B, M, N, size] -> [B, N, M, size]: of length and heads, either way."""
    # Einsum moves data itself; oneDNN's transpose, which TensorFlow puts in the place of its own, is slow to set out:
    # 0.28 ms against 0.06 for the 128 rows of a decoding step.
    return ops.einsum("bmnd->bnmd", x)
