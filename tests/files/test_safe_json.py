"""JSON of the right syntax and the wrong shape is refused at the place where it goes wrong."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.files.safe_json import check_schema, parse_json

SCHEMA = {"name": str, "size": int | None, "rate?": float, "splits": {str: {"bytes": [int]}}}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a", "size": 3, "splits": {}}',
        '{"name": "a", "size": null, "rate": 1, "splits": {"train": {"bytes": [1, 2]}}, "more": []}',
    ],
)
def test_what_has_the_shape_is_read(text):
    assert parse_json(text, "x.json", schema=SCHEMA)["name"] == "a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "x.json: expected an object, found []."),
        ('{"size": 3, "splits": {}}', "x.json: 'name' is missing."),
        ('{"name": "a", "size": true, "splits": {}}', "x.json: 'size': expected a whole number or null, found True."),
        ('{"name": "a", "size": 1.5, "splits": {}}', "x.json: 'size': expected a whole number or null, found 1.5."),
        (
            '{"name": "a", "size": 1, "rate": "x", "splits": {}}',
            "x.json: 'rate': expected a number, found 'x'.",
        ),
        (
            '{"name": "a", "size": 1, "splits": {"train": {"bytes": [1, "2"]}}}',
            "x.json: 'splits': 'train': 'bytes': item 1: expected a whole number, found '2'.",
        ),
        (
            '{"name": "a", "size": 1, "splits": {"train": []}}',
            "x.json: 'splits': 'train': expected an object, found [].",
        ),
    ],
)
def test_what_has_another_shape_is_refused_by_place(text, message):
    with pytest.raises(UserError) as error:
        parse_json(text, "x.json", schema=SCHEMA)
    assert str(error.value) == message


def test_a_value_of_any_size_gives_a_short_message():
    with pytest.raises(UserError) as error:
        check_schema({"n" * 9999: "v" * 9999}, {str: int}, "x.json")
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("digits", ["9" * 310, "-" + "9" * 5000, "1" + "0" * 100_000])
def test_a_whole_number_beyond_all_floats_is_refused(digits):
    with pytest.raises(UserError, match="is too large a number") as error:
        parse_json(f'{{"a": [{digits}]}}', "file")
    assert len(str(error.value)) < 200
    assert parse_json("1" + "0" * 300, "file") == 10**300
