"""Warm-up requests, which TensorFlow Serving answers while it loads an export, so that the first user does not wait.

Without them, the first call of each signature also has to optimize its graph.
"""

import logging
import os

import numpy as np
import tensorflow as tf

_LOGGER = logging.getLogger("t2t_lite")
PATH = os.path.join("assets.extra", "tf_serving_warmup_requests")
_WIDTHS = (6, 10, 16)  # pieces of a text


def write_warmup(export, calls, model_name):
    """Writes `assets.extra/tf_serving_warmup_requests`: some calls of every signature.

    Without tensorflow-serving-api it only warns.

    Args:
        export: str, the export's folder.
        calls: list of (signature, {name: array}).
        model_name: str, the model's name in the requests.
    """
    try:
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    except ImportError:
        _LOGGER.warning(
            "no warm-up requests in the export: they need tensorflow-serving-api (pip install 't2t_lite[serving]'). A "
            "server's first answers will be slow."
        )
        return
    path = os.path.join(export, PATH)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.TFRecordWriter(path) as writer:
        for signature, inputs in calls:
            request = predict_pb2.PredictRequest()
            request.model_spec.name, request.model_spec.signature_name = model_name, signature
            for name, value in inputs.items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
            log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
            writer.write(log.SerializeToString())


def sample_texts(encoder, max_input_length):
    """Returns texts of increasing length, of pieces sampled from the whole vocabulary."""
    random = np.random.default_rng(0)
    first = min(encoder.num_reserved_ids, encoder.vocab_size - 1)
    draw = [random.integers(first, encoder.vocab_size, min(width, max_input_length)) for width in _WIDTHS]
    return [encoder.decode(ids).encode() for ids in draw]
