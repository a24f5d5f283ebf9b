"""Warm-up requests, which TensorFlow Serving answers while it loads an export, so that the first user does not wait.

Without them, the first call of each signature also has to optimize its graph.
"""

import os

import numpy as np
import tensorflow as tf

PATH = os.path.join("assets.extra", "tf_serving_warmup_requests")
_WIDTHS = (6, 10, 16)  # pieces of a text


def write_warmup(export, calls, model_name):
    """Writes `assets.extra/tf_serving_warmup_requests`: some calls of every signature.

    Args:
        export: str, the export's folder.
        calls: list of (signature, {name: array}).
        model_name: str, the model's name in the requests.
    """
    path = os.path.join(export, PATH)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.TFRecordWriter(path) as writer:
        for signature, inputs in calls:
            writer.write(prediction_log(model_name, signature, inputs))


def prediction_log(model_name, signature, inputs):
    """Returns the bytes of TensorFlow Serving's `PredictionLog` of a request.

    The few fields of its protos that a request needs are encoded here, so that an export needs no
    tensorflow-serving-api. Numbers of fields are those of prediction_log.proto, predict.proto and model.proto.

    Args:
        model_name, signature: str.
        inputs: {name: array}.
    """
    model_spec = _field(1, model_name.encode()) + _field(3, signature.encode())
    request = _field(1, model_spec)
    for name, value in sorted(inputs.items()):
        request += _field(2, _field(1, name.encode()) + _field(2, tf.make_tensor_proto(value).SerializeToString()))
    return _field(6, _field(1, request))  # predict_log, and its request


def _field(number, content):
    """Returns a field of a protocol buffer: a text, bytes or a message."""
    tag, size, length = bytes([number << 3 | 2]), len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return tag + length + bytes([size]) + content


def sample_texts(encoder, max_input_length):
    """Returns texts of increasing length, of pieces sampled from the whole vocabulary."""
    random = np.random.default_rng(0)
    first = min(encoder.num_reserved_ids, encoder.vocab_size - 1)
    draw = [random.integers(first, encoder.vocab_size, min(width, max_input_length)) for width in _WIDTHS]
    return [encoder.decode(ids).encode() for ids in draw]
