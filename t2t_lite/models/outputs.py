"""What a model may return: logits of its targets, or of several features, and costs of its own."""

import tensorflow as tf


def named_outputs(outputs):
    """Returns (logits, costs), two dicts by feature, of what a model returned.

    Args:
        outputs: logits of "targets", or a dict {feature: logits, "costs": {feature: costs}} without or with "costs".
    """
    logits = dict(outputs) if isinstance(outputs, dict) else {"targets": outputs}
    return logits, logits.pop("costs", {})


def labels_of(logits, ids):
    """Returns the ids [n] that belong to the logits [..., V] of a feature, flattened; 0 is not scored.

    Args:
        logits: float32 [batch, length, V] of every position, or [n, V] of those that are not 0, in their order; of a
            feature without a length [batch, V].
        ids: int [batch, length]; of a feature without a length [batch].
    """
    labels = tf.reshape(ids, [-1])
    is_of_nonzero = len(logits.shape) == len(ids.shape) == 2
    return tf.boolean_mask(labels, labels != 0) if is_of_nonzero else labels
