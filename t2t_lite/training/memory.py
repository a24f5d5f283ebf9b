"""Explains the failure of a step that does not fit into memory."""

import contextlib

import tensorflow as tf

from t2t_lite.errors import Failure, first_line


@contextlib.contextmanager
def explaining_out_of_memory(step, batches, hparams):
    """Context manager that converts TensorFlow's out-of-memory error to a `Failure` that says what to lower.

    Args:
        step: int, the current update.
        batches: list of dicts of "inputs", "targets" [rows, length]: all of the step.
        hparams: HParams.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        largest = max(batches, key=_cells)
        inputs, targets = (" x ".join(map(str, largest[side].shape)) for side in ("inputs", "targets"))
        ways = [f"batch_size={hparams.batch_size} (gradient_accumulation_steps makes up for it)"]
        if max(length for batch in batches for length in (batch["inputs"].shape[1], batch["targets"].shape[1])) > 64:
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
            f"out of memory at step {step:,}: its largest batch has inputs {inputs} and targets {targets} (rows x "
            f"length), {_cells(largest):,} tokens with padding. Lower {' or '.join(ways)}{also}, and run the command "
            f"again with --allow_hparams_change. TensorFlow says: {first_line(error)}"
        ) from error


def _cells(batch):
    return sum(int(ids.shape[0]) * int(ids.shape[1]) for ids in batch.values())
