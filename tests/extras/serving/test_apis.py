"""Paths beyond TensorFlow Serving's: a vocabulary's, the list of models, and those of other extras."""

import json

import pytest

from t2t_lite.extras.serving.apis import Api
from t2t_lite.extras.serving.json_tensors import to_json
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.extras.serving.doubles import LONGEST_BODY, asker, rest_server


def test_texts_and_ids_of_the_vocabulary(generator):
    ask = asker(rest_server(generator))
    info = json.loads(ask("GET", "/tokenizer_info")[1])
    assert info == {"tokenizer_class": "ByteTextEncoder", "bos_token": None, "eos_token": "</s>"}
    for text in ("Grün \u20ac", "", "a </s>"):
        ids = ByteTextEncoder().encode(text)
        answer = json.loads(
            ask("POST", "/tokenize", {"prompt": text, "add_special_tokens": False, "model": "my model"})[1]
        )
        assert answer == {"count": len(ids), "max_model_len": 100, "tokens": ids}
        assert json.loads(ask("POST", "/detokenize", {"tokens": ids})[1]) == {"prompt": text}
    assert json.loads(ask("POST", "/tokenize", {"prompt": "</s>"})[1])["tokens"] == [1]
    assert json.loads(ask("POST", "/detokenize", {"tokens": [1, 67]})[1]) == {"prompt": "</s>A"}


@pytest.mark.parametrize(("path", "body", "message"), [
    ("/tokenize", {}, "'prompt' is missing"), ("/tokenize", {"prompt": 3}, "expected"), ("/tokenize", b"x", "JSON"),
    ("/tokenize", {"prompt": "a", "promt": "b"}, "promt: unknown. Expected prompt, add_special_tokens, model."),
    ("/detokenize", {"tokens": [258]}, "258"), ("/detokenize", {"tokens": "a"}, "a list"),
    ("/detokenize", {"tokens": [True]}, "True"), ("/detokenize", {"tokens": [-1]}, "tokens: id -1"),
])  # fmt: skip
def test_what_is_not_understood_is_refused_in_openais_form(generator, path, body, message):
    status, answer = asker(rest_server(generator))("POST", path, body)
    error = json.loads(answer)["error"]
    assert status.startswith("400") and message in error["message"] and error["type"] == "invalid_request_error"


@pytest.mark.parametrize(("path", "content"), [("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [67]})])
def test_another_model_is_refused(generator, path, content):
    status, answer = asker(rest_server(generator))("POST", path, content | {"model": "another"})
    assert status.startswith("404") and "another" in json.loads(answer)["error"]["message"]


def test_they_need_a_language_model_that_streams(generator):
    ask = asker(rest_server(generator, most_streams=0))
    for method, path in (("GET", "/tokenizer_info"), ("POST", "/tokenize"), ("POST", "/detokenize")):
        status, answer = ask(method, path, {"prompt": "a"} if method == "POST" else b"")
        assert status.startswith("404") and list(json.loads(answer)) == ["error"]


def test_the_models_are_a_list_as_openai_has_it(generator):
    model = {"id": "my model", "object": "model", "created": 1_700_000_002, "owned_by": "t2t_lite"}
    for streams in (0, 2):
        ask = asker(rest_server(generator, most_streams=streams))
        assert json.loads(ask("GET", "/v1/models")[1]) == {"object": "list", "data": [model]}
        assert "GET /v1/models" in json.loads(ask("GET", "/")[1])["paths"]


class Backwards(Api):
    paths = {"/backwards": "POST", "/name": "GET"}  # noqa: RUF012

    def read(self, path, body):
        if body.data == b"bug":
            raise RuntimeError("secret")
        if body.kind != "text/plain":
            raise Refusal("no text")
        return body.data.decode()

    def answer(self, path, request, is_abandoned):
        return to_json("backwards" if path == "/name" else request[::-1])

    def error(self, message, code):
        return {"oh": message}


def test_an_extra_answers_its_paths_in_its_form_of_errors(generator):
    server = rest_server(generator, most_streams=0, apis=[Backwards()])
    ask = asker(server)
    assert ask("POST", "/backwards", b"abc", CONTENT_TYPE="Text/Plain; charset=utf-8") == ("200 OK", '"cba"')
    assert ask("GET", "/name") == ("200 OK", '"backwards"')
    assert ask("POST", "/backwards", b"abc") == ("400 Bad Request", '{"oh": "no text"}')
    status, answer = ask("POST", "/backwards", b"bug")
    assert status.startswith("500") and list(json.loads(answer)) == ["oh"] and "secret" not in answer
    assert ask("POST", "/backwards", b"a" * (LONGEST_BODY + 1))[0].startswith("413")
    assert ask("GET", "/backwards")[0].startswith("404")
    ask("OPTIONS", "/backwards")
    assert ask.headers["Allow"] == "POST, OPTIONS"
    ask("OPTIONS", "/name")
    assert ask.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert {"POST /backwards", "GET /name"} <= {*json.loads(ask("GET", "/")[1])["paths"]}
    assert 'request_count{model_name="my model",status="OK"} 2.0' in server.metrics.page()
