"""JSON of the right syntax and the wrong shape is refused at the place where it goes wrong."""

import json

import pytest

from t2t_lite.errors import UserError
from t2t_lite.files.safe_json import check_schema, parse_json, storable

SCHEMA = {"name": str, "size": int | None, "rate?": float, "splits": {str: {"bytes": [int]}}}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a", "size": 3, "splits": {}}',
        '{"name": "a", "size": null, "rate": 1, "splits": {"train": {"bytes": [1, 2]}}, "more": []}',
    ],
)
def test_what_has_the_shape_is_read(text):
    assert parse_json(text, "x.json", schema=SCHEMA) == parse_json(text.encode(), "x.json") == json.loads(text)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("[]", "", r"an object.*\[\]"),
        ('{"size": 3, "splits": {}}', "'name'", "missing"),
        ('{"name": "a", "size": true, "splits": {}}', "'size'", "a whole number or null.*True"),
        ('{"name": "a", "size": 1.5, "splits": {}}', "'size'", "a whole number or null.*1.5"),
        ('{"name": "a", "size": 1, "rate": "x", "splits": {}}', "'rate'", "a number.*'x'"),
        ('{"name": "a", "size": 1, "rate": true, "splits": {}}', "'rate'", "a number.*True"),
        (
            '{"name": "a", "size": 1, "splits": {"train": {"bytes": [1, "2"]}}}',
            "'splits': 'train': 'bytes': item 1",
            "a whole number.*'2'",
        ),
        ('{"name": "a", "size": 1, "splits": {"train": {"bytes": {}}}}', "'splits': 'train': 'bytes'", "a list.*{}"),
        ('{"name": "a", "size": 1, "splits": {"train": []}}', "'splits': 'train'", r"an object.*\[\]"),
        ('{"a": 1, "b": 2, "a": 3}', "", "JSON: 'a'"),
        ('{"a": NaN}', "", "JSON: NaN"),
        ('{"a": 1e999}', "", "JSON: 1e999"),
        (f'{{"a": [{"9" * 310}]}}', "", "JSON: 9{40} "),
        (f'{{"a": [{"-" + "9" * 5000}]}}', "", "JSON: -9{39} "),
        ("[" * 100_000, "", "JSON: .*deep"),
        (b"\xff", "", "JSON: .*utf-8"),
        ("{", "", "JSON: Expecting"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_what_is_wrong_is_refused_by_place(text, place, words):
    with pytest.raises(UserError, match=rf"^x\.json: {place}.*{words}") as error:
        parse_json(text, "x.json", schema=SCHEMA)
    assert "\n" not in str(error.value) and len(str(error.value)) < 200


def test_a_value_of_any_size_gives_a_short_message():
    with pytest.raises(UserError) as error:
        check_schema({"n" * 9999: "v" * 9999}, {str: int}, "x.json")
    assert len(str(error.value)) < 300


def test_values_that_a_file_of_ours_can_hold():
    for value in (True, 3, 2.5, "a", [1, ["b"]]):
        assert storable("x", value) == value
    given = [1]
    assert storable("x", given) is not given
    loop = []
    loop.append(loop)
    for value in (None, float("nan"), {}, (1,), [object()], b"", loop):
        with pytest.raises(UserError, match=r"'my option'"):
            storable("my option", value)
