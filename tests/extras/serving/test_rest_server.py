"""The REST paths as TensorFlow Serving has them, with a model of a few Python functions."""
# Nearest tests of: extras/serving/refusals.py

import gzip
import http
import json
import re
import threading
import zlib

import pytest

from t2t_lite.extras.serving.refusals import http_status
from tests.extras.serving.doubles import LONGEST_BODY, MODEL, MOST_ROWS, Upper, Versions, asker, rest_server
from tests.processes import wait_for

GOOD = b'{"inputs": ["a"]}'


@pytest.fixture
def ask():
    """See `asker`."""
    return asker(rest_server(most_streams=0))


@pytest.mark.parametrize(
    ("code", "status"),
    {
        "OK": 200, "INVALID_ARGUMENT": 400, "NOT_FOUND": 404,
        "REQUEST_TIMEOUT": 408, "PAYLOAD_TOO_LARGE": 413,
        "UNSUPPORTED_MEDIA_TYPE": 415, "RESOURCE_EXHAUSTED": 429,
        "INTERNAL": 500, "UNKNOWN": 500,
        "UNIMPLEMENTED": 501, "UNAVAILABLE": 503,
        "CANCELLED": 503, "DEADLINE_EXCEEDED": 504,
    }.items(),
)  # fmt: skip
def test_statuses_are_those_of_tensorflow_serving(code, status):
    """Its http_server.cc; what gRPC has no code for has HTTP's own."""
    assert http_status(code) == f"{status} {http.HTTPStatus(status).phrase}"


@pytest.mark.parametrize(("which", "version"), {"": 2, "/versions/1": 1, "/versions/2": 2}.items())
def test_versions(ask, which, version):
    answer = {"outputs": {"outputs": ["A"], "scores": [version]}}
    assert json.loads(ask("POST", f"{MODEL}{which}:predict", GOOD)[1]) == answer
    assert json.loads(ask("POST", f"{MODEL}{which}:PREDICT?a=b", GOOD)[1]) == answer
    spec = {"name": "my model", "signature_name": "", "version": str(version)}
    metadata = {"model_spec": spec, "metadata": {"signature_def": {"signature_def": {"a": {}}}}}
    assert json.loads(ask("GET", f"{MODEL}{which}/metadata")[1]) == metadata


def test_rows_and_status(ask):
    rows = ask("POST", f"{MODEL}:predict", b'{"instances": [{"inputs": "a"}, {"inputs": "b"}]}')
    expected = [{"outputs": "A", "scores": 2.0}, {"outputs": "B", "scores": 2.0}]
    assert rows[0] == "200 OK" and json.loads(rows[1]) == {"predictions": expected}
    one = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert json.loads(ask("GET", MODEL)[1]) == {"model_version_status": [one | {"version": "2"}, one]}
    assert json.loads(ask("GET", f"{MODEL}/versions/1")[1]) == {"model_version_status": [one]}
    assert ask("GET", "/health") == ("200 OK", '{"status": "SERVING"}')
    assert ask.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("path", ["/health", MODEL, "/favicon.ico"])
def test_head_is_get_without_the_body_and_a_path_may_be_a_whole_address(ask, path):
    status, answer = ask("GET", path)
    assert ask("GET", f"HTTP://127.0.0.1:8501{path}?a=b") == (status, answer)
    assert ask("HEAD", path) == (status, "") and ask.headers["Content-Length"] == str(len(answer))


def test_rows_are_counted_before_they_are_read(ask):
    """The last of them are no texts, which reading them would say."""
    for body in ('{"inputs": [%s]}', '{"inputs": {"inputs": [%s]}}', '{"instances": [%s]}'):
        status, answer = ask("POST", f"{MODEL}:predict", (body % ", ".join(["1"] * (MOST_ROWS + 1))).encode())
        assert status.startswith("400") and "Task size 5 is larger than maximum input batch size 4" in answer
    assert ask("POST", f"{MODEL}:predict", b'{"inputs": {"inputs": ["a"], "other": [1, 2, 3, 4, 5]}}')[0] == "200 OK"


def test_a_request_of_the_most_rows_and_the_most_bytes_is_answered(ask):
    for body in ('{"inputs": [%s]}', '{"inputs": {"inputs": [%s]}}', '{"instances": [%s]}'):
        assert ask("POST", f"{MODEL}:predict", (body % ", ".join(['"a"'] * MOST_ROWS)).encode())[0] == "200 OK"
    for coding, encoded in (("", bytes), ("gzip", gzip.compress)):
        body = encoded(GOOD + b" " * (LONGEST_BODY - len(GOOD)))
        assert ask("POST", f"{MODEL}:predict", body, HTTP_CONTENT_ENCODING=coding)[0] == "200 OK"


REFUSED = {
    "another model": ("POST", "/v1/models/x:predict", GOOD, 404, r"Servable not found for request: Latest\(x\)"),
    "its version": ("POST", "/v1/models/x/versions/3:predict", GOOD, 404, r"Specific\(x, 3\)"),
    "its status": ("GET", "/v1/models/x", b"", 404, "Could not find any versions of model x"),
    "its metadata": ("GET", "/v1/models/x/metadata", b"", 404, r"Latest\(x\)"),
    "no name": ("GET", "/v1/models/metadata", b"", 404, "Could not find any versions of model metadata"),
    "a version that is not there": ("POST", f"{MODEL}/versions/3:predict", GOOD, 404, r"Specific\(my model, 3\)"),
    "a large version": ("POST", f"{MODEL}/versions/{'9' * 18}:predict", GOOD, 404, r"Specific\(my model, 9{18}\)"),
    "a huge version": ("POST", f"{MODEL}/versions/{'9' * 19}:predict", GOOD, 400, "Malformed request: POST /v1/"),
    "a label": ("POST", f"{MODEL}/labels/x:predict", GOOD, 400, f"Malformed request: POST {MODEL}/labels/x:predict"),
    "no such call": ("POST", f"{MODEL}:translate", GOOD, 400, f"Malformed request: POST {MODEL}:translate"),
    "another method": ("PUT", f"{MODEL}:predict", GOOD, 400, "Malformed request: PUT"),
    "a GET": ("GET", f"{MODEL}:predict", b"", 400, "Malformed request: GET"),
    "a POST": ("POST", MODEL, GOOD, 400, "Malformed request: POST"),
    "elsewhere": ("GET", "/favicon.ico", b"", 404, "Not Found: /favicon.ico"),
    "a page by POST": ("POST", "/health", b"", 404, "Not Found: /health"),
    "no JSON": ("POST", f"{MODEL}:predict", b"text=a", 400, "JSON Parse error: "),
    "no JSON for another model": ("POST", "/v1/models/x:predict", b"", 400, "JSON Parse error: The document is empty"),
    "a signature": ("POST", f"{MODEL}:predict", b'{"signature_name": "x", "inputs": []}', 400, '"x" not found in'),
    "classify": ("POST", f"{MODEL}:classify", GOOD, 400, "Was: tensorflow/serving/predict"),
    "bytes": ("POST", f"{MODEL}:predict", b'{"inputs": ["%s"]}' % (b"a" * LONGEST_BODY), 413, "2,016 bytes"),
    "what the model refuses": ("POST", f"{MODEL}:predict", b'{"inputs": ["refused"]}', 400, "^wrong shape$"),
    "memory": ("POST", f"{MODEL}:predict", b'{"inputs": ["full"]}', 429, "out of memory"),
    "a bug": ("POST", f"{MODEL}:predict", b'{"inputs": ["bug"]}', 500, "the server failed"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_errors(ask, method, path, body, status, message):
    line, answer = ask(method, path, body)
    assert int(line.split()[0]) == status
    answer = json.loads(answer)
    assert list(answer) == ["error"] and re.search(message, answer["error"]) and "secret" not in answer["error"]
    assert json.loads(ask("POST", f"{MODEL}:predict", GOOD)[1])["outputs"]["outputs"] == ["A"]


def test_metrics(ask):
    for _ in range(3):
        ask("POST", f"{MODEL}:predict", GOOD)
    ask("POST", f"{MODEL}:predict", b"")
    ask("GET", "/v1/models/other")
    ask("GET", "/favicon.ico"), ask("GET", "/health")  # are not counted
    status, page = ask("GET", "/monitoring/prometheus/metrics")
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    count = ':tensorflow:serving:request_count{model_name="my model",status="%s"}'
    assert ask.headers["Content-Type"] == "text/plain; version=0.0.4"  # Prometheus' text format
    assert status == "200 OK" and lines[count % "OK"] == "3.0"
    assert lines[count % "INVALID_ARGUMENT"] == lines[count % "NOT_FOUND"] == "1.0"
    latency = ':tensorflow:serving:request_latency_%s{API="predict",entrypoint="REST",%smodel_name="my model"}'
    buckets = [float(lines[latency % ("bucket", f'le="{bound}",')]) for bound in ("10.0", "+Inf")]
    assert buckets == [0, 3] and lines[latency % ("count", "")] == "3.0"
    assert float(lines[latency % ("sum", "")]) > 30


def test_a_compressed_body_is_read(ask):
    half = len(GOOD) // 2
    for body in (gzip.compress(GOOD), gzip.compress(GOOD[:half]) + gzip.compress(GOOD[half:])):
        for coding in ("gzip", "x-gzip", " GZIP"):
            status, answer = ask("POST", f"{MODEL}:predict", body, HTTP_CONTENT_ENCODING=coding)
            assert status == "200 OK" and json.loads(answer)["outputs"]["outputs"] == ["A"]
    assert ask("POST", f"{MODEL}:predict", GOOD, HTTP_CONTENT_ENCODING="identity")[0] == "200 OK"


BAD_BODIES = {
    "a bomb": (gzip.compress(b" " * 10**7)[:LONGEST_BODY], "gzip", 413, "too long when decompressed"),
    "a small bomb": (gzip.compress(GOOD + b" " * LONGEST_BODY), "gzip", 413, "2,000"),
    "no gzip": (GOOD, "gzip", 400, "cannot be decompressed"),
    "cut": (gzip.compress(GOOD)[:-9], "gzip", 400, "cannot be decompressed"),
    "damaged": (gzip.compress(GOOD)[:12] + b"\xff" * 20, "gzip", 400, "cannot be decompressed"),
    "nothing": (b"", "gzip", 400, "is empty"),
    "deflate": (zlib.compress(GOOD), "deflate", 415, "Content-Encoding: deflate: expected gzip"),
    "brotli": (GOOD, "br", 415, "Content-Encoding: br"),
    "twice": (gzip.compress(gzip.compress(GOOD)), "gzip, gzip", 415, "Content-Encoding: gzip, gzip"),
}


@pytest.mark.parametrize(("body", "coding", "code", "message"), BAD_BODIES.values(), ids=BAD_BODIES)
def test_a_compressed_body_that_cannot_be_read(ask, body, coding, code, message):
    status, answer = ask("POST", f"{MODEL}:predict", body, HTTP_CONTENT_ENCODING=coding)
    assert status.startswith(str(code)) and message in json.loads(answer)["error"]
    assert ask.headers.get("Accept-Encoding") == ("gzip" if code == 415 else None)


@pytest.mark.parametrize("path", [f"{MODEL}:predict", MODEL, f"{MODEL}/metadata", "/health", "/v1/models/x:predict"])
def test_options(path):
    """What a browser asks before a page of another origin may send JSON."""

    def asked(origins, origin):
        ask = asker(rest_server(origins=origins))
        status, text = ask("OPTIONS", path, HTTP_ORIGIN=origin, HTTP_ACCESS_CONTROL_REQUEST_METHOD="POST")
        assert (status, text) == ("204 No Content", "")
        assert ask.headers["Allow"] == ("POST, OPTIONS" if ":predict" in path else "GET, HEAD, OPTIONS")
        before = ask.headers
        ask("POST", f"{MODEL}:predict", b"wrong", HTTP_ORIGIN=origin)  # errors may be read, too
        shared = before.get("Access-Control-Allow-Origin")
        assert shared == ask.headers.get("Access-Control-Allow-Origin")
        if shared:
            assert before["Access-Control-Allow-Methods"] == "GET, POST, OPTIONS"
            assert before["Access-Control-Allow-Headers"] == "*, Authorization"
            assert before["Access-Control-Max-Age"] == "86400"
            assert ask.headers["Access-Control-Expose-Headers"] == "Retry-After"
        return shared, before.get("Vary")

    here = "https://app.example.org"
    assert asked([], here) == (None, None)
    assert asked(["*"], here) == ("*", "Origin")
    assert asked(["http://localhost:3000", here], here) == (here, "Origin")
    assert asked([here], here.replace("app", "APP")) == (here.replace("app", "APP"), "Origin")
    assert asked(["http://localhost:3000"], here) == (None, "Origin")


def test_options_elsewhere(ask):
    assert ask("OPTIONS", "/favicon.ico")[0].startswith("404")


def test_a_server_that_stops_says_so_and_still_answers():
    server = rest_server()
    ask = asker(server)
    server.stop()
    assert ask("GET", "/health") == ("503 Service Unavailable", '{"error": "the server is stopping"}')
    assert ask.headers["Retry-After"] == "1"
    assert ask("POST", f"{MODEL}:predict", GOOD)[0] == "200 OK" and "Retry-After" not in ask.headers


class Slow(Upper):
    may_run, is_running = threading.Event(), threading.Event()

    def __call__(self, inputs):
        self.is_running.set()
        assert self.may_run.wait(20)
        return super().__call__(inputs)


def test_a_request_whose_client_has_gone_and_one_too_many(monkeypatch):
    monkeypatch.setattr(Versions, "signature", Slow)
    server = rest_server(most_waiting=1)
    gone = {"waitress.client_disconnected": lambda: True}
    first = threading.Thread(target=asker(server), args=("POST", f"{MODEL}:predict", GOOD), kwargs=gone)
    first.start()  # is computed, whether or not it is too late
    assert Slow.is_running.wait(20)
    answers = []
    second = threading.Thread(target=lambda: answers.append(asker(server)("POST", f"{MODEL}:predict", GOOD, **gone)))
    second.start()
    wait_for(lambda: server.batcher.waiting == 1, 20)
    ask = asker(server)
    status, answer = ask("POST", f"{MODEL}:predict", GOOD)
    assert status.startswith("503") and "queue" in answer and ask.headers["Retry-After"] == "1"
    second.join(20)
    assert "the client has disconnected" in answers[0][1]
    Slow.may_run.set()
    first.join(20)
    assert 'status="CANCELLED"} 1' in server.metrics.page() and 'status="OK"} 1' in server.metrics.page()


@pytest.mark.parametrize("path", [f"{MODEL}:predict", "/v1/completions", "/tokenize"])
def test_a_body_that_waits_is_not_read_when_its_client_has_gone(generator, path):
    """Bodies are read one after the other, so that a few huge ones hold up all others."""
    server = rest_server(generator)
    answers, ask = [], asker(server)
    gone = {"waitress.client_disconnected": lambda: True}
    with server._parsing:
        thread = threading.Thread(target=lambda: answers.append(ask("POST", path, b"no JSON", **gone)))
        thread.start()
        thread.join(0.7)
    thread.join(20)
    assert "the client has disconnected" in answers[0][1]
    assert ask("POST", f"{MODEL}:predict", GOOD, **gone)[0] == "200 OK", "what comes at once is answered"
