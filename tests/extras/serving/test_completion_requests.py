"""What the JSON of a completion may be: each name has one kind of value, and texts are Unicode."""

import json

import pytest

from t2t_lite.extras.serving.completions import CompletionRequest
from t2t_lite.extras.serving.json_tensors import parse_body
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.settings.search_options import SearchOptions

TEXT, NUMBER, TRUTH, LIST, OBJECT = '"a"', "1", "false", '["a"]', "{}"
KINDS = {
    "prompt": (TEXT, LIST), "stream": (TRUTH,), "stop": (TEXT, LIST), "max_tokens": (NUMBER,), "temperature": (NUMBER,),
    "top_p": (NUMBER,), "top_k": (NUMBER,), "seed": (NUMBER,), "no_repeat_ngram_size": (NUMBER,),
    "repetition_penalty": (NUMBER,), "n": (NUMBER,), "best_of": (NUMBER,), "user": (TEXT,), "stream_options": (OBJECT,),
    "echo": (TRUTH,), "logit_bias": (OBJECT,), "model": (TEXT,),
}  # fmt: skip
HALVES = (r'"\ud800"', r'["\uDC00"]', r'["a", "\udc00\ud800"]', r'{"\uD800": 1}', r'"\\\ud83d"')


def parsed(**request):
    """Returns the CompletionRequest of JSON texts by name."""
    texts = {"prompt": '"a"', **request}
    members = ", ".join(f"{json.dumps(name)}: {text}" for name, text in texts.items())
    return CompletionRequest.parse(parse_body(f"{{{members}}}".encode()), SearchOptions(beam_size=1), 500)


@pytest.mark.parametrize("name", KINDS)
def test_values_of_other_types_are_refused_by_name(name):
    for text in (TEXT, '"true"', '"1"', NUMBER, TRUTH, "true", LIST, "[1]", "[null]", OBJECT, '{"a": 1}'):
        kind = {'"': TEXT, "[": LIST, "{": OBJECT, "1": NUMBER}.get(text[0], TRUTH)
        if kind not in KINDS[name]:
            with pytest.raises(Refusal, match=f"^{name}: expected ") as raised:
                parsed(**{name: text})
            assert raised.value.code == "INVALID_ARGUMENT"
    for text in (*KINDS[name], "null"):
        if (name, text) != ("prompt", "null"):
            parsed(**{name: text})


@pytest.mark.parametrize("name", [*KINDS, "unknown"])
def test_half_a_surrogate_pair_is_refused_anywhere(name):
    for text in HALVES:
        with pytest.raises(Refusal, match="surrogate pair in string is invalid"):
            parsed(**{name: text})


def test_whole_pairs_and_their_escaped_letters_are_texts():
    assert parsed(prompt=r'"\ud83d\ude00"').prompt == "\U0001f600"
    assert parsed(prompt=r'"\\ud83d"', stop=r'"\\UD83D"').prompt == r"\ud83d"


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e400", "9" * 400, "[" * 2000 + "]" * 2000, '{"a": 1, "a": 1}'])
@pytest.mark.parametrize("name", ["seed", "user"])
def test_values_that_are_not_json_or_too_large_are_refused(name, text):
    with pytest.raises(Refusal, match="JSON Parse error: "):
        parsed(**{name: text})


@pytest.mark.parametrize("name", ["max_tokens", "top_k", "seed", "no_repeat_ngram_size", "temperature"])
def test_numbers_out_of_range_are_refused_by_name(name):
    for text in ("-2", "1e300", "9" * 30):
        with pytest.raises(Refusal, match=f"^{name}=.*: expected a") as raised:
            parsed(**{name: text})
        assert len(raised.value.message) < 200
