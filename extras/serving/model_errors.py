"""What a model's errors are to the caller of a server."""

import contextlib

import tensorflow as tf

from t2t_lite.extras.serving.refusals import Refusal


@contextlib.contextmanager
def model_errors():
    """Context manager in which a model is called: errors that its inputs may cause become `Refusal`."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        raise Refusal(_reason(error)) from None
    except tf.errors.ResourceExhaustedError:
        raise Refusal("out of memory; send fewer or shorter texts at a time", "RESOURCE_EXHAUSTED") from None


def _reason(error):
    """Returns the line of TensorFlow's message that describes the error, without its location in the graph."""
    heads = ("Graph execution error", "Detected at", "<stack traces", "\t")
    lines = [line for line in error.message.splitlines() if line and not line.startswith(heads)]
    return lines[0] if lines else "the model refused the inputs"
