"""Scores given targets inside the graph of an export, without a search."""

import tensorflow as tf

from t2t_lite.decoding.scoring import log_probs_of_targets

# Positions computed at a time: the logits of each need 4 bytes per entry of the vocabulary.
_POSITIONS = 2048


def scores_of_targets(model, sources, targets, lengths):
    """Returns the log-probabilities (nats) of targets, computed several rows at a time.

    Args:
        model: see `log_probs_of_targets`.
        sources: int32 [batch, S]; None for a language model.
        targets: int32 [batch, T].
        lengths: int32 [batch], number of ids of each target that count.

    Returns:
        {"scores" float32 [batch], the sums; "lengths", as passed; "token_scores" float32 [batch, T], padded with 0}.
    """
    width = tf.shape(targets)[1]
    rows = tf.maximum(1, _POSITIONS // (width if sources is None else tf.maximum(width, tf.shape(sources)[1])))

    def score_rows(at, log_probs):
        rows_of_sources = None if sources is None else sources[at : at + rows]
        return at + rows, tf.concat(
            [log_probs, log_probs_of_targets(model, rows_of_sources, targets[at : at + rows])], 0
        )

    _, log_probs = tf.while_loop(
        lambda at, log_probs: at < tf.shape(targets)[0],
        score_rows,
        (tf.constant(0), tf.zeros((0, width))),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, None])),
    )
    log_probs = tf.where(tf.range(width) < lengths[:, None], log_probs, 0.0)
    return {"scores": tf.reduce_sum(log_probs, 1), "lengths": lengths, "token_scores": log_probs}
