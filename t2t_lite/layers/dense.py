"""Dense layers that save LoRA to files (Hu et al. 2022, arXiv 2106.09685), and the projections of attention."""

import operator

import keras
import numpy as np
from keras import ops

from t2t_lite.layers.base import Layer, dense_initializers
from t2t_lite.layers.checks import FileCheck, check_built, shape_of
from t2t_lite.layers.dropout import is_compiled

_WEIGHTS = ("lora_kernel_a", "lora_kernel_b", "_kernel", "kernel_scale", "kernel_zero")  # the last two if quantized
_PREFIX = "lora."
_SCALE = f"{_PREFIX}scale"  # alpha / r, which the shapes do not imply; missing in files of version 0.1.0
_HEADS = "num_heads"  # which the shapes do not imply either; also missing in files of version 0.1.0


class Dense(FileCheck, keras.layers.Dense):
    """A `keras.layers.Dense` that saves the kernel and the two LoRA matrices separately.

    Keras' layer saves only the merged kernel, and loads both LoRA matrices as zeros, whose gradients then stay zero.
    Files of this layer also include the merged kernel, so a layer without LoRA that loads it gives the same results.
    """

    def __init__(self, units, **kwargs):
        super().__init__(operator.index(units), **kwargs)  # Keras rejects NumPy integers

    def call(self, inputs, training=None):
        """Computes the outputs, [..., n] -> [..., units].

        With LoRA, the inputs are multiplied by the two matrices one after the other. Keras would add the product of the
        matrices to the kernel first, and the gradient would then take as long as for a trained kernel.
        """
        if not self.lora_enabled:
            return super().call(inputs, training)
        # The matrices are float32 under any dtype policy, but Keras only casts them under the mixed policies.
        a, b = (ops.cast(matrix, self.compute_dtype) for matrix in (self.lora_kernel_a, self.lora_kernel_b))
        small = ops.multiply(ops.matmul(inputs, a), self.lora_alpha / self.lora_rank)
        x = ops.matmul(inputs, self._kernel) + ops.matmul(small, b)
        x = x if self.bias is None else ops.add(x, self.bias)
        return x if self.activation is None else self.activation(x)

    def enable_lora(self, rank, lora_alpha=None, **kwargs):
        """Adds LoRA: see `keras.layers.Dense.enable_lora`. If the layer is frozen, LoRA is also frozen."""
        super().enable_lora(rank, lora_alpha, **kwargs)
        if not self.trainable:
            self.lora_kernel_a.trainable = self.lora_kernel_b.trainable = False

    def merge_lora(self):
        """Merges LoRA into the kernel, W + (alpha / r) A B. Raises `ValueError` if the layer is quantized."""
        if self.quantization_mode:
            raise ValueError(f"{self.name} is quantized, so LoRA cannot be merged. Merge LoRA before you quantize.")
        self._kernel.assign(
            merged(self._kernel, self.lora_kernel_a, self.lora_kernel_b, self.lora_alpha / self.lora_rank)
        )
        del self.lora_kernel_a, self.lora_kernel_b
        self.lora_enabled, self.lora_rank, self.lora_alpha = False, None, None
        self._kernel.trainable = self.trainable

    def save_own_variables(self, store):
        """Saves the weights, and the LoRA matrices separately if LoRA is enabled."""
        super().save_own_variables(store)
        if self.lora_enabled:
            for name, weight in self._unmerged().items():
                store[_PREFIX + name] = weight
            store[_SCALE] = np.array([self.lora_alpha / self.lora_rank], "float32")

    def load_own_variables(self, store):
        """Loads the weights; if a file has no LoRA, the layer keeps its initial LoRA matrices.

        Raises:
            ValueError: if the LoRA in the file has a different rank or alpha, because the results would then differ.
        """
        self.check_file(store)
        names = list(store.keys())
        first = keras.ops.copy(self.lora_kernel_a) if self.lora_enabled else None
        super().load_own_variables({name: store[name] for name in names if not name.startswith(_PREFIX)})
        if not self.lora_enabled:
            return
        self.lora_kernel_a.assign(first)  # Keras has set the matrix to zeros, which would make both gradients zero
        for name, weight in self._unmerged().items():
            if _PREFIX + name in names:
                weight.assign(store[_PREFIX + name])

    def refusal_of(self, store):
        """Returns a `ValueError` if the LoRA in a file does not match the layer's LoRA, otherwise None."""
        if not self.lora_enabled or _SCALE not in list(store.keys()):
            return None
        rank, scale = store[f"{_PREFIX}lora_kernel_a"].shape[1], float(store[_SCALE][0])
        if rank == self.lora_rank and np.isclose(scale, self.lora_alpha / self.lora_rank):
            return None
        return ValueError(
            f"{self.name}: the file's LoRA has rank {rank} and lora_alpha {scale * rank:g}, but the layer's has rank "
            f"{self.lora_rank} and lora_alpha {self.lora_alpha:g}, so the results would differ. "
            f"Expected enable_lora({rank}, lora_alpha={scale * rank:g}), or a layer without LoRA."
        )

    def _unmerged(self):
        weights = {name: getattr(self, name, None) for name in _WEIGHTS}
        return {name: weight for name, weight in weights.items() if weight is not None}

    def quantize(self, mode=None, type_check=True, config=None):
        """Quantizes the layer as Keras quantizes `keras.layers.Dense`."""
        super().quantize(mode, type_check=False, config=config)


def merged(kernel, a, b, scale):
    """Returns W + scale A B in the kernel's dtype, computed in at least float32."""
    dtype = keras.backend.standardize_dtype(kernel.dtype)
    kernel, a, b = (ops.cast(matrix, keras.backend.result_type(dtype, "float32")) for matrix in (kernel, a, b))
    return ops.cast(kernel + scale * ops.matmul(a, b), dtype)


class Projections(FileCheck, Layer):
    """Mixin for `MultiHeadAttention` with the query, key, value and output projections."""

    def save_own_variables(self, store):
        """Saves the layer's own weights, and the number of heads among which the projections are divided."""
        super().save_own_variables(store)
        store[_HEADS] = np.array([self.num_heads])

    def load_own_variables(self, store):
        """Loads the layer's own weights. Raises `ValueError` if the file has a different number of heads."""
        self.check_file(store)
        super().load_own_variables({name: store[name] for name in store.keys() if name != _HEADS})  # noqa: SIM118

    def refusal_of(self, store):
        """Returns a `ValueError` if the file has a different number of heads, otherwise None."""
        heads = int(store[_HEADS][0]) if _HEADS in list(store.keys()) else self.num_heads
        if heads == self.num_heads:
            return None
        here = self.num_heads
        return ValueError(f"{self.path}: the file has the weights of a layer with num_heads={heads} (here {here}).")

    def _add_projection(self, role, input_size, output_size):
        options = dense_initializers(self.initializers, role == "output") | {"name": f"{role}_projection"}
        dense = Dense(output_size, use_bias=self.use_bias, dtype=self.dtype_policy, **options)
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
        check_built(self)
        dense = getattr(self, f"{role}_projection")
        if role == "output":
            batch, heads, length, size = shape_of(x)
            x = ops.reshape(_swap(x), (-1, heads * size))
            return ops.reshape(dense(x), (batch, length, dense.units))
        batch, length, hidden_size = shape_of(x)
        # A single two-dimensional product is used, because the batched form is slower and its gradient much slower.
        heads = (batch, length, self.num_heads, dense.units // self.num_heads)  # -1 would be 0 in an empty batch
        return _swap(ops.reshape(dense(ops.reshape(x, (-1, hidden_size))), heads))

    def project_alike(self, x):
        """Projects one tensor [B, T, hidden] to queries, keys and values, as `project` does.

        In a training step that XLA compiles, this is a single product with the three concatenated kernels, and the
        gradients are computed in the same way. On an H200, this made a step of the base model 2 % faster. In all other
        cases, three products are computed, because adding in a different order would change the exact results of
        existing runs.
        """
        roles = "query", "key", "value"
        joins = is_compiled() and type(self).project is Projections.project  # an override may use other layers
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
    """Swaps the axes of length and heads: [B, M, N, size] -> [B, N, M, size]."""
    # Einsum avoids oneDNN's transpose, which replaces TensorFlow's and has a high overhead: 0.28 ms instead of 0.06 ms
    # for the 128 rows of a decoding step.
    return ops.einsum("bmnd->bnmd", x)
