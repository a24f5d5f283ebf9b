"""A WSGI application that serves an export with TensorFlow Serving's REST API and other APIs (docs/extras/serving.md).

Paths, JSON and error messages follow TensorFlow Serving's http_rest_api_handler.cc, so that clients work unchanged.
"""

import contextlib
import functools
import gzip
import re
import threading
import time
import urllib.parse
import zlib

from t2t_lite.errors import LOGGER
from t2t_lite.extras.serving import completions, start_page
from t2t_lite.extras.serving.apis import Body, TokenizerApi
from t2t_lite.extras.serving.completion_requests import CompletionRequest
from t2t_lite.extras.serving.json_tensors import body_of, parse_body, rows_of, tensors_of, to_json
from t2t_lite.extras.serving.refusals import FAILED, RETRY_AFTER, Refusal, http_status
from t2t_lite.extras.serving.request_batching import PATIENCE
from t2t_lite.extras.serving.served_export import model_errors

_VERSION = r"(?:/versions/(?P<version>\d{1,18}))?"
_PATHS = {
    "POST": re.compile(rf"/v1/models/(?P<name>[^/:]+){_VERSION}:(?P<call>classify|regress|predict)", re.IGNORECASE),
    "GET": re.compile(rf"/v1/models(?:/(?P<name>[^/:]+))?{_VERSION}(?:/(?P<call>metadata))?", re.IGNORECASE),
}
_NAMES = {"classify": "Classification", "regress": "Regression"}
_AUTHORITY = re.compile(r"^https?://[^/?]*", re.IGNORECASE)  # a request's target may be an absolute URL (RFC 9112)
MODELS_PATH = "/v1/models"  # TensorFlow Serving answers this path with an error; OpenAI's server, with a list
METRICS_PATH = "/monitoring/prometheus/metrics"
HEALTH_PATH = "/health"


class RestServer:
    """The WSGI application that answers the requests of `t2t-server`.

    Args:
        versions: ModelVersions.
        batcher: Batcher.
        metrics: ServerMetrics.
        most_rows: int, maximum number of rows in a request.
        longest_body: int, maximum number of bytes in a request's body, both as sent and after decompression.
        origins: list of origins, such as https://example.org, whose pages may read answers in a browser. "*" allows
            all origins.
        most_streams: int, maximum number of concurrent completions. If 0, completions are not served.
        apis: list of Api, which answer further paths.
    """

    def __init__(self, versions, batcher, metrics, most_rows, longest_body, origins=(), most_streams=0, apis=()):
        self._versions, self._batcher, self._metrics = versions, batcher, metrics
        self._completions = completions.Completions(most_streams) if most_streams else None
        apis = [*apis] + [TokenizerApi(self._generator)] * (most_streams > 0)
        self._apis = {path: api for api in apis for path in api.paths}
        self._most_rows, self._longest_body, self._origins = most_rows, longest_body, origins
        self._is_stopping = False
        self._parsing = threading.Lock()

    def __call__(self, environ, start_response):
        """Answers a request as a WSGI application (PEP 3333)."""
        start, method = time.perf_counter(), environ["REQUEST_METHOD"]
        is_head, method = method == "HEAD", "GET" if method == "HEAD" else method
        path = _AUTHORITY.sub("", environ["REQUEST_URI"]).partition("?")[0] or start_page.PATH
        code, kind = "OK", "application/json"
        headers = self._sharing(environ)
        try:
            if method == "OPTIONS" and (methods := self._methods(path)):
                start_response("204 No Content", [("Allow", methods), *headers])
                return []
            if (method, path) == ("GET", METRICS_PATH):
                answer, kind = self._metrics.page().encode(), "text/plain; version=0.0.4"
            elif (method, path) == ("GET", HEALTH_PATH):
                answer = self._health()
            elif (method, path) == ("GET", start_page.PATH):
                accept = environ.get("HTTP_ACCEPT", "")
                answer, kind, more = start_page.answer(accept, self._versions.name, self._paths())
                headers += more
            elif (method, path) == ("POST", completions.PATH):
                answer = self._complete(environ, start)
                if isinstance(answer, completions.EventStream):
                    start_response("200 OK", [*completions.HEADERS, *headers])
                    return answer
            elif (method, path) == ("GET", MODELS_PATH):
                answer = to_json(completions.models_of(self._versions.name, self._versions.find()[1].created))
            elif (api := self._apis.get(path)) and method == api.paths[path]:
                request = self._read(environ, start, functools.partial(api.read, path)) if method == "POST" else None
                answer = api.answer(path, request, _abandonment(environ))
            else:
                answer = self._model_call(method, path, environ, start)
        except Refusal as refusal:
            message, code = refusal.message, refusal.code
            if code == "NOT_FOUND":
                message = f"{message.rstrip('.')}. Paths of this server: {', '.join(self._paths())}"
            answer = self._error(path, message, code)
        except Exception:
            LOGGER.exception(f"{method} {path[:200]!r} failed:")
            answer, code = self._error(path, FAILED, "INTERNAL"), "INTERNAL"
        if path.startswith("/v1/") or path in self._apis:
            self._metrics.add_request(self._versions.name, code)
        status = http_status(code)
        if status.startswith("503"):
            headers.append(("Retry-After", str(RETRY_AFTER)))
        if code == "UNSUPPORTED_MEDIA_TYPE":
            headers.append(("Accept-Encoding", "gzip"))
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(answer))), *headers])
        return [] if is_head else [answer]

    def stop(self):
        """Makes /health report that the server is stopping. Requests are still answered."""
        self._is_stopping = True

    def end_streams(self):
        """Ends completions after a grace period; called when requests are no longer accepted."""
        if self._completions:
            self._completions.end()

    def _sharing(self, environ):
        """Returns the headers that allow pages of other origins to read the answer in a browser (CORS)."""
        if not self._origins:
            return []
        headers, origin = [("Vary", "Origin")], environ.get("HTTP_ORIGIN", "")
        if "*" in self._origins or origin.lower() in self._origins:
            headers.append(("Access-Control-Allow-Origin", "*" if "*" in self._origins else origin))
            if environ["REQUEST_METHOD"] == "OPTIONS":  # a preflight request
                headers += [("Access-Control-Allow-Methods", "GET, POST, OPTIONS"), ("Access-Control-Max-Age", "86400")]
                # The wildcard does not cover Authorization, which clients of OpenAI's API send.
                headers.append(("Access-Control-Allow-Headers", "*, Authorization"))
            else:
                headers.append(("Access-Control-Expose-Headers", "Retry-After"))
        return headers

    def _paths(self):
        """Returns the methods and paths of the server as a list, such as ["GET /health"]."""
        model = start_page.model_path(self._versions.name)
        streams = [f"POST {completions.PATH}"] * (self._completions is not None)
        others = (start_page.PATH, model, f"{model}/metadata", MODELS_PATH, HEALTH_PATH, METRICS_PATH)
        apis = [f"{api.paths[path]} {path}" for path, api in self._apis.items()]
        return [f"POST {model}:predict", *streams, *apis, *(f"GET {path}" for path in others)]

    def _methods(self, path):
        """Returns the methods of a path, or None if there is no such path."""
        if path in self._apis:
            is_read = self._apis[path].paths[path] == "GET"
        elif path == completions.PATH or _PATHS["POST"].fullmatch(path):
            is_read = False
        elif path in (METRICS_PATH, HEALTH_PATH, start_page.PATH) or _PATHS["GET"].fullmatch(path):
            is_read = True
        else:
            return None
        return "GET, HEAD, OPTIONS" if is_read else "POST, OPTIONS"

    def _error(self, path, message, code):
        """Returns the body of an error, bytes."""
        if path in self._apis:
            return to_json(self._apis[path].error(message, code))
        is_of_openai = path in (completions.PATH, MODELS_PATH)
        return to_json(completions.error_of(message, code) if is_of_openai else {"error": message})

    def _health(self):
        if self._is_stopping:
            raise Refusal("the server is stopping", "UNAVAILABLE")
        return to_json({"status": "SERVING"})

    def _model_call(self, method, path, environ, start):
        parts = _PATHS[method].fullmatch(path) if method in _PATHS else None
        if not parts:
            if path.lower().startswith("/v1/"):
                paths = ", ".join(self._paths())
                raise Refusal(f"Malformed request: {method} {path[:200]}. Paths of this server: {paths}")
            raise Refusal(f"Not Found: {path[:200]}", "NOT_FOUND")
        if not parts["name"]:
            raise Refusal("Missing model name in request.")
        name, version = urllib.parse.unquote(parts["name"]), parts["version"] and int(parts["version"])
        if method == "GET":
            return (self._metadata if parts["call"] else self._status)(name, version)
        call = parts["call"].lower()
        answer = self._predict(environ, start, call, name, version)
        self._metrics.add_latency(self._versions.name, call, time.perf_counter() - start)
        return answer

    def _status(self, name, version):
        if name != self._versions.name:
            raise Refusal(f"Could not find any versions of model {name}", "NOT_FOUND")
        states = [
            {"version": str(number), "state": state, "status": {"error_code": code, "error_message": message}}
            for number, state, code, message in self._versions.states(version)
        ]
        return to_json({"model_version_status": states})

    def _metadata(self, name, version):
        version, export = self._find(name, version)
        spec = {"name": name, "signature_name": "", "version": str(version)}
        return to_json({"model_spec": spec, "metadata": {"signature_def": {"signature_def": export.signature_def}}})

    def _predict(self, environ, start, call, name, version):
        def parse(body):
            request = parse_body(body.data)
            _, export = self._find(name, version)
            if call != "predict":
                raise Refusal(
                    f"Expected {_NAMES[call].lower()} signature method_name to be tensorflow/serving/{call}. Was: "
                    "tensorflow/serving/predict"
                )
            signature_name = request.get("signature_name") or "serving_default"
            if signature_name not in export.signatures:
                raise Refusal(f'Serving signature name: "{signature_name[:200]}" not found in signature def')
            signature = export.signatures[signature_name]
            rows = rows_of(request, signature.inputs)
            if rows > self._most_rows:  # checked before rows are converted to arrays, which is slow
                raise Refusal(f"Task size {rows} is larger than maximum input batch size {self._most_rows}")
            return signature, *tensors_of(request, signature.inputs)

        signature, inputs, is_row = self._read(environ, start, parse)
        with model_errors():
            outputs = self._batcher.run(signature, inputs, is_abandoned=_abandonment(environ))
        return body_of(outputs, is_row)

    def _complete(self, environ, start):
        """Returns the body of a completion: bytes, or an EventStream."""
        if not self._completions:
            raise Refusal(f"{completions.PATH}: not served. Start the server with --max_streams=16.", "NOT_FOUND")
        body = self._read(environ, start, lambda body: parse_body(body.data))
        name, generator = self._versions.name, self._generator(body.get("model"))
        request = CompletionRequest.parse(body, generator.options, generator.most_tokens, self._most_rows)
        completion = self._completions.open(generator, request, name, _abandonment(environ))

        def add(code):
            self._metrics.add_request(name, code)
            if code == "OK":
                self._metrics.add_latency(name, "completions", time.perf_counter() - start)

        if request.is_streamed:
            return completions.EventStream(completion, add)
        with contextlib.closing(completion):
            answer = to_json(completion.whole())
        self._metrics.add_latency(name, "completions", time.perf_counter() - start)
        return answer

    def _read(self, environ, start, parse):
        """Returns the result of `parse`, a function of the request's Body. Raises `Refusal`.

        Only one body is parsed at a time, because its objects may take many times the memory of its text.
        """
        with self._parsing:
            if time.perf_counter() > start + PATIENCE and _abandonment(environ)():
                raise Refusal("the client has disconnected", "CANCELLED")
            kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
            return parse(Body(self._body(environ), kind))

    def _body(self, environ):
        length = int(environ.get("CONTENT_LENGTH") or 0)
        coding = environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip"):
            raise Refusal(f"Content-Encoding: {coding[:200]}: expected gzip or no encoding", "UNSUPPORTED_MEDIA_TYPE")
        if length > self._longest_body:
            raise self._too_long(f"has {length:,} bytes")
        if "gzip" not in coding:
            return environ["wsgi.input"].read(length)
        try:
            body = gzip.GzipFile(fileobj=environ["wsgi.input"]).read(self._longest_body + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise Refusal(f"the body cannot be decompressed: {error}") from None
        if len(body) > self._longest_body:
            raise self._too_long("is too long when decompressed")
        return body

    def _too_long(self, body):
        limit = f"the limit is {self._longest_body:,} bytes. Send fewer texts per request"
        return Refusal(f"the body {body}; {limit}", "PAYLOAD_TOO_LARGE")

    def _find(self, name, version):
        if name != self._versions.name:
            kind = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise Refusal(f"Servable not found for request: {kind}", "NOT_FOUND")
        return self._versions.find(version)

    def _generator(self, model):
        """Returns the ServedGenerator of a request, in which `model` is this server's model or None."""
        if not isinstance(model, str | None):
            raise Refusal(f"model: expected {self._versions.name}.")
        _, export = self._find(self._versions.name if model is None else model, None)
        return export.generator


def _abandonment(environ):
    """Returns a function that returns whether the client has disconnected."""
    return environ.get("waitress.client_disconnected", lambda: False)
