"""Completions, whole and as events, with a list of ids in place of the model; and what their JSON may be."""

# Nearest tests of: extras/serving/rest_server.py

import contextlib
import io
import json
import re

import pytest
import tensorflow as tf

from t2t_lite.extras.serving import completions
from t2t_lite.extras.serving.completion_requests import CompletionRequest
from t2t_lite.extras.serving.json_tensors import parse_body
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.settings.search_options import SearchOptions
from tests.extras.serving.doubles import asker, events_of, rest_server

TEXT = "Grün\u2028\u0085\u2029\n wäre .. \u20ac\U0001f600 gut"
_TEXT, _NUMBER, _TRUTH, _LIST, _OBJECT = '"a"', "1", "false", '["a"]', "{}"
KINDS = {
    "prompt": (_TEXT, _LIST), "stream": (_TRUTH,), "stop": (_TEXT, _LIST), "max_tokens": (_NUMBER,),
    "temperature": (_NUMBER,), "top_p": (_NUMBER,), "top_k": (_NUMBER,), "seed": (_NUMBER,),
    "no_repeat_ngram_size": (_NUMBER,), "repetition_penalty": (_NUMBER,), "n": (_NUMBER,), "best_of": (_NUMBER,),
    "user": (_TEXT,), "stream_options": (_OBJECT,), "echo": (_TRUTH,), "logit_bias": (_OBJECT,), "model": (_TEXT,),
}  # fmt: skip


def complete(server, **request):
    """Returns (status, JSON of the answer) of a request that is answered at once."""
    status, answer = asker(server)("POST", completions.PATH, request)
    return int(status.split()[0]), json.loads(answer)


def opened(server, **request):
    """Returns the body of a streamed request, an iterator."""
    heads, body = [], json.dumps({"stream": True, **request}).encode()
    environ = {"REQUEST_METHOD": "POST", "REQUEST_URI": completions.PATH, "CONTENT_LENGTH": str(len(body))}
    environ["wsgi.input"] = io.BytesIO(body)
    environ["waitress.client_disconnected"] = lambda: opened.has_gone
    stream = server(environ, lambda *head: heads.append(head))
    assert heads == [("200 OK", completions.HEADERS)]
    return stream


opened.has_gone = False


def test_the_events_are_together_the_whole_answer(generator):
    server = rest_server(generator)
    for request in ({}, {"stop": ["..", "?"]}, {"max_tokens": 5}, {"max_tokens": 8, "stop": "zz"}):
        status, whole = complete(server, prompt=TEXT, **request)
        with contextlib.closing(opened(server, prompt=[TEXT], **request)) as stream:
            events = events_of(b"".join(stream))
        parts = [event["choices"][0]["text"] for event in events]
        (choice,), last = whole["choices"], events[-1]
        assert status == 200 and "".join(parts) == choice["text"] == last["generated_text"] != ""
        assert len(parts) > 4 and all(parts[:-1]) and parts[-1] == "" and "\ufffd" not in choice["text"]
        assert {event["choices"][0]["finish_reason"] for event in events[:-1]} == {None}
        assert [last[name] for name in ("usage", "truncated")] == [whole[name] for name in ("usage", "truncated")]
        assert last["choices"][0] | {"text": choice["text"]} == choice
        assert choice["finish_reason"] == ("length" if "max_tokens" in request else "stop")
        assert choice["stop_reason"] == (".." if "?" in request.get("stop", "") else None)
        assert {event["id"] for event in events} == {last["id"]} != {whole["id"]}
    counts = {"prompt_tokens": len(TEXT.encode()), "completion_tokens": 8, "total_tokens": len(TEXT.encode()) + 8}
    assert whole["usage"] == counts
    assert 'request_count{model_name="my model",status="OK"} 8.0' in server.metrics.page()


def test_an_answer_and_its_head(generator, clock):
    """The fields of OpenAI's API, and two that name the stop string and a truncated prompt."""
    status, answer = complete(rest_server(generator), prompt="cut", max_tokens=2)
    assert status == 200 and answer.pop("id").startswith("cmpl-") and clock.now == 1_700_000_003.25
    choice = {"index": 0, "text": "cu", "logprobs": None, "finish_reason": "length", "stop_reason": None}
    assert answer == {
        "object": "text_completion", "created": 1_700_000_003, "model": "my model", "choices": [choice],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}, "truncated": True,
    }  # fmt: skip
    assert dict(completions.HEADERS) == {
        "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
    }  # fmt: skip


OPTIONS = {
    "nothing": ({}, {"sampling": False}),
    "nulls and what changes nothing": (
        {"n": 1, "best_of": 1, "echo": False, "suffix": "", "logit_bias": {}, "presence_penalty": 0.0, "user": "me",
         "frequency_penalty": 0, "temperature": None, "logprobs": None, "stream_options": {"include_usage": True}},
        {"sampling": False}),
    "temperature": ({"temperature": 1}, {"sampling": True, "temperature": 1.0, "top_k": 0}),
    "top_p alone": ({"top_p": 0.5}, {"sampling": True, "temperature": 1.0, "top_p": 0.5}),
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
    assert complete(rest_server(generator), prompt="a", max_tokens=5, **request_)[0] == 200
    ((prompt, longest, options),) = generator.asked
    assert (prompt, longest) == ("a", 5)
    assert {name: getattr(options, name) for name in expected} == expected


def test_an_export_that_samples_has_its_own_defaults(generator):
    generator.options = SearchOptions(sampling=True, temperature=0.7, top_k=9, seed=3, stop="x", extra_length=8)
    for request in ({}, {"seed": 4, "stop": []}, {"temperature": 0}):
        complete(rest_server(generator), prompt="a", **request)
    (_, longest, usual), (_, _, seeded), (_, _, greedy) = generator.asked
    assert (longest, usual) == (8, generator.options)
    assert (seeded.seed, seeded.stop, seeded.temperature, seeded.sampling) == (4, (), 0.7, True)
    assert not greedy.sampling


CODES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
KINDS_OF_ERRORS = dict.fromkeys((400, 404), "invalid_request_error")
REFUSED = {
    "no prompt": ({"prompt": None}, 400, "^prompt: "),
    "an empty list": ({"prompt": []}, 400, "^prompt: "),
    "texts and ids": ({"prompt": ["a", [3]]}, 400, "^prompt: "),
    "truths": ({"prompt": [True]}, 400, "^prompt: "),
    "an id that is not in the vocabulary": ({"prompt": [3, 258]}, 400, "^prompt: .*258"),
    "padding": ({"prompt": [0]}, 400, "^prompt: "),
    "more texts than a request may have": ({"prompt": ["a", "b"], "n": 3}, 400, "^prompt: .* exceed 4 texts"),
    "more ids than are read": ({"prompt": [9] * 101, "echo": True, "stream": False}, 400, "^prompt: 101 ids .* 100 "),
    "a longer text": ({"prompt": "a" * 101, "logprobs": 0, "stream": False}, 400, "^prompt: 101 ids .* 100 "),
    "another model": ({"model": "x"}, 404, r"Servable not found for request: Latest\(x\)"),
    "no name": ({"model": 3}, 400, "^model: .*my model"),
    "a misprint": ({"max_token": 1}, 400, "^max_token: .*max_tokens"),
    "too many": ({"max_tokens": 501}, 400, "^max_tokens=501: .* 1 to 500"),
    "none": ({"max_tokens": 0}, 400, "^max_tokens=0: .* 1 to 500"),
    "half a token": ({"max_tokens": 1.5}, 400, "^max_tokens=1.5: "),
    "text": ({"temperature": "1"}, 400, "^temperature: .*'1'"),
    "true": ({"top_k": True}, 400, "^top_k: .*True"),
    "too hot": ({"temperature": -1}, 400, "^temperature=-1: "),
    "what greedy search does not use": ({"temperature": 0, "top_p": 2}, 400, "^top_p=2: "),
    "a stop": ({"stop": ""}, 400, "^stop="),
    "stream": ({"stream": "true"}, 400, "^stream: .*'true'"),
    "none of them": ({"n": 0}, 400, "^n=0: "),
    "the best of several": ({"best_of": 3}, 400, "^best_of: only 1, "),
    "the prompt in a stream": ({"echo": True}, 400, "^echo: not supported with stream"),
    "a suffix": ({"suffix": "b"}, 400, "^suffix: only '' "),
    "probabilities in a stream": ({"logprobs": 1}, 400, "^logprobs: not supported with stream"),
    "none of them in a stream": ({"logprobs": 0}, 400, "^logprobs: not supported with stream"),
    "many probabilities": ({"logprobs": 21, "stream": False}, 400, "^logprobs=21: .* 0 to 20"),
    "a bias": ({"logit_bias": {"5": 1}}, 400, "^logit_bias: only {} "),
    "presence": ({"presence_penalty": 0.5}, 400, "^presence_penalty: only 0 "),
    "frequency": ({"frequency_penalty": -0.5}, 400, "^frequency_penalty: only 0 "),
    "an error at once": ({"prompt": "fails", "max_tokens": 9, "stop": "q", "stream": False}, 500, "the server failed"),
    "memory": ({"prompt": "full", "stream": False}, 429, "out of memory"),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(generator, request_, status, message):
    server = rest_server(generator, most_streams=1)
    for _ in range(2):  # the place is free again
        found, answer = complete(server, **{"prompt": "a", "stream": True, **request_})
        named = re.match(r"\^(\w+)", message)
        assert found == status and answer["error"] == {
            "message": answer["error"]["message"], "type": KINDS_OF_ERRORS.get(status, "server_error"),
            "param": named and named[1], "code": CODES[status],
        }  # fmt: skip
        assert re.search(message, answer["error"]["message"]) and "secret" not in answer["error"]["message"]
    assert complete(server, prompt="a", max_tokens=500)[0] == 200


def test_it_is_off_unless_asked_for(generator):
    status, answer = complete(rest_server(generator, most_streams=0), prompt="a")
    assert status == 404 and "--max_streams" in answer["error"]["message"]
    status, answer = asker(rest_server(generator))("GET", completions.PATH)
    assert status.startswith("400") and "Malformed request" in answer


def test_a_place_is_free_however_a_stream_ends(generator, monkeypatch):
    server = rest_server(generator, most_streams=1)
    ask = asker(server)

    def is_free():
        return complete(server, prompt="a")[0] == 200

    stream = opened(server, prompt=TEXT)
    for prompt in ("a", [10**9]):  # a full server does not read prompts, so it does not miss the id either
        status, answer = ask("POST", completions.PATH, {"prompt": prompt, "stream": True})
        assert status.startswith("503") and "all 1 streams" in answer and ask.headers["Retry-After"] == "1"
    stream.close()  # before anything has been read
    assert is_free()
    stream = opened(server, prompt=TEXT)
    next(stream), next(stream), stream.close()
    assert is_free() and generator.computed < len(TEXT.encode())
    for word, (message, code) in {"fails": ("the server failed", 500), "full": ("out of memory", 429)}.items():
        stream = opened(server, prompt=word)
        *_, last = stream
        error = json.loads(last.removeprefix(b"data: "))["error"]
        assert error["message"].startswith(message) and error["code"] == CODES[code]
        stream.close()
        assert is_free()
    stream = opened(server, prompt=TEXT)
    monkeypatch.setattr(opened, "has_gone", True)
    assert len(list(stream)) == 2, "the one that was there, and an error"
    monkeypatch.setattr(opened, "has_gone", False)
    stream.close()
    assert is_free()
    stream = opened(server, prompt="a")
    assert list(stream) and stream.close() is None
    counts = dict(re.findall(r'request_count{model_name="my model",status="(\w+)"} ([0-9.]+)', server.metrics.page()))
    expected = {"OK": 6, "UNAVAILABLE": 2, "CANCELLED": 3, "INTERNAL": 1, "RESOURCE_EXHAUSTED": 1}
    assert {code: float(count) for code, count in counts.items()} == expected
    latencies = 'request_latency_count{API="completions",entrypoint="REST",model_name="my model"} 6.0'
    assert latencies in server.metrics.page(), "those that came to their end"


ERRORS = (RuntimeError("secret"), tf.errors.ResourceExhaustedError(None, None, "OOM"), Refusal("no"), KeyboardInterrupt)


@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("place", ["stream", "step"])
@pytest.mark.parametrize("error", ERRORS, ids=["a bug", "memory", "a refusal", "Ctrl-C"])
def test_a_place_is_free_when_the_first_step_fails(generator, monkeypatch, is_streamed, place, error):
    def fail(*arguments):
        raise error
        yield

    def fail_at_once(*arguments):
        raise error

    if place == "step":
        monkeypatch.setattr(generator.generator.searcher, "stream", fail)
    else:
        monkeypatch.setattr(generator, "stream", fail_at_once)
    server = rest_server(generator, most_streams=1)
    with pytest.raises(KeyboardInterrupt) if error is KeyboardInterrupt else contextlib.nullcontext():
        status, _ = complete(server, prompt="a", stream=is_streamed)
        assert status == (400 if error is ERRORS[2] else 429 if error is ERRORS[1] and place == "step" else 500)
    monkeypatch.undo()
    assert complete(server, prompt="a")[0] == 200


def test_a_server_that_stops_gives_streams_20_seconds(generator, clock):
    server = rest_server(generator)
    stream, other = opened(server, prompt="abc"), opened(server, prompt="abc")
    server.end_streams()
    clock.advance(19.5)
    assert events_of(b"".join(other))[-1]["choices"][0]["finish_reason"] == "stop"
    clock.advance(1)
    last = events_of(b"".join(stream))[-1]
    assert last["choices"][0]["finish_reason"] == "abort" and last["generated_text"] == "a"
    stream.close(), other.close()
    status, answer = complete(server, prompt="abc")
    assert status == 503 and "the server is stopping" in answer["error"]["message"]


def parsed(**request):
    """Returns the CompletionRequest of JSON texts by name."""
    members = ", ".join(f"{json.dumps(name)}: {text}" for name, text in {"prompt": '"a"', **request}.items())
    return CompletionRequest.parse(parse_body(f"{{{members}}}".encode()), SearchOptions(beam_size=1), 500)


@pytest.mark.parametrize("name", KINDS)
def test_values_of_other_types_are_refused_by_name(name):
    for text in (_TEXT, '"true"', '"1"', _NUMBER, _TRUTH, "true", _LIST, "[1]", "[null]", _OBJECT, '{"a": 1}'):
        kind = {'"': _TEXT, "[": _LIST, "{": _OBJECT, "1": _NUMBER}.get(text[0], _TRUTH)
        if kind not in KINDS[name]:
            with pytest.raises(Refusal, match=f"^{name}: expected ") as raised:
                parsed(**{name: text})
            assert raised.value.code == "INVALID_ARGUMENT"
    for text in (*KINDS[name], "null"):
        if (name, text) != ("prompt", "null"):
            parsed(**{name: text})


@pytest.mark.parametrize("name", ["max_tokens", "top_k", "seed", "no_repeat_ngram_size", "temperature"])
def test_numbers_out_of_range_are_refused_by_name(name):
    for text in ("-2", "1e300", "9" * 30):
        with pytest.raises(Refusal, match=f"^{name}=.*: expected a") as raised:
            parsed(**{name: text})
        assert len(raised.value.message) < 200
