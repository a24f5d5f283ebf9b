"""Warm-up requests, which TensorFlow Serving answers while it loads an export, so that the first user does not wait.

Without them the first call of each signature also has to optimize its graph.
"""

import logging
import os

import numpy as np
import tensorflow as tf

from t2t_lite.search_options import SearchOptions

_LOGGER = logging.getLogger("t2t_lite")
PATH = os.path.join("assets.extra", "tf_serving_warmup_requests")
_WIDTHS = (6, 10, 16)  # pieces of a text


def write_warmup(export, encoder, max_input_length, model_name):
    """Writes `assets.extra/tf_serving_warmup_requests`: one text for every signature, then several.

    Without tensorflow-serving-api it only warns.

    Args:
        export: str, the export's folder.
        encoder: TextEncoder of the inputs; the texts consist of its pieces.
        max_input_length: int.
        model_name: str, the model's name in the requests.

    Returns:
        Whether it was written.
    """
    try:
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    except ImportError:
        _LOGGER.warning(
            "no warm-up requests in the export: they need tensorflow-serving-api (pip install 't2t_lite[serving]'). A "
            "server's first answers will be slow."
        )
        return False
    path = os.path.join(export, PATH)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.TFRecordWriter(path) as writer:
        for signature, inputs in warmup_inputs(encoder, max_input_length):
            request = predict_pb2.PredictRequest()
            request.model_spec.name, request.model_spec.signature_name = model_name, signature
            for name, value in inputs.items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
            log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
            writer.write(log.SerializeToString())
    return True


def warmup_inputs(encoder, max_input_length):
    """Returns a list of (signature, {name: array}), which depends only on the vocabulary."""
    texts = _texts(encoder, max_input_length)
    # Few and short, since the server answers these first. One value per text, since a server with --enable_batching
    # refuses scalars, and a refused warm-up request stops the loading of the model.
    options = {"alpha": np.float32([SearchOptions.alpha]), "extra_length": np.int32([0])}
    return [
        ("with_options", {"inputs": texts[:1], **options}),
        ("tokens", {"inputs": texts[:1]}),
        ("n_best", {"inputs": texts[:1]}),
        ("score", {"inputs": texts[:1], "targets": texts[:1]}),
        ("serving_default", {"inputs": texts[:1]}),
        ("serving_default", {"inputs": texts}),
    ]


def _texts(encoder, max_input_length):
    """Returns texts of increasing length, of pieces sampled from the whole vocabulary."""
    random = np.random.default_rng(0)
    first = min(encoder.num_reserved_ids, encoder.vocab_size - 1)
    draw = [random.integers(first, encoder.vocab_size, min(width, max_input_length)) for width in _WIDTHS]
    return [encoder.decode(ids).encode() for ids in draw]
