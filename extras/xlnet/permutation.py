"""Samples the ids to predict and their order for permutation language modelling (Yang et al. 2019, "XLNet").

The samples depend only on seeds, one per row, as `Problem.corrupt` requires.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from t2t_lite.data.random_numbers import uniform_numbers
from t2t_lite.errors import UserError

LONGEST_SPAN = 5  # maximum number of ids; section 3.1
CONTEXT = 6  # K: a span of L ids has a context of K · L ids (section 2.3, "partial prediction"; section 3.1)


@dataclasses.dataclass(frozen=True, eq=False)
class Permutation:
    """Samples spans of ids to predict, about one id in six, and the ids' factorization order.

    A row is divided into contexts of 6 · L ids, each of which contains one span of L ids at a random place. L is from 1
    to 5, with a probability proportional to 1/L, as in the authors' data_utils.py. In the factorization order, all
    other ids precede the predicted ids. All rows are read forwards, whereas the authors read half of each batch
    backwards.

    Attributes:
        ordinary: bool [V], False for padding, EOS and other special ids, which are never predicted.

    Raises:
        UserError: the vocabulary has no ordinary id.
    """

    ordinary: np.ndarray

    def __post_init__(self):
        if not np.any(self.ordinary):
            raise UserError("The vocabulary has no ordinary ids to predict. Expected at least one.")

    @tf.autograph.experimental.do_not_convert
    def __call__(self, ids, seeds):
        """Samples the ids to predict in a batch, and their order.

        Args:
            ids: int32 [B, T], padded with 0.
            seeds: int32 [B, 2].

        Returns:
            (targets, order), both int32 [B, T] and 0 where nothing is predicted: the ids to predict, and their ranks in
            the order, counted from 1. A row's results depend only on its seed and its ids. A row with at least one
            ordinary id has at least one target.
        """
        ordinary = tf.gather(tf.constant(self.ordinary), ids)
        context, place = tf.unstack(uniform_numbers(seeds, 2, tf.shape(ids)[1]), axis=1)  # [B, T, 2] each
        is_predicted = ordinary & _spans(context[..., 0], context[..., 1])
        rank = place[..., 0]
        alone = tf.argmin(tf.where(ordinary, rank, 1.0), axis=1, output_type=tf.int32)
        lacks = ~tf.reduce_any(is_predicted, axis=1, keepdims=True)
        is_predicted |= ordinary & lacks & (tf.range(tf.shape(ids)[1]) == alone[:, None])
        by_rank = tf.argsort(tf.where(is_predicted, rank, 1.0), axis=1, stable=True)
        order = 1 + tf.argsort(by_rank, axis=1)
        return tf.where(is_predicted, ids, 0), tf.where(is_predicted, order, 0)


def _spans(of_sizes, of_places):
    """Returns whether each position is in a span, bool [B, T]; the arguments are random numbers [B, T]."""
    share = np.cumsum([1 / size for size in range(1, LONGEST_SPAN + 1)])
    sizes = 1 + tf.reduce_sum(tf.cast(of_sizes[..., None] >= (share / share[-1])[:-1], tf.int32), -1)
    ends = tf.cumsum(CONTEXT * sizes, axis=1)
    room = tf.cast((CONTEXT - 1) * sizes + 1, tf.float32)
    begins = ends - CONTEXT * sizes + tf.cast(of_places * room, tf.int32)
    at = tf.broadcast_to(tf.range(tf.shape(ends)[1]), tf.shape(ends))
    context = tf.searchsorted(ends, at, side="right")
    begins, sizes = (tf.gather(x, context, batch_dims=1) for x in (begins, sizes))
    return (at >= begins) & (at < begins + sizes)
