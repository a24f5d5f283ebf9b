"""Requests that TensorFlow Serving answers while it loads an export, so that the first user does not wait.

Without them the first call of each signature also optimises its graph.
"""

import logging
import os

import numpy as np
import tensorflow as tf

_LOGGER = logging.getLogger("t2t_lite")
PATH = os.path.join("assets.extra", "tf_serving_warmup_requests")
_WIDTHS = (4, 12, 24, 40)  # pieces of a text


def write_warmup(export, encoder, max_input_length, model_name):
    """Writes `assets.extra/tf_serving_warmup_requests`: one text, and several, for every signature.

    Without tensorflow-serving-api there is a warning instead.

    Args:
        export: str, the export's folder.
        encoder: TextEncoder of the inputs; the texts are words of its vocabulary.
        max_input_length: int.
        model_name: str, that the requests carry.

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
    """Returns a list of (signature, {name: array}), the same for the same vocabulary."""
    texts = _texts(encoder, max_input_length)
    found = []
    for some in (texts[:1], texts):
        # A value for each text: a server with --enable_batching refuses scalars, and a warm-up that it refuses ends the
        # loading of the model.
        options = {"alpha": np.full(len(some), 0.6, np.float32), "extra_length": np.full(len(some), 50, np.int32)}
        for signature in ("serving_default", "with_options", "n_best", "tokens"):
            found.append((signature, {"inputs": some, **(options if signature == "with_options" else {})}))
        found.append(("score", {"inputs": some, "targets": some}))
    return found


def _texts(encoder, max_input_length):
    """Texts of growing length, of pieces drawn from the whole vocabulary."""
    random = np.random.default_rng(0)
    first = min(encoder.num_reserved_ids, encoder.vocab_size - 1)
    draw = [random.integers(first, encoder.vocab_size, min(width, max_input_length)) for width in _WIDTHS]
    return [encoder.decode(ids).encode() for ids in draw]
