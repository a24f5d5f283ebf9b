"""A stand-in for TensorFlow Serving, for tests of the client where there is no tensorflow_model_server.

It answers PredictionService.Predict and GetModelMetadata, and ModelService.GetModelStatus over gRPC, by
tensorflow-serving-api's own protos, and REST by t2t-server's application; it can encrypt both, be slow, and fail. It
proves that the client says what those protos mean and reads what they answer. It does not prove that TensorFlow Serving
can run an export: this is Python with all of TensorFlow, and nothing of the server's own loading, batching or limits.
"""

import contextlib
import functools
import json
import re
import socketserver
import ssl
import threading
import time
import urllib.parse
from concurrent import futures
from wsgiref import simple_server

import grpc
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.extras.serving.request_batching import Batcher
from t2t_lite.extras.serving.rest_server import RestServer
from t2t_lite.extras.serving.served_export import ServedExport
from t2t_lite.extras.serving.server_metrics import ServerMetrics

_TEXTS = {"inputs": tf.TensorSpec([None], tf.string)}
_OPTIONS = {"alpha": tf.TensorSpec(None, tf.float32), "extra_length": tf.TensorSpec(None, tf.int32)}


class ServingDouble:
    """Serves on free ports of 127.0.0.1; a context manager.

    Args:
        models: {name: {version: path of an export, or a function of (signature, {input: array}) -> {output: array}}}.
        labels: {name: {label: version}}.
        tls: None, or (certificate, key, authority of the clients or None), paths.

    Attributes:
        faults: list of (code, details): the next requests fail so, one each.
        delay: float, seconds before an answer.
        grpc, rest: "127.0.0.1:port".
    """

    def __init__(self, models, labels=None, tls=None):
        self.labels, self.faults, self.delay = labels or {}, [], 0.0
        self.models = {name: dict(versions) for name, versions in models.items()}
        for versions in self.models.values():
            versions |= {n: ServedExport(str(m)) for n, m in versions.items() if not callable(m)}
        self._grpc = grpc.server(futures.ThreadPoolExecutor(8))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(_Grpc(self), self._grpc)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(_Grpc(self), self._grpc)
        self._http = simple_server.make_server("127.0.0.1", 0, self._rest, _Http, _HttpRequest)
        batcher, metrics = Batcher(64, 2), ServerMetrics()
        self._servers = {name: RestServer(self.versions(name), batcher, metrics, 1024, 2**20) for name in self.models}
        if tls is None:
            port = self._grpc.add_insecure_port("127.0.0.1:0")
        else:
            certificate, key, authority = tls
            pems = [None if path is None else path.read_bytes() for path in (key, certificate, authority)]
            credentials = grpc.ssl_server_credentials([pems[:2]], pems[2], require_client_auth=authority is not None)
            port = self._grpc.add_secure_port("127.0.0.1:0", credentials)
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
            context.load_cert_chain(certificate, key)
            context.verify_mode = ssl.CERT_NONE if authority is None else ssl.CERT_REQUIRED
            self._http.socket = context.wrap_socket(self._http.socket, True, do_handshake_on_connect=False)
        self.grpc, self.rest = f"127.0.0.1:{port}", f"127.0.0.1:{self._http.server_port}"

    def __enter__(self):
        self._grpc.start()
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self._grpc.stop(None).wait(20)
        self._http.shutdown()
        self._http.server_close()

    def versions(self, name):
        return _Versions(self, name)

    def _rest(self, environ, start_response):
        """The application of the model that the path names; another one says that it does not serve it."""
        name = re.fullmatch(r"(?:/v1/models/([^/:]*))?.*", environ["PATH_INFO"])[1]
        path, labels = environ["REQUEST_URI"], self.labels.get(name, {})
        if found := re.search("/labels/([^/:]+)", path):  # t2t-server has none
            label = urllib.parse.unquote(found[1])
            if label not in labels:
                start_response("400 Bad Request", [("Content-Type", "application/json")])
                return [json.dumps({"error": f"Unrecognized servable version label: {label}"}).encode()]
            environ = environ | {"REQUEST_URI": path.replace(found[0], f"/versions/{labels[label]}")}
        return self._servers.get(name, next(iter(self._servers.values())))(environ, start_response)


class _Versions:
    """The versions of one model, as `t2t_lite.extras.serving.model_versions.ModelVersions` finds them."""

    def __init__(self, double, name):
        self._double, self.name = double, name

    def find(self, version=None, label=None):
        if self._double.faults:
            code, message = self._double.faults.pop(0)
            raise Refusal(message, code)
        time.sleep(self._double.delay)
        versions, labels = self._double.models.get(self.name, {}), self._double.labels.get(self.name, {})
        if label is not None and label not in labels:
            raise Refusal(f"Unrecognized servable version label: {label}")
        version = version if label is None else labels[label]
        request = f"Latest({self.name})" if version is None else f"Specific({self.name}, {version})"
        version = max(versions, default=None) if version is None else version
        if version not in versions:
            raise Refusal(f"Servable not found for request: {request}", "NOT_FOUND")
        return version, _Export(versions[version])

    def states(self, version=None, label=None):
        versions = self._double.models.get(self.name, {})
        found = [number for number in sorted(versions, reverse=True) if version in (None, number)]
        if not found:
            raise Refusal(f"Could not find any versions of model {self.name}", "NOT_FOUND")
        return [(number, "AVAILABLE", "OK", "") for number in found]


class _Export:
    def __init__(self, model):
        self.is_function = callable(model)
        if self.is_function:
            inputs = {"serving_default": _TEXTS, "with_options": _TEXTS | _OPTIONS}
            model = {name: (specs, functools.partial(model, name)) for name, specs in inputs.items()}
        else:
            model = {name: (signature.inputs, signature) for name, signature in model.signatures.items()}
        self.signatures = {name: _Signature(*parts) for name, parts in model.items()}
        self.signature_def = {name: {"inputs": _inputs(specs)} for name, (specs, _) in model.items()}


def _inputs(specs):
    return {
        name: {"name": name, "dtype": types_pb2.DataType.Name(spec.dtype.as_datatype_enum)}
        for name, spec in specs.items()
    }


class _Signature:
    rows_are_independent = False

    def __init__(self, inputs, function):
        self.inputs, self._function = inputs, function

    def __call__(self, inputs):
        return self._function(inputs)


class _Grpc(prediction_service_pb2_grpc.PredictionServiceServicer, model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, double):
        self._double = double

    def Predict(self, request, context):
        spec, answer = request.model_spec, predict_pb2.PredictResponse()
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        with _refusals(context):
            _, export = self._double.versions(spec.name).find(*_which(spec))
            signature = spec.signature_name or "serving_default"
            if signature not in export.signatures:
                raise Refusal(f'Serving signature key "{signature}" not found.', "FAILED_PRECONDITION")
            missing = sorted({*export.signatures[signature].inputs} - {*inputs})
            if missing and not export.is_function:
                raise Refusal(f"input size does not match signature. Missing but required: {missing}")
            for name, value in export.signatures[signature](inputs).items():
                answer.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        return answer

    def GetModelMetadata(self, request, context):
        answer, every = get_model_metadata_pb2.GetModelMetadataResponse(), get_model_metadata_pb2.SignatureDefMap()
        assert list(request.metadata_field) == ["signature_def"]
        with _refusals(context):
            _, export = self._double.versions(request.model_spec.name).find(*_which(request.model_spec))
            json_format.ParseDict({"signature_def": export.signature_def}, every)
            answer.metadata["signature_def"].Pack(every)
        return answer

    def GetModelStatus(self, request, context):
        answer = get_model_status_pb2.GetModelStatusResponse()
        with _refusals(context):
            for number, state, *_ in self._double.versions(request.model_spec.name).states(*_which(request.model_spec)):
                answer.model_version_status.add(version=number, state=state).status.error_message = ""
        return answer


@contextlib.contextmanager
def _refusals(context):
    """Answers a Refusal as gRPC does."""
    try:
        yield
    except Refusal as refusal:
        context.abort(grpc.StatusCode[refusal.code], refusal.message)


def _which(spec):
    """Returns (version, label) of a ModelSpec, each or None."""
    return spec.version.value if spec.HasField("version") else None, spec.version_label or None


class _Http(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Clients that leave are no error."""


class _HttpRequest(simple_server.WSGIRequestHandler):
    def get_environ(self):
        return super().get_environ() | {"REQUEST_URI": self.path}

    def log_message(self, *args):
        pass
