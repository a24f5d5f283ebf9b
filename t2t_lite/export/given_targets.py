"""Scores given targets inside the graph of an export, without a search."""

import tensorflow as tf

from t2t_lite.decoding.scoring import log_probs_of_targets

# Positions that are computed at a time: the logits of each need 4 bytes per entry of the vocabulary.
_POSITIONS = 2048


def scores_of_targets(model, sources, targets, lengths):
    """Returns the log-probabilities (nats) of targets, computed some rows at a time.

    Args:
        model: see `log_probs_of_targets`.
        sources: int32 [batch, S]; None for a language model.
        targets: int32 [batch, T].
        lengths: int32 [batch], how many ids of each target count.

    Returns:
        {"scores" float32 [batch], the sum; "lengths", as given; "token_scores" float32 [batch, T], 0 behind the end}.
    """
    width = tf.shape(targets)[1]
    rows = tf.maximum(1, _POSITIONS // (width if sources is None else tf.maximum(width, tf.shape(sources)[1])))

    def score_rows(at, found):
        some = None if sources is None else sources[at : at + rows]
        return at + rows, tf.concat([found, log_probs_of_targets(model, some, targets[at : at + rows])], 0)

    _, found = tf.while_loop(
        lambda at, found: at < tf.shape(targets)[0],
        score_rows,
        (tf.constant(0), tf.zeros((0, width))),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, None])),
    )
    found = tf.where(tf.range(width) < lengths[:, None], found, 0.0)
    return {"scores": tf.reduce_sum(found, 1), "lengths": lengths, "token_scores": found}
