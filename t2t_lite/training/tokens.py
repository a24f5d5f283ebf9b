"""Weights of tokens, for the losses and metrics of `model.compile`."""

from keras import ops


def token_weights(sample_weight, targets):
    """Returns float32 weights per token, with the shape of `targets`, or None.

    Args:
        sample_weight: [batch] or [batch, 1], one for all tokens of a row; [batch, target_len]; or None.
        targets: ids [batch, target_len].
    """
    if sample_weight is None:
        return None
    sample_weight, targets = ops.cast(sample_weight, "float32"), ops.convert_to_tensor(targets)
    missing = len(targets.shape) - len(sample_weight.shape)
    sample_weight = ops.reshape(sample_weight, (*ops.shape(sample_weight), *[1] * missing))
    # A copy, not a view, because with PyTorch Keras multiplies weights by masks in place.
    return sample_weight * ops.ones(ops.shape(targets))
