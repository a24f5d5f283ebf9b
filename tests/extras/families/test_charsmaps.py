"""Compiled rules of normalization, which are read as they were written."""

import pytest

from t2t_lite.extras.families.charsmaps import compiled, read_rules

RULES = {
    "½": "1/2",
    "e\u0301": "é",
    "e\u0301\u0302": "ê",
    "''": '"',
    "A": "a",
    "\u200b": "",
    "\U0001f600": ":)",
    "\t": " ",
}


def test_rules_are_read_as_they_were_compiled():
    assert read_rules(compiled(RULES)) == RULES
    assert read_rules(b"") == {}


def test_damaged_rules():
    whole = compiled(RULES)
    circle = (8).to_bytes(4, "little") + ((1 << 10) | 1).to_bytes(4, "little") + (0x400 | 1).to_bytes(4, "little")
    for damaged in (whole[: len(whole) // 2], whole[:-3], circle):
        with pytest.raises(ValueError):
            read_rules(damaged)
