"""Answers of another shape than those of an export."""

import json

import pytest

from t2t_lite.errors import Failure
from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client.served_answers import answer_of
from tests.extras.query_client.servers import GOOD, answering, client, http_answer


def changed(**columns):
    return {"outputs": {**GOOD, **columns}}


WRONG = {  # JSON itself and kinds of values are the matter of tests/files/test_safe_json.py
    "no outputs": {},
    "a list": {"outputs": [["A", -1.5, False]]},
    "a column is missing": {"outputs": {"outputs": ["A", "B"]}},
    "too few": changed(outputs=["A"]),
    "too many": changed(scores=[1, 2, 3]),
    "numbers for texts": changed(outputs=[1, 2]),
    "texts for scores": changed(scores=["1", "2"]),
    "numbers for switches": changed(truncated=[0, 1]),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_an_answer_of_the_wrong_shape(content):
    with answering(http_answer(content)) as server, pytest.raises(Failure) as raised:
        client(server).translate(["aa", "b"])
    assert server in str(raised.value) and "\n" not in str(raised.value) and len(str(raised.value)) < 600


def test_a_score_is_finite():
    """JSON has no other numbers, but gRPC has."""
    with pytest.raises(Failure, match="here: a score is not finite"):
        answer_of({"outputs": "A", "scores": float("inf"), "truncated": False}, "here")


def test_an_encoder_makes_no_translations():
    answer = http_answer({"outputs": {"labels": ["A"], "truncated": [False]}})
    message = r"answers with labels, truncated\. .* Client\.predict"
    with answering(answer) as server, pytest.raises(query.NoTranslations, match=message):
        client(server).translate(["a"])


def test_half_a_character_in_an_answer_is_replaced():
    """What is written is UTF-8, whatever a server sends."""
    content = json.dumps({"outputs": {"outputs": ["\ud800"], "scores": [0], "truncated": [False]}}).encode()
    with answering(http_answer(content)) as server:
        assert client(server).translate(["a"])[0].text == "\ufffd"
