"""What t2t-query-server --stream asks for and prints, and streams that are broken."""
# Nearest tests of: extras/query_client/line_queries.py, extras/query_client/rest_requests.py

import json

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client.addresses import ServerError
from t2t_lite.extras.query_client.line_queries import StreamedQueries
from tests.extras.query_client.servers import answering, client, http_answer, sending

DONE = b"data: [DONE]\n\n"


def event(text, **others):
    return b"data: " + json.dumps({"choices": [{"text": text, **others}]}).encode() + b"\n\n"


def head(*events):
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(events)


def streamed(server, **options):
    return list(client(server).stream("Once", **options))


def test_the_parts_are_printed_as_they_come(capsys):
    sent = head(event("a "), b": a comment\n\n", event("b\n"), event("", finish_reason="stop"), DONE)
    with answering(sending(sent)) as server:
        StreamedQueries(client(server)).show("Once")
    assert capsys.readouterr().out == "a b\n\n"


OPTIONS = {
    "": {},
    "extra_length=9,stop=[x,\\n]": {"max_tokens": 9, "stop": ("x", "\n")},
    "sampling_method=random": {"temperature": 1.0},
    "sampling_method=random,sampling_temp=0.5,sampling_keep_top_k=4,sampling_keep_top_p=0.9,sampling_seed=3": {
        "temperature": 0.5, "top_k": 4, "top_p": 0.9, "seed": 3},
    "sampling_method=argmax": {"temperature": 0},
    "no_repeat_ngram_size=2,repetition_penalty=1.5": {"no_repeat_ngram_size": 2, "repetition_penalty": 1.5},
}  # fmt: skip


def test_each_line_of_standard_input_is_continued_in_one(standard_input, capsys):
    class Capitals:
        def stream(self, prompt):
            yield from ("\n", prompt.upper(), "\u2028.")

    standard_input("a\n\nü".encode())
    StreamedQueries(Capitals()).run()
    assert capsys.readouterr().out == " A .\n  .\n Ü .\n"
    StreamedQueries(Capitals()).run("a")
    assert capsys.readouterr().out == "\nA\u2028.\n"


@pytest.mark.parametrize(("settings", "expected"), OPTIONS.items(), ids=OPTIONS)
def test_the_request_has_what_is_set(settings, expected):
    class Asked:
        def stream(self, prompt, **options):
            assert (prompt, options) == ("Once", expected)
            yield "there"

    StreamedQueries(Asked(), settings).show("Once")


def test_mistakes():
    for settings, words in {
        "beam_size=4": "beam_size: .*--stream.* sampling_method",
        "n_best=2": "n_best: .*--stream",
        "sampling_temp=0.5": "sampling_method=random",
    }.items():
        with pytest.raises(UserError, match=words):
            StreamedQueries(None, settings)
    with pytest.raises(UserError, match=r"version 3: .* stream"):
        list(client("localhost:1", version=3).stream("a"))
    with pytest.raises(UserError, match="n=2: a stream has one continuation"):
        list(client("localhost:1").stream("a", n=2))

    class Grpc:
        address = "localhost:8500"

    with pytest.raises(UserError, match=r"localhost:8500: .*REST"):
        list(query.Client(Grpc()).stream("a"))


BROKEN = {
    "an end too early": (head(event("a")), ServerError, "the stream ended too early"),
    "half an event": (head(event("a"), b'data: {"cho'), Failure, "the event: "),
    "an error": (head(b'data: {"error": {"message": "out of luck"}}\n\n'), ServerError, "INTERNAL: out of luck"),
    "something else": (head(b"data: 3\n\n"), Failure, "not a t2t-server: the event"),
    "no text": (head(b"data: {}\n\n"), ServerError, "an event without a text"),
    "no HTTP": (b"\x16\x03\x01", ServerError, "does not answer in HTTP"),
    "off": (http_answer({"error": "--max_streams"}, "404 Not Found"), ServerError, "not on this server: --max_streams"),
}


@pytest.mark.parametrize(("sent", "kind", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_streams(sent, kind, message):
    with answering(sending(sent)) as server, pytest.raises(kind, match=message) as raised:
        streamed(server)
    assert "\n" not in str(raised.value)


def test_a_stream_that_ends_at_any_byte_is_not_whole():
    whole = head(event("a"), event("b", finish_reason="stop"), DONE)
    for end in range(len(whole) - 1):  # the last line's second end is not waited for
        with answering(sending(whole[:end])) as server, pytest.raises(Failure) as raised:
            streamed(server)
        assert server in str(raised.value)


def silent(connection):
    """An answer for `answering` that waits after its first events until the client closes."""
    connection.sendall(head(event("a"), event("b")))
    while connection.recv(2**16):
        pass


def test_a_server_that_falls_silent():
    with answering(silent) as server:
        parts = client(server, timeout=0.3).stream("a")
        assert [next(parts), next(parts)] == ["a", "b"]
        with pytest.raises(ServerError, match=r"no answer within 0\.3 s"):
            next(parts)


def test_a_caller_that_stops_closes_the_connection():
    with answering(silent) as server:
        parts = client(server).stream("a")
        assert next(parts) == "a"
        parts.close()
