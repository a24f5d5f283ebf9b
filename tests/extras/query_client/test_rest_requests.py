"""Requests over REST: what is sent, and what may come instead of an answer: other bytes, too many, too late, none."""

import json
import socket
import time

import pytest

from t2t_lite.errors import Failure
from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client.addresses import ServerError
from tests.extras.query_client.servers import answering, client, http_answer, sending

REQUESTS = {  # a call, which model, the request's first line, its JSON
    "translate": (lambda c: c.translate(["a"]), {}, "POST /v2/v1/models/a%20b%2F:predict",
                  {"signature_name": "serving_default", "inputs": {"inputs": ["a"]}}),
    "a version": (lambda c: c.predict({"x": ["a"]}, signature="s"), {"version": 7},
                  "POST /v2/v1/models/a%20b%2F/versions/7:predict", {"signature_name": "s", "inputs": {"x": ["a"]}}),
    "a label": (lambda c: c.n_best(["a"]), {"label": "x/y"}, "POST /v2/v1/models/a%20b%2F/labels/x%2Fy:predict",
                {"signature_name": "n_best", "inputs": {"inputs": ["a"]}}),
    "status": (lambda c: c.status(), {"version": 7}, "GET /v2/v1/models/a%20b%2F/versions/7", None),
    "signatures": (lambda c: c.signatures(), {}, "GET /v2/v1/models/a%20b%2F/metadata", None),
    "a stream": (lambda c: [*c.stream("a", top_k=3)], {}, "POST /v2/v1/completions",
                 {"model": "a b/", "stream": True, "prompt": "a", "top_k": 3}),
}  # fmt: skip


@pytest.mark.parametrize(("call", "which", "line", "body"), REQUESTS.values(), ids=REQUESTS)
def test_requests(call, which, line, body):
    with answering(http_answer({"error": "no"}, "429 Too Many Requests")) as server:
        asked = query.open_client(f"http://{server}/v2/", query.Servable("a b/", **which), retries=0)
        with pytest.raises(ServerError, match="RESOURCE_EXHAUSTED: no"):
            call(asked)
    head, _, sent = server.requests[0].partition(b"\r\n\r\n")
    assert head.decode().splitlines()[0] == f"{line} HTTP/1.1"
    assert (json.loads(sent) if body else sent) == (body or b"")
    assert (b"Content-Type: application/json" in head) == bool(body)


STATUSES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 418: "HTTP 418",
    429: "RESOURCE_EXHAUSTED", 500: "HTTP 500", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


@pytest.mark.parametrize(("status", "code"), STATUSES.items())
def test_codes_of_statuses(status, code):
    for content in ({"error": "out of luck"}, b"<html>"):
        with answering(http_answer(content, f"{status} Some Reason")) as server, pytest.raises(ServerError) as raised:
            client(server).translate(["a"])
        words = "out of luck" if content != b"<html>" else f"HTTP {status} Some Reason"
        assert raised.value.code == code and (words in str(raised.value) or status == 504)


def test_an_answer_that_ends_at_any_byte_is_none():
    whole = http_answer({"outputs": {"outputs": ["A"], "scores": [0], "truncated": [False]}})
    for end in range(len(whole)):
        with answering(sending(whole[:end])) as server, pytest.raises(Failure, match=server):
            client(server).translate(["a"])


BROKEN = {
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "a chunk of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "a status of no number": b"HTTP/1.1 abc OK\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500 + b"\r\n",
    "a long header": b"HTTP/1.1 200 OK\r\na: " + b"b" * 100_000 + b"\r\n\r\n",
    "a redirection": http_answer(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"),
    "an error of another shape": http_answer({"error": {"code": 3}}, "400 Bad Request"),
    "an error that is a list": http_answer([], "404 Not Found"),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_is_none(answer):
    with answering(answer) as server, pytest.raises(query.ServerError, match=server) as raised:
        client(server).translate(["a"])
    assert "\n" not in str(raised.value)


NO_JSON = {
    "a web page": (b"<html>", "the answer: not JSON: .* Check the port"),
    "a list": (b"[]", "the answer: expected an object"),
    "a damaged model": (b'{"outputs": {"scores": [NaN]}}', r"the answer: not JSON: NaN .* The model is damaged"),
}


@pytest.mark.parametrize(("content", "words"), NO_JSON.values(), ids=NO_JSON)
def test_an_answer_that_is_not_json(content, words):
    with answering(http_answer(content)) as server, pytest.raises(Failure, match=f"^{server}: model .*: {words}"):
        client(server).translate(["a"])


def test_an_answer_of_any_size_is_not_read_to_its_end():
    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(2**10):
            connection.sendall(b" " * 2**16)

    announced = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
    for answer in (endless, announced):
        with answering(answer) as server, pytest.raises(Failure, match=r"response is larger than .* bytes"):
            client(server, timeout=60).translate(["a"])


def dripping(before):
    """Answers byte by byte, often enough for a time-out of each step."""

    def answer(connection):
        connection.sendall(before)
        for _ in range(20 * 20):
            connection.sendall(b" ")
            time.sleep(0.05)

    return answer


SLOW = {
    "nothing": lambda connection: [None for _ in iter(lambda: connection.recv(2**16), b"")],
    "a head, byte by byte": dripping(b"HTTP/1.1 200 OK\r\na: "),
    "a body, byte by byte": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"),
    "one that goes on": dripping(b"HTTP/1.1 200 OK\r\n\r\n"),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_a_time_out_is_one_of_the_whole_request(answer):
    begin = time.monotonic()
    with answering(answer) as server:
        with pytest.raises(query.ServerError, match=r"no answer within 0.3 s") as raised:
            client(server, timeout=0.3).translate(["a"])
        assert raised.value.code == "DEADLINE_EXCEEDED"
        assert time.monotonic() - begin < 5


def test_looking_up_a_host_is_part_of_the_request(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: time.sleep(2))
    begin = time.monotonic()
    with pytest.raises(query.ServerError, match=r"no answer within 0.2 s"):
        client("translate.example.org", timeout=0.2).translate(["a"])
    assert time.monotonic() - begin < 1.5


@pytest.mark.parametrize(
    "content",
    [{}, {"model_version_status": [{"state": "AVAILABLE"}]},
     {"model_version_status": [{"version": "one", "state": "AVAILABLE"}]},
     {"model_version_status": [{"version": "1", "state": 3}]},
     {"model_version_status": [{"version": "1", "state": "END", "status": "bad"}]},
     {"model_version_status": [{"version": "9" * 5000, "state": "END"}]}],
    ids=lambda content: json.dumps(content)[:40],
)  # fmt: skip
def test_a_status_of_the_wrong_shape(content):
    with answering(http_answer(content)) as server, pytest.raises(Failure, match="Expected an answer from TensorFlow"):
        client(server).status()
