"""The grammar of `--hparams` and `--decode_hparams`."""

import re

import pytest

from t2t_lite.errors import UserError
from t2t_lite.settings.config import parse_assignments


def test_assignments():
    assert parse_assignments("", "--x") == {}
    assert parse_assignments("a=1, b = x y ,c=[1, 2]", "--x") == {"a": "1", "b": "x y", "c": ["1", "2"]}

    text = 'a=[{"k": 1, "of": [2, 3]}, "x"], b={"k": 1, "l": 2},c={x,d=[{1]'
    json_texts = {"a": '[{"k": 1, "of": [2, 3]}, "x"]', "b": '{"k": 1, "l": 2}'}
    assert parse_assignments(text, "--x") == {**json_texts, "c": "{x", "d": ["{1"]}


@pytest.mark.parametrize(("text", "words"), [("=3", "--x: cannot read '=3'"), ("a=1,a=2", "--x: 'a' is given twice")])
def test_mistakes_are_named(text, words):
    with pytest.raises(UserError, match=re.escape(words)):
        parse_assignments(text, "--x")
