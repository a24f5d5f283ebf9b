"""The transport for requests to TensorFlow Serving over gRPC."""

import os
import pathlib
import re

from t2t_lite.errors import Failure, needs
from t2t_lite.extras.query_client.addresses import LONGEST_ANSWER, server_error
from t2t_lite.process.quiet_import import import_tensorflow

# Turns off gRPC's log on stderr, because our error messages have the same content. gRPC reads this variable on import.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

with needs("tensorflow-serving-api", "serving", "gRPC", ", or use REST."):
    import_tensorflow()
    import grpc
    import numpy as np
    import tensorflow as tf
    from tensorflow.core.framework import types_pb2
    from tensorflow_serving.apis import (
        get_model_metadata_pb2,
        get_model_status_pb2,
        model_service_pb2_grpc,
        predict_pb2,
        prediction_service_pb2_grpc,
    )

_OPTIONS = (
    ("grpc.max_receive_message_length", LONGEST_ANSWER),
    ("grpc.enable_http_proxy", 0),
    # Milliseconds before a channel reconnects. gRPC's default, 20 seconds, is longer than the wait before a retry.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
# The text in gRPC's messages that precedes the cause.
_PREAMBLE = re.compile(r"failed to connect to all addresses; last error: [A-Z]+: [a-z0-9]+:\S+: ")
_TYPES = {str: tf.string, float: tf.float32, int: tf.int32}
_CERTIFICATE_WORDS = ("certificate", "handshake", "ssl_error", "verification")


class GrpcTransport:
    """A gRPC channel to a model on a server. See `client.Client` for the methods."""

    def __init__(self, address, servable, tls, timeout):
        self.address, self.servable, self._timeout = address, servable, timeout
        if tls is None:
            self._channel = grpc.insecure_channel(str(address), options=_OPTIONS)
        else:
            tls.context()  # checks the files, because gRPC does not report errors in them
            pems = [path and pathlib.Path(path).read_bytes() for path in (tls.ca_file, tls.key_file, tls.cert_file)]
            credentials = grpc.ssl_channel_credentials(*pems)
            self._channel = grpc.secure_channel(str(address), credentials, options=_OPTIONS)
        self._predictions = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def predict(self, signature, inputs):
        """Calls a signature, and returns {output: list}."""
        request = predict_pb2.PredictRequest()
        self._fill(request.model_spec)
        request.model_spec.signature_name = signature
        for name, values in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(values, _TYPES[type(values[0])]))
        outputs = self._call(self._predictions.Predict, request).outputs
        try:
            return {name: _as_list(tensor) for name, tensor in outputs.items()}
        except (TypeError, ValueError) as error:
            raise Failure(f"{self.address}: {self.servable}: the answer is not a tensor: {error}.") from None

    def status(self):
        """Returns the model's versions, [(version, state, message)]."""
        request = get_model_status_pb2.GetModelStatusRequest()
        self._fill(request.model_spec)
        statuses = self._call(self._models.GetModelStatus, request).model_version_status
        states = get_model_status_pb2.ModelVersionStatus.State
        return [(version.version, states.Name(version.state), version.status.error_message) for version in statuses]

    def signatures(self):
        """Returns the export's signatures, {name: {input: type}}."""
        request, table = get_model_metadata_pb2.GetModelMetadataRequest(), get_model_metadata_pb2.SignatureDefMap()
        self._fill(request.model_spec)
        request.metadata_field.append("signature_def")
        self._call(self._predictions.GetModelMetadata, request).metadata["signature_def"].Unpack(table)
        return {
            name: {key: _type_name(tensor.dtype) for key, tensor in signature.inputs.items()}
            for name, signature in table.signature_def.items()
        }

    def close(self):
        """Closes the channel."""
        self._channel.close()

    def _fill(self, spec):
        spec.name = self.servable.name
        if self.servable.version is not None:
            spec.version.value = self.servable.version
        if self.servable.label is not None:
            spec.version_label = self.servable.label

    def _call(self, method, request):
        try:
            return method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            code, details = error.code().name, _PREAMBLE.sub("", error.details() or "")
            if code == "UNAVAILABLE" and any(word in details.lower() for word in _CERTIFICATE_WORDS):
                code = "CERTIFICATE"
            raise server_error(code, details, self.address, self.servable, self._timeout) from None


def _type_name(dtype):
    return types_pb2.DataType.Name(dtype).removeprefix("DT_").lower()


def _as_list(tensor):
    array = tf.make_ndarray(tensor)
    if array.dtype == np.float32:  # keeps only as many digits as identify a float32, as REST does
        array = array.astype(str).astype(float)
    return _as_texts(array.tolist())


def _as_texts(values):
    if isinstance(values, list):
        return [*map(_as_texts, values)]
    return values.decode("utf-8", "replace") if isinstance(values, bytes) else values
