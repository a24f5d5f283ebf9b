"""Requests and answers in JSON. The expected messages are those of TensorFlow Serving's json_tensor.cc."""

import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.extras.serving.json_tensors import body_of, parse_body, rows_of, tensors_of, to_json
from t2t_lite.extras.serving.refusals import Refusal

TEXTS = {"inputs": tf.TensorSpec([None], tf.string)}
OPTIONS = TEXTS | {"alpha": tf.TensorSpec(None, tf.float32), "extra_length": tf.TensorSpec(None, tf.int32)}
GRID = {"x": tf.TensorSpec([None, 2], tf.float32)}
SWITCH = {"x": tf.TensorSpec([None], tf.bool)}
RIGHT = {
    "a list": (TEXTS, {"inputs": ["a", "ü"]}, {"inputs": [b"a", "ü".encode()]}),
    "a named list": (TEXTS, {"inputs": {"inputs": ["a"]}}, {"inputs": [b"a"]}),
    "other names are ignored": (TEXTS, {"inputs": {"inputs": ["a"], "b": 1}, "c": 2}, {"inputs": [b"a"]}),
    "no rows": (TEXTS, {"inputs": []}, {"inputs": []}),
    "bytes": (TEXTS, {"inputs": [{"b64": "/wA="}]}, {"inputs": [b"\xff\x00"]}),
    "rows of values": (TEXTS, {"instances": ["a", {"b64": "Yg=="}]}, {"inputs": [b"a", b"b"]}),
    "rows of objects": (TEXTS, {"instances": [{"inputs": "a"}, {"inputs": "b"}]}, {"inputs": [b"a", b"b"]}),
    "scalars": (
        OPTIONS,
        {"inputs": {"inputs": ["a"], "alpha": 1, "extra_length": -2}},
        {"inputs": [b"a"], "alpha": 1.0, "extra_length": -2},
    ),
    "the smallest and the largest number": (
        {"x": tf.TensorSpec([None], tf.int32)},
        {"inputs": [-(2**31), 2**31 - 1]},
        {"x": [-(2**31), 2**31 - 1]},
    ),
    "the largest float": (GRID, {"inputs": [[3.4028234663852886e38, 0]]}, {"x": [[3.4028234663852886e38, 0]]}),
    "several inputs in rows": (
        OPTIONS,
        {"instances": [{"inputs": "a", "alpha": 0.5, "extra_length": 1}] * 2},
        {"inputs": [b"a"] * 2, "alpha": [0.5] * 2, "extra_length": [1] * 2},
    ),
    "two axes": (GRID, {"inputs": [[1, 2.5], [3, 4]]}, {"x": [[1, 2.5], [3, 4]]}),
    "two axes in rows": (GRID, {"instances": [[1, 2.5], [3, 4]]}, {"x": [[1, 2.5], [3, 4]]}),
    "truth": (SWITCH, {"instances": [True, False]}, {"x": [True, False]}),
    "a pair of surrogates, and its letters": (
        TEXTS, {"inputs": ["\U0001f600", r"\ud83d"]}, {"inputs": ["\U0001f600".encode(), rb"\ud83d"]}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("specs", "request_", "expected"), RIGHT.values(), ids=RIGHT)
def test_requests(specs, request_, expected):
    found, is_row = tensors_of(parse_body(json.dumps(request_).encode()), specs)
    assert is_row == ("instances" in request_)
    assert {name: tensor.tolist() for name, tensor in found.items()} == expected
    for name, tensor in found.items():
        assert tf.constant(tensor, specs[name].dtype).shape == tensor.shape


@pytest.mark.parametrize(
    ("request_", "rows"),
    [
        ({"inputs": {"inputs": ["a", "b", "c"], "alpha": [1], "extra_length": 2, "other": [1] * 9}}, 3),
        ({"inputs": ["a", "b"]}, 2), ({"instances": [{"inputs": "a"}] * 4}, 4), ({"inputs": []}, 0),
        ({"inputs": "a"}, 1), ({"inputs": {"b64": "YQ=="}}, 1), ({"inputs": {"alpha": 1}}, 1), ({}, 1),
    ],
    ids=str,
)  # fmt: skip
def test_rows_before_they_are_read(request_, rows):
    assert rows_of(request_, OPTIONS) == rows


def nested(levels):
    return [nested(levels - 1)] if levels else "a"


WRONG = {
    "no form": (TEXTS, {}, "Missing 'inputs' or 'instances' key"),
    "both forms": (TEXTS, {"inputs": [], "instances": []}, "expecting only one of 'inputs' or 'instances'"),
    "rows are no list": (TEXTS, {"instances": "a"}, "Expecting 'instances' to be an list/array"),
    "no rows": (TEXTS, {"instances": []}, "No values in 'instances' array"),
    "a number": (TEXTS, {"inputs": [1]}, "JSON Value: 1 Type: Number is not of expected type: string"),
    "null": (TEXTS, {"inputs": None}, "Type: Null is not of expected type: string"),
    "an object": (TEXTS, {"inputs": [{"a": "b"}]}, "not formatted correctly for base64 data"),
    "no base64": (TEXTS, {"inputs": [{"b64": "!"}]}, "Unable to base64 decode"),
    "a base64 of other letters": (TEXTS, {"inputs": [{"b64": "é"}]}, "Unable to base64 decode"),
    "an object for a number": (GRID, {"inputs": [[1, {"a": 1}]]}, "Type: Object is not of expected type: float"),
    "half a character": (TEXTS, {"inputs": ["\ud800"]}, "surrogate pair in string is invalid"),
    "one axis too many": (TEXTS, {"inputs": [["a"]]}, r"input inputs: expected the shape \(None,\), found \(1, 1\)"),
    "no axis": (TEXTS, {"inputs": "a"}, r"expected the shape \(None,\), found \(\)"),
    "deeper later": (GRID, {"inputs": [[1, 2], [[3], 4]]}, "list at unexpected level: 2 expected < 2"),
    "flatter later": (GRID, {"inputs": [[1, 2], 3]}, "found at incorrect level: 2 .* Expected at level: 2"),
    "longer later": (GRID, {"inputs": [[1, 2], [1, 2, 3]]}, "unexpected size: 3 at level: 1 expected size: 2"),
    "rows differ": (GRID, {"instances": [[1, 2], [1]]}, r"element: 1 .* Expecting shape \[2\] but got: \[1\]"),
    "a row is an object": (TEXTS, {"instances": ["a", {"inputs": "b"}]}, "Expecting value/list but got object at item"),
    "a row is none": (TEXTS, {"instances": [{"inputs": "a"}, "b"]}, "Expecting object but got list at item 1"),
    "rows without names": (OPTIONS, {"instances": ["a"]}, "instances is a plain list, but expecting list of objects"),
    "a row lacks a name": (OPTIONS, {"instances": [{"inputs": "a"}]}, "keys must be equal to: alpha,extra_length"),
    "a row of another name": (TEXTS, {"instances": [{"text": "a"}]}, "element: 0 .* keys must be equal to: inputs"),
    "a column is missing": (OPTIONS, {"inputs": {"inputs": ["a"]}}, "Missing named input: alpha in 'inputs' object"),
    "columns without names": (OPTIONS, {"inputs": ["a"]}, "inputs is a plain value/list"),
    "a float for an int": (OPTIONS, {"inputs": {"inputs": [], "alpha": 1, "extra_length": 1.5}}, "type: int32"),
    "a large int": (OPTIONS, {"inputs": {"inputs": [], "alpha": 1, "extra_length": 2**31}}, "type: int32"),
    "a large float": (OPTIONS, {"inputs": {"inputs": [], "alpha": 1e39, "extra_length": 1}}, "type: float"),
    "a huge int": (OPTIONS, {"inputs": {"inputs": [], "alpha": 10**400, "extra_length": 1}}, "10{39} is too large"),
    "truth for a number": (GRID, {"inputs": [[True, 1]]}, "Type: True is not of expected type: float"),
    "a number for truth": (SWITCH, {"inputs": [1]}, "Type: Number is not of expected type: bool"),
    "a double": ({"x": tf.TensorSpec([None], tf.float64)}, {"inputs": ["a"]}, "Type: String .* type: double"),
    "untruth for a text": (TEXTS, {"inputs": [False]}, "JSON Value: false Type: False is not of expected type: string"),
    "a long value": (GRID, {"inputs": "x" * 999}, '^JSON Value: "x{255} Type: String'),
    "lists in 32 levels": (TEXTS, {"inputs": nested(32)}, r"expected the shape \(None,\)"),
    "lists in 33 levels": (TEXTS, {"inputs": nested(33)}, "has lists in 33 levels. Expected at most 32"),
    "lists in 65 levels": (TEXTS, {"inputs": nested(65)}, "has lists in 65 levels. Expected at most 32"),
    "rows in 64 levels": (TEXTS, {"instances": [nested(64)]}, "element: 0 .* has lists in 64 levels"),
    "a name that is no text": (TEXTS, {"signature_name": 3}, "'signature_name' key must be a string value"),
}


@pytest.mark.parametrize(("specs", "request_", "message"), WRONG.values(), ids=WRONG)
def test_wrong_requests(specs, request_, message):
    with pytest.raises(Refusal, match=message) as raised:
        tensors_of(parse_body(json.dumps(request_).encode()), specs)
    assert raised.value.code == "INVALID_ARGUMENT" and len(raised.value.message) < 600


NO_JSON = {
    "empty": b"", "cut off": b'{"inputs": [', "no object": b"[1]", "not UTF-8": b'{"inputs": ["\xff"]}',
    "deep": b"[" * 100_000, "NaN": b'{"inputs": [NaN]}', "infinite": b'{"inputs": [1e999]}',
    "twice": b'{"inputs": ["a"], "inputs": ["b"]}', "garbage behind": b'{"inputs": ["a"]} x', "many digits":
    b'{"inputs": [' + b"9" * 10_000 + b"]}", "a long list": b"[" + b"1," * 10_000 + b"1]",
}  # fmt: skip
HALVES = (r'"\ud800"', r'["\uDC00"]', r'["a", "\udc00\ud800"]', r'{"\uD800": 1}', r'"\\\ud83d"')
NO_JSON |= {half: b'{"what is not read": %s}' % half.encode() for half in HALVES}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_bodies_that_are_no_json_object(body):
    with pytest.raises(Refusal, match=r"JSON Parse error: |Is not object") as raised:
        parse_body(body)
    assert len(raised.value.message) < 400 and "\n" not in raised.value.message


def test_large_answers_are_those_of_small_ones():
    """They are made in parts, so that other requests are answered in between."""
    numbers = np.random.default_rng(0).normal(size=(3, 20, 300)).astype("float32")
    outputs = {"features": numbers, "words": np.array([[b"a", b"\xc3\xbc"]] * 3, object)}
    words = [["a", "\u00fc"]] * 3
    plain = [[[float(str(x)) for x in row] for row in rows] for rows in numbers]
    expected = {"outputs": {"features": plain, "words": words}}
    assert body_of(outputs, is_row=False).decode() == json.dumps(expected, ensure_ascii=False)
    rows = [{"features": one, "words": both} for one, both in zip(plain, words, strict=True)]
    assert body_of(outputs, is_row=True).decode() == json.dumps({"predictions": rows}, ensure_ascii=False)


def test_answers():
    outputs = {
        "outputs": np.array([b"a", b"\xff\n"], object),
        "scores": np.float32([[0.1, -3.4028235e38], [1e-45, 7]]),
        "truncated": np.array([True, False]),
        "raw_bytes": np.array([b"\xff", b""], object),
    }
    columns = {
        "outputs": ["a", "\ufffd\n"],
        "scores": [[0.1, -3.4028235e38], [1e-45, 7.0]],
        "truncated": [True, False],
        "raw_bytes": [{"b64": "/w=="}, {"b64": ""}],
    }
    assert json.loads(body_of(outputs, is_row=False)) == {"outputs": columns}
    rows = [{name: column[i] for name, column in columns.items()} for i in range(2)]
    assert json.loads(body_of(outputs, is_row=True)) == {"predictions": rows}
    assert to_json({"error": "\ud800 ü"}) == '{"error": "\\ud800 ü"}'.encode(), "a message may quote any path"
    only = {"scores": np.int32([1, 2])}
    assert body_of(only, is_row=False) == b'{"outputs": [1, 2]}'
    assert body_of(only, is_row=True) == b'{"predictions": [1, 2]}'
