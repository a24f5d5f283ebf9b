"""Insertion (Stern et al. 2019, "Insertion Transformer"; Chan et al. 2019, "KERMIT"): what a model sees and predicts.

Everything is a pure function of seeds, one per row, so that a model's `corrupt` can use it.
"""

import dataclasses

import tensorflow as tf

from t2t_lite.data.random_numbers import uniform_numbers
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import SLOT_ORDERS
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID


@dataclasses.dataclass(frozen=True)
class Insertion:
    """Samples canvases, and of each of their slots one id that is missing there.

    The canvas of a row of n ids and EOS has k of the ids, in order, and EOS; k is uniform from 0 to n, and so is the
    choice among the sets of k ids, as in training the Insertion Transformer. Before each id of a canvas, EOS included,
    is a slot: the ids that are missing there are all those between it and the id of the canvas before it. One of them
    is predicted, or 1, "nothing", where none is missing. So the cross-entropy of a batch of these predictions is an
    unbiased sample of the sum over all slots of the papers' slot loss.

    Attributes:
        order: "binary_tree": id i of a slot with ids a to b has a weight of exp(-|i - (a + b) / 2| / temperature), so
            that the middle comes first (there "balanced binary tree"); "uniform": all have the same.
        temperature: float, above 0.

    Raises:
        UserError: the order is unknown, or the temperature not above 0.
    """

    order: str = "binary_tree"
    temperature: float = 1.0

    def __post_init__(self):
        if self.order not in SLOT_ORDERS:
            raise UserError(f"slot_order={self.order!r}: expected {', '.join(SLOT_ORDERS)}.")
        if not self.temperature > 0:
            raise UserError(f"slot_temperature={self.temperature}: expected a number above 0.")

    @tf.autograph.experimental.do_not_convert
    def __call__(self, ids, seeds):
        """Samples for a batch.

        Args:
            ids: int32 [B, T], rows that end in 1, padded with 0.
            seeds: int32 [B, 2].

        Returns:
            (canvas, missing), int32 [B, T] each, padded with 0 behind EOS: what the model sees, and what it predicts
            before each id of the canvas. A row's results depend only on its seed and its own ids.
        """
        in_order, of_size = tf.unstack(uniform_numbers(seeds, 2, tf.shape(ids)[1]), axis=1)  # [B, T, 2] each
        kept = _kept(ids, in_order[..., 0], of_size[:, 0, 0])
        order, slot = places(kept)
        chosen = self._chosen((ids != PAD_ID) & ~kept, slot, self.log_weights(kept), in_order[..., 1])
        canvas = tf.gather(tf.pad(ids, [[0, 0], [0, 1]]), order, batch_dims=1)
        missing = tf.gather(tf.pad(ids, [[0, 0], [0, 1]], constant_values=EOS_ID), chosen, batch_dims=1)
        return canvas, tf.where(canvas != PAD_ID, missing, PAD_ID)

    @tf.autograph.experimental.do_not_convert
    def log_weights(self, kept):
        """Returns float32 [B, T], logarithms of the weights that missing ids have in their slots, not normalized.

        Args:
            kept: bool [B, T], which ids are in the canvas.
        """
        if self.order == "uniform":
            return tf.zeros(tf.shape(kept))
        order, slot = places(kept)
        after = tf.gather(order, slot, batch_dims=1)
        before = tf.gather(tf.pad(order, [[0, 0], [1, 0]], constant_values=-1), slot, batch_dims=1)
        middle = tf.cast(before + after, tf.float32) / 2  # of the ids between two of the canvas
        return -tf.abs(tf.cast(tf.range(tf.shape(kept)[1]), tf.float32) - middle) / self.temperature

    @staticmethod
    def _chosen(is_missing, slot, log_weights, random):
        """Returns int32 [B, T], the place in the row of the id that each slot gets, T for nothing."""
        rows, length = tf.unstack(tf.shape(slot))
        segment = tf.range(rows)[:, None] * length + slot
        score = log_weights - tf.math.log(-tf.math.log(random))  # its maximum is sampled by these weights (Gumbel)
        score = tf.where(is_missing, score, -float("inf"))
        highest = tf.math.unsorted_segment_max(score, segment, rows * length)
        is_chosen = is_missing & (score >= tf.gather(highest, segment))
        place = tf.where(is_chosen, tf.range(length), length)
        chosen = tf.math.unsorted_segment_min(place, segment, rows * length)
        return tf.reshape(tf.minimum(chosen, length), tf.shape(slot))


@tf.autograph.experimental.do_not_convert
def places(kept):
    """Returns where the ids of canvases stand in their rows, then T; and the slot that each id of a row would go to.

    Args:
        kept: bool [B, T], which ids are in the canvas.

    Returns:
        int32 [B, T] each.
    """
    length = tf.shape(kept)[1]
    order = tf.sort(tf.where(kept, tf.range(length), length), axis=1)
    return order, tf.minimum(tf.cumsum(tf.cast(kept, tf.int32), axis=1, exclusive=True), length - 1)


def _kept(ids, rank, of_size):
    """Returns bool [B, T], which ids are in the canvas; arguments: random numbers [B, T] of the ids, [B] of k."""
    length = tf.reduce_sum(tf.cast(ids != PAD_ID, tf.int32), axis=1)  # n + 1
    is_end = tf.range(tf.shape(ids)[1]) == length[:, None] - 1
    size = tf.cast(of_size * tf.cast(length, tf.float32), tf.int32)  # 0 … n
    by_rank = tf.argsort(tf.where((ids != PAD_ID) & ~is_end, rank, 2.0), axis=1, stable=True)
    return is_end | (tf.argsort(by_rank, axis=1) < tf.minimum(size, length - 1)[:, None])
