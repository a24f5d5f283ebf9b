"""A stand-in for TensorFlow Serving, for tests of the client where there is no tensorflow_model_server.

It loads real exports and answers PredictionService.Predict and ModelService.GetModelStatus over gRPC, by
tensorflow-serving-api's own protos, and :predict and the model's status over REST, in TensorFlow Serving's words. It
proves that the client says what those protos mean and reads what they answer. It does not prove that TensorFlow Serving
can run an export: this is Python with all of TensorFlow, and nothing of the server's own loading, batching or limits.
"""

import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse
from concurrent import futures

import grpc
import tensorflow as tf
import tensorflow_text  # noqa: F401  (SentencePiece's operations)
from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

# TensorFlow Serving's http_server.cc
HTTP_STATUS = {"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "NOT_FOUND": 404}
HTTP_STATUS |= {"UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504, "INTERNAL": 500}
PATH = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?(|:predict)")


class Refused(Exception):
    """What the server answers instead: (name of gRPC's code, details)."""


class ServingDouble:
    """Serves on free ports of 127.0.0.1; a context manager.

    Args:
        models: {name: {version: path of an export, or a function of (signature, {input: array}) -> {output: array}}}.
        labels: {name: {label: version}}.
        tls: None, or (certificate, key, authority of the clients or None), paths.

    Attributes:
        faults: list of (code, details): the next requests fail so, one each.
        delay: float, seconds before an answer.
        requests: list of (signature, number of texts), of what came.
        grpc, rest: "127.0.0.1:port".
    """

    def __init__(self, models, labels=None, tls=None):
        self.labels, self.faults, self.delay, self.requests = labels or {}, [], 0.0, []
        self.models = {name: dict(versions) for name, versions in models.items()}
        for versions in self.models.values():
            versions |= {n: tf.saved_model.load(str(m)) for n, m in versions.items() if not callable(m)}
        self._grpc = grpc.server(futures.ThreadPoolExecutor(8))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(_Grpc(self), self._grpc)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(_Grpc(self), self._grpc)
        self._http = _Http(("127.0.0.1", 0), type("Rest", (_Rest,), {"double": self}))
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
        self._grpc.stop(None).wait()
        self._http.shutdown()
        self._http.server_close()

    def predict(self, spec, inputs):
        """inputs: {name: tf.Tensor}, or {name: JSON value}, which the signature says the type of."""
        if self.faults:
            raise Refused(*self.faults.pop(0))
        time.sleep(self.delay)
        model, name = self._model(spec), spec.signature_name or "serving_default"
        if callable(model):
            self.requests.append((name, len(inputs["inputs"])))
            return model(name, inputs)
        if name not in model.signatures:
            raise Refused("FAILED_PRECONDITION", f'Serving signature key "{name}" not found.')
        signature = model.signatures[name]
        expected = signature.structured_input_signature[1]
        if set(expected) != set(inputs):
            raise Refused("INVALID_ARGUMENT", f"input size does not match signature: {len(inputs)}!={len(expected)}")
        inputs = {key: tf.convert_to_tensor(value, expected[key].dtype) for key, value in inputs.items()}
        self.requests.append((name, len(inputs["inputs"])))
        return {key: value.numpy() for key, value in signature(**inputs).items()}

    def status(self, spec):
        versions = self.models.get(spec.name, {})
        if spec.HasField("version"):
            versions = {version: model for version, model in versions.items() if version == spec.version.value}
        if not versions:
            raise Refused("NOT_FOUND", f"Could not find any versions of model {spec.name}")
        answer = get_model_status_pb2.GetModelStatusResponse()
        for version in sorted(versions, reverse=True):
            answer.model_version_status.add(version=version, state="AVAILABLE").status.error_message = ""
        return answer

    def _model(self, spec):
        versions, kind = self.models.get(spec.name, {}), spec.WhichOneof("version_choice")
        version = spec.version.value if kind == "version" else max(versions, default=0)
        if kind == "version_label":
            if spec.version_label not in self.labels.get(spec.name, {}):
                raise Refused("INVALID_ARGUMENT", f"Unrecognized servable version label: {spec.version_label}")
            version = self.labels[spec.name][spec.version_label]
        if version not in versions:
            request = f"Specific({spec.name}, {version})" if kind else f"Latest({spec.name})"
            raise Refused("NOT_FOUND", f"Servable not found for request: {request}")
        return versions[version]


def _abort(context, refused):
    code, details = refused.args
    context.abort(grpc.StatusCode[code], details)


class _Grpc(prediction_service_pb2_grpc.PredictionServiceServicer, model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, double):
        self._double = double

    def Predict(self, request, context):
        inputs = {name: tf.constant(tf.make_ndarray(tensor)) for name, tensor in request.inputs.items()}
        answer = predict_pb2.PredictResponse()
        try:
            for name, value in self._double.predict(request.model_spec, inputs).items():
                answer.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        except Refused as refused:
            _abort(context, refused)
        return answer

    def GetModelStatus(self, request, context):
        try:
            return self._double.status(request.model_spec)
        except Refused as refused:
            _abort(context, refused)


class _Http(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Clients that leave are no error."""


class _Rest(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        names = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
        self._answer("", lambda spec: json_format.MessageToDict(self.double.status(spec), **names))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))

        def predict(spec):
            spec.signature_name = request.get("signature_name", "")
            inputs = request["inputs"]
            found = self.double.predict(spec, {"inputs": inputs} if isinstance(inputs, list) else inputs)
            return {"outputs": {name: value.tolist() for name, value in found.items()}}

        self._answer(":predict", predict)

    def _answer(self, method, call):
        try:
            parts = PATH.fullmatch(self.path)
            if not parts or parts[4] != method:
                raise Refused("INVALID_ARGUMENT", f"Malformed request: {self.command} {self.path}")
            spec = model_pb2.ModelSpec(name=urllib.parse.unquote(parts[1]))
            if parts[2]:
                spec.version.value = int(parts[2])
            if parts[3]:
                spec.version_label = urllib.parse.unquote(parts[3])
            status, answer = 200, call(spec)
        except Refused as refused:
            status, answer = HTTP_STATUS[refused.args[0]], {"error": refused.args[1]}
        data = json.dumps(answer, indent=4, ensure_ascii=False, default=bytes.decode).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass
