"""Explains the failure of a step that does not fit into memory."""

import contextlib
import math

import tensorflow as tf

from t2t_lite.errors import Failure, first_line


@contextlib.contextmanager
def explaining_out_of_memory(step, batches, hparams):
    """Context manager that converts TensorFlow's out-of-memory error to a `Failure` that says what to lower.

    Args:
        step: int, the current update.
        batches: list of dicts of features, [rows, length] or [rows]: all of the step.
        hparams: HParams.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        largest = max(batches, key=_cells)
        shapes = " and ".join(f"{feature} {' x '.join(map(str, ids.shape))}" for feature, ids in largest.items())
        ways = [f"batch_size={hparams.batch_size} (gradient_accumulation_steps makes up for it)"]
        if max(length for batch in batches for ids in batch.values() for length in ids.shape[1:]) > 64:
            ways.append(f"max_length={hparams.max_length}")
        also = [
            f"set {setting}"
            for setting, is_set in (
                ("recompute_grad=True", hparams.recompute_grad),
                ("dtype_policy=mixed_bfloat16", hparams.dtype_policy.endswith("float16")),
            )
            if not is_set
        ]
        also = f", or {' or '.join(also)}" if also else ""
        raise Failure(
            f"out of memory at step {step:,}: its largest batch has {shapes} (rows x length), {_cells(largest):,} "
            f"tokens with padding. Lower {' or '.join(ways)}{also}, and run the command again with "
            f"--allow_hparams_change. TensorFlow says: {first_line(error)}"
        ) from error


def _cells(batch):
    return sum(math.prod(ids.shape) for ids in batch.values())
