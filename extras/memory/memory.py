"""Transformer-XL's attention score (Dai et al. 2019)."""

import numbers
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from t2t_lite.layers.attention_scores import AttentionScore
from t2t_lite.layers.checks import check_rates, shape_of
from t2t_lite.layers.dense import Dense
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.positions import by_key
from t2t_lite.registry import register_score
from t2t_lite.settings.ranges import setting


@register_score("memory")
class MemoryScore(AttentionScore):
    """Computes score(i, j) = (q_i + u) · k_j + (q_i + v) · W_r R_(i - j) (Dai et al., section 3.3).

    R_n is a vector of the hidden size, which contains sines and then cosines of the distance n. Each layer has its own
    W_r, u and v. tensor2tensor's `dot_product_relative_memory` was intended to compute the same scores.

    Args:
        clamp_length: int, the largest distance; larger distances are clamped to it. 0: no limit.
        position_dropout: float in [0, 1), dropout rate for the sinusoids.
    """

    other_name = "dot_product_relative_memory"
    is_relative = True

    HPARAMS: ClassVar = {
        "clamp_length": setting(
            0, 0, 2**20, argument="self_attention.clamp_length", fixed=True,
            meaning="The largest distance of dot_product_relative_memory and relative_segments; larger distances are "
            "clamped to it. 0: no limit.",
        ),
        "position_dropout": setting(
            0.0, 0, below=1, argument="self_attention.position_dropout",
            meaning="Dropout rate for the sinusoids of distances (dot_product_relative_memory and relative_segments).",
        ),
    }  # fmt: skip

    def __init__(self, clamp_length: int = 0, position_dropout: float = 0.0):
        if not isinstance(clamp_length, numbers.Integral) or clamp_length < 0:
            raise ValueError(f"`clamp_length` must be an integer of at least 0: received {clamp_length!r}.")
        check_rates(position_dropout=position_dropout)
        self.clamp_length = clamp_length
        self.position_dropout = position_dropout

    def build(self, layer, hidden_size):
        """Creates W_r, which has no bias, and u and v, initialized from N(0, 0.02) as in the authors' code."""
        layer.position_projection = Dense(
            layer.num_heads * layer.query_size, use_bias=False, dtype=layer.dtype_policy, name="position_projection"
        )
        layer.position_projection.build((None, hidden_size))
        for name in ("content_bias", "position_bias"):
            options = {"name": name, "initializer": keras.initializers.RandomNormal(stddev=0.02)}
            setattr(layer, name, layer.add_weight(shape=(layer.num_heads, layer.query_size), **options))
        layer.position_dropout = Dropout(self.position_dropout, dtype=layer.dtype_policy, name="position_dropout")

    def scores(self, layer, query, key, distances, training):
        """Returns the attention scores: see `AttentionScore.scores`."""

        def biased(bias):
            bias = ops.cast(layer.of_heads(bias), query.dtype) * ops.cast(layer.query_size**-0.5, query.dtype)
            return query + ops.expand_dims(bias, (1, 2) if len(query.shape) == 5 else 1)

        def products(offsets, run):
            vectors = self._vectors(layer, offsets, len(query.shape), training)
            return ops.matmul(biased(layer.position_bias), ops.swapaxes(vectors, -1, -2))

        content = super().scores(layer, biased(layer.content_bias), key, distances, training)
        return content + by_key(distances, shape_of(query)[-2], shape_of(key)[-2], products)

    def _vectors(self, layer, offsets, rank, training):
        """Returns W_r R, [(B,) heads, (G or 1,) D, key_dim], for int32 distances [D], [G, D] or [B, 1, D]."""
        hidden_size = layer.position_projection.kernel.shape[0]
        if self.clamp_length:
            offsets = ops.clip(offsets, -self.clamp_length, self.clamp_length)
        frequencies = 10000.0 ** (-np.arange(0, hidden_size, 2) / hidden_size)
        angles = ops.expand_dims(ops.cast(-offsets, "float32"), -1) * ops.convert_to_tensor(frequencies, "float32")
        encodings = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)[..., :hidden_size]
        encodings = layer.position_dropout(ops.cast(encodings, layer.compute_dtype), training=training)
        *lead, count, _ = shape_of(encodings)
        vectors = layer.position_projection(ops.reshape(encodings, (-1, hidden_size)))
        vectors = ops.reshape(vectors, (*lead, count, layer.num_heads, layer.query_size))
        if len(lead) == 2:  # [B, 1, D, heads, size]
            return ops.transpose(vectors[:, 0], (0, 2, 1, 3))
        vectors = layer.of_heads(ops.moveaxis(vectors, -2, 0))
        return ops.expand_dims(vectors, 1) if rank == 5 and not lead else vectors

    def extra_flops(self, layer, keys):
        """Counts the products with W_r R for 2 n distances; W_r R itself is counted with the dense layers."""
        return 2 * 2 * keys * layer.num_heads * layer.query_size

    def extra_memory(self, layer, keys, compute):
        """Counts the bytes of the products with W_r R, and of the queries with v added."""
        return layer.num_heads * (2 * keys + layer.query_size) * compute
