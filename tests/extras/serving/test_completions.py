"""Completions, whole and as events, with a list of ids in place of the model."""

import contextlib
import io
import json
import re

import pytest
import tensorflow as tf

from t2t_lite.extras.serving import completions
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.settings.search_options import SearchOptions
from tests.extras.serving.echo_server import events_of, rest_server
from tests.extras.serving.test_rest_server import asker

TEXT = "Grün\u2028\u0085\n wäre .. \u20ac\U0001f600 gut"


def opened(server, **request):
    """Returns the body of a streamed request, an iterator."""
    heads = []
    body = json.dumps({"stream": True, **request}).encode()
    environ = {"REQUEST_METHOD": "POST", "REQUEST_URI": completions.PATH, "CONTENT_LENGTH": str(len(body))}
    environ["wsgi.input"] = io.BytesIO(body)
    environ["waitress.client_disconnected"] = lambda: opened.has_gone
    stream = server(environ, lambda *head: heads.append(head))
    assert heads[0][0] == "200 OK" and ("Content-Type", "text/event-stream; charset=utf-8") in heads[0][1]
    return stream


opened.has_gone = False


def test_the_events_are_together_the_whole_answer(generator):
    server = rest_server()
    ask = asker(server)
    for request in ({}, {"stop": ["..", "?"]}, {"max_tokens": 5}, {"max_tokens": 8, "stop": "zz"}):
        status, answer = ask("POST", completions.PATH, json.dumps({"prompt": TEXT, **request}).encode())
        whole = json.loads(answer)
        with contextlib.closing(opened(server, prompt=[TEXT], **request)) as stream:
            events = events_of(b"".join(stream))
        parts = [event["choices"][0]["text"] for event in events]
        (choice,), last = whole["choices"], events[-1]
        assert status == "200 OK" and "".join(parts) == choice["text"] == last["generated_text"] != ""
        assert len(parts) > 4 and all(parts[:-1]) and parts[-1] == "" and "\ufffd" not in choice["text"]
        assert {event["choices"][0]["finish_reason"] for event in events[:-1]} == {None}
        assert [last[name] for name in ("usage", "truncated")] == [whole[name] for name in ("usage", "truncated")]
        assert last["choices"][0] | {"text": choice["text"]} == choice
        expected = "length" if "max_tokens" in request else "stop"
        assert choice["finish_reason"] == expected and choice["stop_reason"] == (
            ".." if "?" in request.get("stop", "") else None
        )
        assert {event["id"] for event in events} == {last["id"]} != {whole["id"]}
    assert whole["usage"] == {
        "prompt_tokens": len(TEXT.encode()),
        "completion_tokens": 8,
        "total_tokens": len(TEXT.encode()) + 8,
    }


OPTIONS = {
    "nothing": ({}, {"sampling": False}),
    "nulls and what changes nothing": (
        {"n": 1, "best_of": 1, "echo": False, "suffix": "", "logit_bias": {}, "presence_penalty": 0.0, "user": "me",
         "frequency_penalty": 0, "temperature": None, "logprobs": None, "stream_options": {"include_usage": True}},
        {"sampling": False}),
    "temperature": ({"temperature": 1}, {"sampling": True, "temperature": 1.0, "top_k": 0}),
    "all of sampling": ({"temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 7},
                        {"sampling": True, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 7}),
    "all candidates": ({"top_k": -1}, {"sampling": True, "top_k": 0}),
    "greedy": ({"temperature": 0, "top_p": 0.9, "seed": 7}, {"sampling": False}),
    "a seed that has no effect": ({"seed": 7}, {"sampling": False}),
    "rules": ({"no_repeat_ngram_size": 2, "repetition_penalty": 1.2},
              {"sampling": False, "no_repeat_ngram_size": 2, "repetition_penalty": 1.2}),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "expected"), OPTIONS.values(), ids=OPTIONS)
def test_options(generator, request_, expected):
    body = json.dumps({"prompt": "a", "max_tokens": 5, **request_}).encode()
    assert asker(rest_server())("POST", completions.PATH, body)[0] == "200 OK"
    ((prompt, longest, options),) = generator.asked
    assert (prompt, longest) == ("a", 5)
    assert {name: getattr(options, name) for name in expected} == expected


def test_an_export_that_samples_has_its_own_defaults(generator):
    generator.options = SearchOptions(sampling=True, temperature=0.7, top_k=9, seed=3, stop="x", extra_length=8)
    ask = asker(rest_server())
    for request in ({}, {"seed": 4, "stop": []}, {"temperature": 0}):
        ask("POST", completions.PATH, json.dumps({"prompt": "a", **request}).encode())
    (_, longest, usual), (_, _, seeded), (_, _, greedy) = generator.asked
    assert (longest, usual) == (8, generator.options)
    assert (seeded.seed, seeded.stop, seeded.temperature, seeded.sampling) == (4, (), 0.7, True)
    assert not greedy.sampling


REFUSED = {
    "no prompt": ({"prompt": None}, 400, "prompt: expected a text"),
    "half a character": ({"prompt": "\ud800"}, 400, "The surrogate pair in string is invalid"),
    "two": ({"prompt": ["a", "b"]}, 400, "Several are sent one by one"),
    "ids": ({"prompt": [1]}, 400, "prompt: expected a text"),
    "another model": ({"model": "x"}, 404, r"Servable not found for request: Latest\(x\)"),
    "no name": ({"model": 3}, 400, "model: expected my model"),
    "several": ({"n": 2}, 400, "^n: only 1 is served. Leave it out.$"),
    "probabilities": ({"logprobs": 1}, 400, "^logprobs: not served. Leave it out.$"),
    "a misprint": ({"max_token": 1}, 400, "max_token: unknown. Nearest: max_tokens"),
    "too many": ({"max_tokens": 501}, 400, "max_tokens=501: expected a whole number from 1 to 500"),
    "none": ({"max_tokens": 0}, 400, "max_tokens=0: expected a whole number from 1"),
    "half a token": ({"max_tokens": 1.5}, 400, "max_tokens=1.5: expected a whole number"),
    "text": ({"temperature": "1"}, 400, "^temperature: expected a number, found '1'.$"),
    "true": ({"top_k": True}, 400, "^top_k: expected a number, found True.$"),
    "too hot": ({"temperature": -1}, 400, "temperature=-1: expected a number from 0"),
    "what greedy search does not use": ({"temperature": 0, "top_p": 2}, 400, "top_p=2: expected"),
    "a stop": ({"stop": ""}, 400, "stop=.*expected at most 16 texts"),
    "stream": ({"stream": "true"}, 400, "^stream: expected true or false, found 'true'.$"),
    "an error at once": ({"prompt": "fails", "max_tokens": 9, "stop": "q", "stream": False}, 500, "the server failed"),
    "memory": ({"prompt": "full", "stream": False}, 429, "out of memory"),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(generator, request_, code, message):
    server = rest_server(most=1)
    ask = asker(server)
    for _ in range(2):  # the place is free again
        status, answer = ask("POST", completions.PATH, json.dumps({"prompt": "a", "stream": True, **request_}).encode())
        assert int(status.split()[0]) == code and re.search(message, json.loads(answer)["error"]["message"])
    assert ask("POST", completions.PATH, b'{"prompt": "a"}')[0] == "200 OK"


def test_it_is_off_unless_asked_for(generator):
    status, answer = asker(rest_server(most=0))("POST", completions.PATH, b'{"prompt": "a"}')
    assert status.startswith("404") and "--max_streams" in answer
    status, answer = asker(rest_server())("GET", completions.PATH)
    assert status.startswith("400") and "Malformed request" in answer


def test_a_place_is_free_however_a_stream_ends(generator):
    server = rest_server(most=1)
    ask = asker(server)

    def is_free():
        return ask("POST", completions.PATH, b'{"prompt": "a"}')[0] == "200 OK"

    stream = opened(server, prompt=TEXT)
    status, answer = ask("POST", completions.PATH, b'{"prompt": "a", "stream": true}')
    assert status.startswith("503") and "all 1 streams" in answer and ask.headers["Retry-After"] == "1"
    stream.close()  # before anything has been read
    stream.close()
    assert is_free()
    stream = opened(server, prompt=TEXT)
    next(stream), next(stream), stream.close()
    assert is_free() and generator.computed < len(TEXT.encode())
    for word, message in {"fails": "the server failed", "full": "out of memory"}.items():
        stream = opened(server, prompt=word)
        *_, last = stream
        assert json.loads(last.removeprefix(b"data: "))["error"]["message"].startswith(message)
        stream.close()
        assert is_free()
    stream = opened(server, prompt=TEXT)
    opened.has_gone = True
    try:
        assert len(list(stream)) == 2, "the one that was there, and an error"
    finally:
        opened.has_gone = False
    stream.close()
    assert is_free()
    counts = dict(re.findall(r'request_count{model_name="my model",status="([A-Z_]+)"} ([0-9.]+)', server.page()))
    assert counts == {
        "OK": "5.0",
        "UNAVAILABLE": "1.0",
        "CANCELLED": "3.0",
        "INTERNAL": "1.0",
        "RESOURCE_EXHAUSTED": "1.0",
    }


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_place_is_free_when_the_first_step_fails(generator, monkeypatch, is_streamed):
    errors = [RuntimeError("secret"), tf.errors.ResourceExhaustedError(None, None, "OOM"), Refusal("no")]

    def search(ids, options):
        raise errors.pop()
        yield

    monkeypatch.setattr(generator.generator.searcher, "stream", search)
    server, body = rest_server(most=1), json.dumps({"prompt": "a", "stream": is_streamed}).encode()
    statuses = [asker(server)("POST", completions.PATH, body)[0][:3] for _ in range(3)]
    assert statuses == ["400", "429", "500"] and server._completions.num_open == 0


def test_a_server_that_stops_lets_streams_end_or_ends_them(generator, monkeypatch):
    server = rest_server()
    stream, other = opened(server, prompt="abc"), opened(server, prompt="abc")
    server.end_streams()
    assert events_of(b"".join(other))[-1]["choices"][0]["finish_reason"] == "stop"
    monkeypatch.setattr(completions, "_LAST_SECONDS", -1.0)
    server.end_streams()
    last = events_of(b"".join(stream))[-1]
    assert last["choices"][0]["finish_reason"] == "abort" and last["generated_text"] == "a"
    stream.close(), other.close()
    status, answer = asker(server)("POST", completions.PATH, b'{"prompt": "abc"}')
    assert status.startswith("503") and "the server is stopping" in answer
