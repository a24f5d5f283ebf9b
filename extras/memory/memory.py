"""Transformer-XL's attention score (Dai et al. 2019), and the state that a model carries from step to step."""

from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from t2t_lite.errors import LOGGER, UserError, counted
from t2t_lite.files import plain_path
from t2t_lite.layers.attention_scores import AttentionScore
from t2t_lite.layers.checks import check_rates, shape_of
from t2t_lite.layers.dense import Dense
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.positions import by_key
from t2t_lite.registry import register_score
from t2t_lite.runs.weights import shape_text
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
        if not isinstance(clamp_length, int) or clamp_length < 0:
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
        shape, initializer = (layer.num_heads, layer.query_size), keras.initializers.RandomNormal(stddev=0.02)
        layer.content_bias = layer.add_weight(name="content_bias", shape=shape, initializer=initializer)
        initializer = keras.initializers.RandomNormal(stddev=0.02)
        layer.position_bias = layer.add_weight(name="position_bias", shape=shape, initializer=initializer)
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


class CarriedState:
    """The states that a run carries from step to step, on the devices that process the batches.

    The batches of a step (one or more per replica) are called lanes. Each lane has its own state.

    Args:
        model: keras.Model with an `initial_state`.
        rows: int, rows per batch.
        devices: list of str, the device of each lane.

    Attributes:
        now: list of the current state of each lane, a structure of tensors.

    Raises:
        UserError: the first axis of a tensor in `initial_state` does not have the size `rows`.
    """

    def __init__(self, model, rows, devices):
        self.now = []
        for device in devices:
            with tf.device(device):
                state = tf.nest.map_structure(tf.convert_to_tensor, model.initial_state(rows, training=True))
                self.now.append(tf.nest.map_structure(tf.identity, state))
        for leaf in tf.nest.flatten(self.now[0]):
            if leaf.shape.rank == 0 or leaf.shape[0] != rows:
                raise UserError(
                    f"{type(model).__name__}.initial_state returned a tensor of shape {tuple(leaf.shape)} for "
                    f"rows={rows}. Expected a first axis of {rows} for each tensor."
                )

    @property
    def spec(self):
        """The state of a lane, as a structure of `tf.TensorSpec`."""
        return tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), self.now[0])

    @property
    def bytes(self):
        """The total size of all lanes' states, in bytes."""
        return sum(leaf.shape.num_elements() * leaf.dtype.size for leaf in tf.nest.flatten(self.now))

    def description(self, source):
        """Returns the line about its state that a run logs at the start; `source` is a SegmentBatches."""
        return (
            f"state: carried from step to step in {counted(len(self.now), 'lane')} of {source.rows} rows, "
            f"{self.bytes / 1e6:,.1f} MB; segments of {source.length} ids, {source.rows_per_example} per row"
        )

    def save(self, path):
        """Writes the states to files whose names begin with `path`, in TensorFlow's checkpoint format."""
        with tf.device("CPU:0"):
            leaves = [tf.identity(leaf) for leaf in tf.nest.flatten(self.now)]
            names = [self._name(i) for i in range(len(leaves))]
            tf.raw_ops.SaveV2(prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), tensors=leaves)

    def restore(self, path):
        """Reads the files that `save` wrote. If they do not exist, logs a warning and keeps the current states.

        Raises:
            UserError: the shapes of the saved states differ from the model's.
            tf.errors.OpError: the files are damaged.
        """
        if not tf.io.gfile.exists(f"{path}.index"):
            LOGGER.warning(
                f"{path}: no saved state; only the newest two checkpoints have a state. The model starts with its "
                "initial state"
            )
            return
        reader = tf.train.load_checkpoint(plain_path(path))
        shapes, values = reader.get_variable_to_shape_map(), []
        for i, leaf in enumerate(tf.nest.flatten(self.now)):
            there = shapes.get(self._name(i))
            if there != leaf.shape.as_list():
                raise UserError(
                    f"{path}: the saved state is {shape_text(there)}, but the model's is {shape_text(leaf.shape)}. "
                    "Expected the settings that the run was trained with, or another output_dir."
                )
            with tf.device(leaf.device):
                values.append(tf.identity(tf.constant(np.asarray(reader.get_tensor(self._name(i))), leaf.dtype)))
        self.now = tf.nest.pack_sequence_as(self.now, values)

    def _name(self, i):
        lane, leaf = divmod(i, len(tf.nest.flatten(self.now[0])))
        return f"lane_{lane:04d}/{leaf:04d}"


def lanes_of(replicas, accumulation, before, output_dir):
    """Returns the number of lanes of a run, which is its number of batches per step.

    Args:
        replicas: Replicas.
        accumulation: int, number of batches that a replica accumulates per step.
        before: dict, the contents of `hparams.json` if a run is resumed; otherwise None.
        output_dir: str.

    Raises:
        UserError: the resumed run had a different number of batches per step, or there are several machines.
    """
    if replicas.cluster is not None:
        raise UserError(
            "TF_CONFIG: the model carries a state from step to step, but the chief, which saves the checkpoints, only "
            "has the state of its own batches. Expected a single machine."
        )
    lanes = replicas.count * accumulation
    had = (before or {}).get("batches_a_step", lanes)
    if had != lanes:
        raise UserError(
            f"{output_dir}: batches_a_step: {had} -> {lanes} ({counted(replicas.count, 'replica')} x "
            f"gradient_accumulation_steps={accumulation}). The model carries a state from each batch of a step to the "
            "same batch of the next step, so the number of batches cannot change in a run, even with "
            f"--allow_hparams_change. Expected {had}, or another output_dir."
        )
    return lanes
