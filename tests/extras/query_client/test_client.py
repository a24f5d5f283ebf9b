"""The client of a server: addresses, requests, and what a server may answer. It needs no TensorFlow."""
# Nearest tests of: extras/query_client/addresses.py, extras/query_client/rest_requests.py
# Nearest tests of: extras/query_client/served_answers.py

import functools
import http.client
import json
import random
import re
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client.addresses import ServerError, server_error
from t2t_lite.extras.query_client.client import ServedAnswer
from tests.extras.query_client.servers import answering, client, http_answer, sending

GOOD = {"outputs": ["A", "B"], "scores": [-1.5, 0], "truncated": [False, True]}


@pytest.mark.parametrize(
    ("server", "found"),
    {
        "localhost:8500": ("grpc", "localhost", 8500, "", False),
        "http://Host.Example.org/v2/": ("rest", "host.example.org", 80, "/v2", False),
        "https://host": ("rest", "host", 443, "", True),
        "HTTP://host:1": ("rest", "host", 1, "", False),
        "127.0.0.1:65535": ("grpc", "127.0.0.1", 65535, "", False),
        "[::1]:8500": ("grpc", "::1", 8500, "", False),
        "http://[::1]/a": ("rest", "::1", 80, "/a", False),
        "http://bücher.example:80/ü%20": ("rest", "xn--bcher-kva.example", 80, "/%C3%BC%20", False),
        "my_service:8500": ("grpc", "my_service", 8500, "", False),
    }.items(),
)
def test_addresses(server, found):
    address = query.Address.parse(server)
    assert (address.protocol, address.host, address.port, address.path, address.encrypted) == found


@pytest.mark.parametrize(
    "server",
    ["", " ", "localhost", "localhost:", ":8500", "localhost:0", "localhost:70000", "localhost:999999", "localhost:abc",
     "localhost:-1", "localhost:8500 ", " localhost:8500", "local host:8500", "localhost:8500\n", "http://a\nb:1",
     "http://", "http:///path", "https://:443", "http://localhost:0", "http://localhost:65536", "http://user:pw@host",
     "user@host:8500", "http://host?x=1", "http://host/a#b", "http://host/a b", "http://host\\a", "ftp://host:21",
     "file:///etc/passwd", "://host:1", "http:host:1", "[::1", "::1", "[::1]", "[::g]:1", "::1:8500", "http://[::1",
     "http://[]:1", "[]:8500", "[1.2.3.4]:1", "a..b:1", f"{'a' * 64}:1", "http://\u2603\ud800:1", "host:\u0661",
     "host:8500/path", "\0:1", "dns:///host:1", "a" * 5000, "-:1"],
    ids=lambda server: repr(server)[:30],
)  # fmt: skip
def test_what_is_no_address(server):
    with pytest.raises(UserError) as raised:
        query.open_client(server, query.Servable("translate"))
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400
    assert "server '" in str(raised.value) or "a path needs http://" in str(raised.value)


@pytest.mark.parametrize("name", ["", " ", "\ud800", None, 3])
def test_what_is_no_name_of_a_model(name):
    with pytest.raises(UserError, match="a model's name"):
        query.Servable(name)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("http://localhost:8501/v1/models/translate:predict", "http://localhost:8501 and --servable_name=translate."),
        ("https://a.org/v2/v1/models/x/versions/3:predict", "https://a.org/v2 and --servable_name=x."),
        ("http://localhost:8501/v1/models/x/labels/stable", "http://localhost:8501 and --servable_name=x."),
        ("localhost:8501/v1/models/x/metadata", "http://localhost:8501 and --servable_name=x."),
        ("http://localhost:8501/v1/models", "http://localhost:8501."),
        ("http://localhost:8501:predict", "http://localhost:8501."),
    ],
)
def test_the_address_of_a_request_is_not_that_of_a_server(server, expected):
    with pytest.raises(UserError, match=f"^server .*{re.escape(expected)}$"):
        query.Address.parse(server)
    assert query.Address.parse("https://a.org/api/v1").path == "/api/v1"


NUMBERS = {  # argument: values that cannot be
    "version": (-1, 2**63, 1.5, True, "many"),
    "timeout": (0, -1.0, float("nan"), float("inf"), 1e300, True, "many", 2**40, None),
    "retries": (-1, 1.5, True, "many", 2**40, None),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in NUMBERS.items() for value in values])
def test_numbers_that_cannot_be(name, value):
    with pytest.raises(UserError, match=f"^{name}={re.escape(str(value))}: expected "):
        servable = query.Servable("translate", value if name == "version" else None)
        query.open_client("localhost:1", servable, **{} if name == "version" else {name: value})


def test_names_of_a_model_in_messages():
    names = [str(query.Servable("a b", **which)) for which in ({}, {"version": 0}, {"label": "x"})]
    assert names == ["model 'a b'", "model 'a b', version 0", "model 'a b', label 'x'"]
    with pytest.raises(UserError, match="version 3 and label 'x'"):
        query.Servable("a", 3, "x")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"cert_file": "notes"}, "private key together"),
        ({"key_file": "notes"}, "private key together"),
        ({"cert_file": "notes", "key_file": "missing"}, "^missing: no such file"),
        ({"cert_file": "missing", "key_file": "notes"}, "^missing: no such file"),
        ({"ca_file": "missing"}, "^missing: no such file"),
        ({"ca_file": "notes"}, "^notes: not a certificate"),
        ({"cert_file": "notes", "key_file": "notes"}, "^notes, notes: not a certificate and its private key"),
    ],
    ids=str,
)
def test_files_of_an_encrypted_connection(tmp_path, monkeypatch, files, message):
    (tmp_path / "notes").write_text("mine")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        query.open_client("https://localhost:1", query.Servable("m"), tls=query.Tls(**files))


ERRORS = {  # what a message has to say of a code, beside the address
    "UNAVAILABLE": ["over REST", "some words", "8500", "8501"],
    "DEADLINE_EXCEEDED": ["model 'm', version 7", "within 2.5 s"],
    "NOT_FOUND": ["model 'm', version 7", "some words", "name and the version"],
    "UNIMPLEMENTED": ["speaks REST", "some words"],
    "CERTIFICATE": ["no encrypted connection", "some words", "TLS"],
    "INTERNAL": ["model 'm', version 7", "INTERNAL: some words."],
}


@pytest.mark.parametrize(("code", "words"), ERRORS.items(), ids=ERRORS)
def test_errors_of_a_server(code, words):
    where = query.Address.parse("http://[::1]:77"), query.Servable("m", 7)
    error = server_error(code, " some\n words.", *where, 2.5)
    assert error.code == code and str(error).startswith("[::1]:77: ") and all(word in str(error) for word in words)
    assert "client's certificate" not in str(error)
    assert len(str(server_error(code, "x" * 999, *where, 2.5))) < 300 + 250
    closed = server_error("UNAVAILABLE", "the peer closed it", query.Address.parse("h:7"), where[1], 2.5)
    assert "over gRPC" in str(closed) and "client's certificate" in str(closed)


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


def test_defaults_and_the_time_limit(monkeypatch):
    limits = []

    def connection(host, port, timeout):
        limits.append((host, port, timeout))
        raise OSError("no network")

    monkeypatch.setattr(http.client, "HTTPConnection", connection)
    for options, expected in (({}, 10), ({"timeout": 2.5}, 2.5)):
        asked = query.open_client("http://host:77", query.Servable("m"), **options)
        assert (asked.retries, asked.first_wait) == (3, 0.5)
        with pytest.raises(OSError):
            asked.status()
        assert limits.pop() == ("host", 77, expected)


def test_a_good_answer():
    with answering(http_answer({"outputs": GOOD})) as server:
        assert client(server).translate(["aa", "b"]) == [ServedAnswer("B", 0, True), ServedAnswer("A", -1.5, False)]


class Sentences:
    """A transport to a model that knows only first sentences; with the signature `sentences`, or without."""

    address = servable = "stub"

    def __init__(self, has_signature):
        self.has_signature, self.asked = has_signature, []

    def predict(self, signature, inputs):
        self.asked.append((signature, inputs["inputs"]))
        if signature == "sentences" and not self.has_signature:
            raise ServerError("INVALID_ARGUMENT", 'Serving signature name: "sentences" not found in signature def')
        texts = [text.partition(".")[0].upper() for text in inputs["inputs"]]
        return {
            "outputs": texts,
            "scores": [-1.0] * len(texts),
            "truncated": ["x" in text for text in inputs["inputs"]],
        }


def test_several_sentences_are_sent_one_by_one_if_the_model_wants_that():
    texts, told = ["Ab. Cd xy. Ef", "", "Gh."], []
    split = [ServedAnswer("AB CD XY EF", -3.0, True), ServedAnswer("", -1.0, False), ServedAnswer("GH", -1.0, False)]
    asked = query.Client(Sentences(True), retries=0)
    assert asked.translate(texts, on_progress=told.append) == split and sum(told) == 3
    asked.translate(texts)
    assert [signature for signature, _ in asked.transport.asked].count("sentences") == 1
    cases = ("always", Sentences(False), split[0]), (None, Sentences(False), None), ("never", Sentences(True), None)
    for choice, transport, expected in cases:
        found = query.Client(transport, retries=0).translate(texts, split_sentences=choice)[0]
        assert found == (expected or ServedAnswer("AB", -1.0, True))
    with pytest.raises(UserError, match="split_sentences='yes': expected one of auto, always, never"):
        asked.translate(texts, split_sentences="yes")


def test_a_server_that_fails_does_not_decide_about_sentences():
    class Failing(Sentences):
        def predict(self, signature, inputs):
            if signature == "sentences":
                raise ServerError("INTERNAL", "out of luck")
            return super().predict(signature, inputs)

    asked = query.Client(Failing(True), retries=0)
    with pytest.raises(ServerError):
        asked.translate(["Ab. Cd"])
    assert asked.translate(["Ab."], split_sentences="never")[0].text == "AB"


def test_an_answer_that_is_far_too_short_says_so():
    (found,) = query.Client(Sentences(False), retries=0).translate(["Ab. " * 60])
    assert found.is_short and not query.Client(Sentences(True), retries=0).translate(["Ab. " * 60])[0].is_short


def changed(**columns):
    return {"outputs": {**GOOD, **columns}}


WRONG = {
    "no JSON": b"<html>",
    "no object": [1],
    "null": b"null",
    "no outputs": {},
    "outputs are null": {"outputs": None},
    "a list": {"outputs": [["A", -1.5, False]]},
    "a column is missing": {"outputs": {"outputs": ["A", "B"]}},
    "too few": changed(outputs=["A"]),
    "too many": changed(scores=[1, 2, 3]),
    "numbers for texts": changed(outputs=[1, 2]),
    "texts for scores": changed(scores=["1", "2"]),
    "switches for scores": changed(scores=[True, False]),
    "null for a score": changed(scores=[None, 1]),
    "numbers for switches": changed(truncated=[0, 1]),
    "nested": changed(outputs=[["A"], ["B"]]),
    "not a list": changed(outputs="AB"),
    "not finite": b'{"outputs": {"outputs": ["A", "B"], "scores": [NaN, 0], "truncated": [true, true]}}',
    "huge": (
        f'{{"outputs": {{"outputs": ["A", "B"], "scores": [{"9" * 400}, 0], "truncated": [true, true]}}}}'
    ).encode(),
    "infinite": b'{"outputs": {"outputs": ["A", "B"], "scores": [1e999, 0], "truncated": [true, true]}}',
    "too deep": b"[" * 100_000,
    "not UTF-8": b'{"outputs": "\xff"}',
    "a name twice": b'{"outputs": {}, "outputs": {}}',
}


def test_answers_of_encoders():
    found = {"outputs": {"labels": ["A", "B"], "probabilities": [[0.9, 0.1], [0.2, 0.8]]}}
    with answering(http_answer(found)) as server:
        assert client(server).predict({"first": ["aa", "b"], "second": ["", "c"]}) == [
            {"labels": "A", "probabilities": [0.9, 0.1]},
            {"labels": "B", "probabilities": [0.2, 0.8]},
        ]
    for wrong in ({"outputs": {"labels": ["A"]}}, {"outputs": {"labels": "AB"}}, {"outputs": None}):
        with answering(http_answer(wrong)) as server, pytest.raises(Failure, match="not a list of 2 answers"):
            client(server).predict({"inputs": ["aa", "b"]})


def test_an_encoder_makes_no_translations():
    answer = http_answer({"outputs": {"labels": ["A"], "truncated": [False]}})
    message = r"answers with labels, truncated\. .* Client\.predict"
    with answering(answer) as server, pytest.raises(query.NoTranslations, match=message):
        client(server).translate(["a"])


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_an_answer_of_the_wrong_shape(content):
    with answering(http_answer(content)) as server, pytest.raises(Failure) as raised:
        client(server).translate(["aa", "b"])
    assert server in str(raised.value) and "\n" not in str(raised.value) and len(str(raised.value)) < 600


@pytest.mark.parametrize(
    "content",
    [{}, {"model_version_status": None}, {"model_version_status": [1]}, {"model_version_status": [{}]},
     {"model_version_status": [{"version": "one", "state": "AVAILABLE"}]},
     {"model_version_status": [{"version": None, "state": "AVAILABLE"}]},
     {"model_version_status": [{"version": "1", "state": 3}]},
     {"model_version_status": [{"version": "1", "state": "END", "status": "bad"}]},
     {"model_version_status": [{"version": "9" * 5000, "state": "END"}]}],
    ids=lambda content: json.dumps(content)[:40],
)  # fmt: skip
def test_a_status_of_the_wrong_shape(content):
    with answering(http_answer(content)) as server, pytest.raises(Failure, match="Expected the answer of a TensorFlow"):
        client(server).status()


class Flaky:
    """A transport whose first calls fail with these errors."""

    address = servable = "stub"

    def __init__(self, *errors):
        self.errors, self.calls = [*errors], 0

    def status(self):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "an answer"


def test_waits_before_a_request_is_repeated(monkeypatch, clock):
    """They double up to ten seconds, and are shortened by a half at most."""
    monkeypatch.setattr(random, "uniform", lambda least, most: least + (most - least) / 2)
    transport = Flaky(*(ServerError("UNAVAILABLE", "") for _ in range(7)))
    assert query.Client(transport, retries=7).status() == "an answer"
    assert clock.sleeps == [0.375, 0.75, 1.5, 3.0, 6.0, 7.5, 7.5] and transport.calls == 8
    transport = Flaky(*(ServerError("DEADLINE_EXCEEDED", "") for _ in range(3)))
    with pytest.raises(ServerError):
        query.Client(transport, retries=2, first_wait=8).status()
    assert clock.sleeps[7:] == [6.0, 7.5] and transport.calls == 3


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "NOT_FOUND", "INTERNAL", "CERTIFICATE", "RESOURCE_EXHAUSTED"])
def test_what_would_fail_again_is_not_repeated(clock, code):
    transport = Flaky(ServerError(code, ""))
    with pytest.raises(ServerError):
        query.Client(transport).status()
    assert transport.calls == 1 and clock.sleeps == []


@pytest.mark.parametrize(
    ("header", "least"), [("7", 7), ("999999", 10), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-1", 0)]
)
def test_a_server_says_when_to_ask_again(monkeypatch, header, least):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    busy = http_answer({"error": "the queue is full"}, "503 Service Unavailable", f"Retry-After: {header}\r\n")
    with answering(busy) as server:
        asked = query.open_client(f"http://{server}", query.Servable("translate"), retries=1)
        with pytest.raises(query.ServerError):  # the second time nobody listens
            asked.translate(["a"])
    assert least + 0.25 <= waits[0] <= least + 0.5


class Noting:
    """A transport that notes requests, whose numbers must be Python's; its model expects single sentences."""

    address, servable = "localhost:1", query.Servable("translate")

    def __init__(self):
        self.asked = []

    def predict(self, signature, inputs):
        assert {type(value) for values in inputs.values() for value in values} <= {str, int, float}
        texts = inputs["inputs"]
        if signature == "sentences":
            return {}
        self.asked.append((signature, inputs))
        if signature == "n_best":
            rows = [[f"{text.upper()}{rank}" for rank in range(3)] for text in texts]
            return {"outputs": rows, "scores": [[-1.0, -2.0, -4.0]] * len(texts), "truncated": [False] * len(texts)}
        return {"outputs": texts, "scores": [0.0] * len(texts), "truncated": [False] * len(texts)}


DOORS = {  # a method, its options, what they are in each request
    "alpha": ("translate", {"alpha": 0.75, "extra_length": 3}, {"alpha": 0.75, "extra_length": 3}),
    "seed": ("translate", {"seed": 7, "extra_length": 5}, {"seed": 7, "extra_length": 5}),
    "batches": ("translate", {"batch_size": 1}, {}),
    "count": ("n_best", {"count": 2}, {}),
    "all of them": ("n_best", {}, {}),
    "all by their number": ("n_best", {"count": 3}, {}),
    "batches of the best": ("n_best", {"batch_size": 1}, {}),
}


@pytest.mark.parametrize("split", ["never", "always", None])
@pytest.mark.parametrize(("method", "options", "sent"), DOORS.values(), ids=DOORS)
def test_options_reach_every_request_whether_or_not_texts_are_split(method, options, sent, split):
    transport, done, texts = Noting(), [], ["Ab. Cd ef", "g"]
    ask = functools.partial(getattr(query.Client(transport, retries=0), method), split_sentences=split)
    answers = ask(texts, on_progress=done.append, **options)
    parts = ["Ab. Cd ef", "g"] if split == "never" else ["Ab.", "Cd ef", "g"]
    assert sorted(text for _, inputs in transport.asked for text in inputs["inputs"]) == sorted(parts)
    signature = "n_best" if method == "n_best" else "with_options" if sent else "serving_default"
    for found, inputs in transport.asked:
        count = len(inputs.pop("inputs"))
        assert found == signature and count <= options.get("batch_size", 3)
        assert inputs == {name: [value] * count for name, value in sent.items()}
    assert len(transport.asked) == (len(parts) if "batch_size" in options else 1) and sum(done) == len(texts)
    assert [one.parts for one in answers] == [1 if split == "never" else 2, 1]
    if method == "n_best":
        scores = [one.score for one in answers[0].hypotheses]
        assert scores == [score * answers[0].parts for score in (-1, -2, -4)][: options.get("count")]


def test_half_a_character_in_an_answer_is_replaced():
    """What is written is UTF-8, whatever a server sends."""
    content = json.dumps({"outputs": {"outputs": ["\ud800"], "scores": [0], "truncated": [False]}}).encode()
    with answering(http_answer(content)) as server:
        assert client(server).translate(["a"])[0].text == "\ufffd"


BROKEN = {
    "closed at once": b"",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "cut short": http_answer({"outputs": GOOD})[:-5],
    "a chunk of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "a status of no number": b"HTTP/1.1 abc OK\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500 + b"\r\n",
    "a long header": b"HTTP/1.1 200 OK\r\na: " + b"b" * 100_000 + b"\r\n\r\n",
    "a redirection": http_answer(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"),
    "a page": http_answer(b"<html>bad gateway</html>", "500 Internal Server Error"),
    "an error of another shape": http_answer({"error": {"code": 3}}, "400 Bad Request"),
    "an error that is a list": http_answer([], "404 Not Found"),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_is_none(answer):
    with answering(answer) as server, pytest.raises(query.ServerError, match=server) as raised:
        client(server).translate(["a"])
    assert "\n" not in str(raised.value)


def test_an_answer_of_any_size_is_not_read_to_its_end():
    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(2**10):
            connection.sendall(b" " * 2**16)

    announced = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
    for answer in (endless, announced):
        with answering(answer) as server, pytest.raises(Failure, match=r"an answer of more than .* bytes"):
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


def test_what_is_no_list_of_texts():
    """Before anything is sent: there is no server."""
    asked = client("127.0.0.1:1")
    with pytest.raises(TypeError, match=r"must be a list of str, received one str. For one sentence: \[text\]"):
        asked.translate("text")
    with pytest.raises(TypeError, match="item 1: must be str, received bytes"):
        asked.translate(["a", b"b"])
    with pytest.raises(TypeError, match=r"no argument `beam`. Expected some of alpha"):
        asked.translate(["a"], beam=4)
    with pytest.raises(UserError, match="batch_size=0"):
        asked.translate(["a"], batch_size=0)
    assert asked.translate([]) == []
    for wrong, message in (({}, "inputs: none"), ({"a": ["x"], "b": []}, "inputs: 1 a, 0 b")):
        with pytest.raises(UserError, match=message):
            asked.predict(wrong)
    with pytest.raises(TypeError, match="`first`, item 0: must be str"):
        asked.predict({"first": [1]})
    assert asked.predict({"first": [], "second": []}) == []


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("seed", 1.9),
        ("seed", 2**31),
        ("seed", True),
        ("extra_length", 2**40),
        ("alpha", float("nan")),
        *(("batch_size", wrong) for wrong in (0, 1.5, True, "many", 2**40, None)),
    ],
)
def test_a_number_that_cannot_be_is_refused(name, wrong):
    """Nothing is rounded, cut or wrapped."""
    options = {"extra_length": 3, "seed" if name == "seed" else "alpha": 1} | {name: wrong}
    with pytest.raises(UserError, match=rf"^{name}="):
        query.Client(Noting()).translate(["a"], **options)


def test_numpys_numbers_and_texts_are_those_of_python():
    transport = Noting()
    texts = np.array(["a", "bc"])
    found = query.Client(transport).translate(
        texts, seed=np.int64(2**31 - 1), extra_length="1e2", batch_size=np.int32(8)
    )
    assert [type(one.text) for one in found] == [str, str]
    assert transport.asked == [
        ("with_options", {"inputs": ["a", "bc"], "seed": [2**31 - 1] * 2, "extra_length": [100] * 2})
    ]
    query.Client(transport).predict({"inputs": texts})


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(["tensorflow", "tensorflow_text", "keras", "numpy"]))
from t2t_lite.extras.query_client import t2t_query_server
sys.exit(t2t_query_server.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("given", ["--inputs_once=aa", "--inputs_file=in", "standard input"])
def test_the_client_needs_no_tensorflow(tmp_path, given):
    (tmp_path / "in").write_text("aa\n")
    content = {"outputs": {"outputs": ["\u00dc\u2028b\x1b"], "scores": [-1], "truncated": [False]}}
    with answering(http_answer(content)) as server:
        flags = [f"--server=http://{server}", "--servable_name=x", *([given] if given.startswith("--") else [])]
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT, *flags], cwd=tmp_path, input=b"aa\n", capture_output=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    last = done.stdout.decode().split("\n")[-2]
    assert last.endswith("\u00dc b "), "control characters and line separators are spaces"
