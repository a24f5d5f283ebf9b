"""Compiled rules of normalization, which are read as they were written."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.families.charsmaps import check_words, clean_up, compiled, read_rules

RULES = {
    "½": "1/2", "e\u0301": "é", "e\u0301\u0302": "ê", "''": '"', "A": "a", "\u200b": "", "\U0001f600": ":)", "\t": " "
}  # fmt: skip


def test_rules_are_read_as_they_were_compiled():
    assert read_rules(compiled(RULES)) == RULES
    assert read_rules(b"") == {}


def test_damaged_rules():
    whole = compiled(RULES)
    circle = (8).to_bytes(4, "little") + ((1 << 10) | 1).to_bytes(4, "little") + (0x400 | 1).to_bytes(4, "little")
    for damaged in (whole[: len(whole) // 2], whole[:-3], circle):
        with pytest.raises(ValueError):
            read_rules(damaged)


QUOTES = {"type": "Replace", "pattern": {"String": "``"}, "content": '"'}


@pytest.mark.parametrize("lowers", [True, False])
@pytest.mark.parametrize("strips", [True, False])
def test_the_clean_up_has_the_settings_of_its_normalizers(lowers, strips):
    rules = [QUOTES, *([{"type": "StripAccents"}] * strips), *([{"type": "Lowercase"}] * lowers)]
    found = clean_up({"normalizer": {"type": "Sequence", "normalizers": rules}}, "tokenizer.json")
    assert found == {"do_lower_case": lowers, "keep_accents": not strips}


def test_a_clean_up_is_one_that_replaces_quotation_marks():
    assert clean_up({"normalizer": QUOTES}, "") == {"do_lower_case": False, "keep_accents": True}
    for other in ({"type": "Lowercase"}, {"type": "StripAccents"}, QUOTES | {"pattern": {"String": "''"}}, None):
        assert clean_up({"normalizer": other}, "") == {}
    assert clean_up({}, "") == {}
    with pytest.raises(UserError, match=r"^tokenizer.json: 'normalizer'"):
        clean_up({"normalizer": {"type": 3}}, "tokenizer.json")


BLANKS = {"type": "Replace", "pattern": {"Regex": " {2,}"}}
METASPACE = {"type": "Metaspace", "prepend_scheme": "always", "add_prefix_space": True}


@pytest.mark.parametrize(
    "rule", [{"type": "Precompiled"}, {"type": "Strip"}, BLANKS, BLANKS | {"pattern": {"Regex": " {3,}"}}, QUOTES,
             {"type": "Lowercase"}, {"type": "NFKC"}],
    ids=["compiled", "strip", "blanks", "more blanks", "quotes", "lowercase", "nfkc"],
)  # fmt: skip
def test_texts_are_changed_by_compiled_rules_and_blanks_alone(rule, request):
    tokenizer = {"pre_tokenizer": METASPACE}
    if request.node.callspec.id in ("compiled", "strip", "blanks"):
        return check_words(tokenizer, [rule], "tokenizer.json")
    with pytest.raises(UserError, match=rf"^tokenizer.json: .*normalizer: type.*{rule['type']}"):
        check_words(tokenizer, [{"type": "Precompiled"}, rule], "tokenizer.json")


def test_a_clean_up_changes_texts_too():
    tokenizer, marks = {"pre_tokenizer": METASPACE}, [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]
    check_words(tokenizer, [QUOTES, *marks, {"type": "Precompiled"}], "tokenizer.json", is_cleaned=True)
    for rules, words in (([QUOTES, {"type": "NFKC"}], "type='NFKC'"), (marks, "no normalizer: pattern")):
        with pytest.raises(UserError, match=rf"^tokenizer.json: .*{words}"):
            check_words(tokenizer, rules, "tokenizer.json", is_cleaned=True)
    for parts in (3, [3], [{}]):
        with pytest.raises(UserError, match=r"^tokenizer\.json: 'pre_tokenizer'"):
            check_words({"pre_tokenizer": {"type": "Sequence", "pretokenizers": parts}}, [], "tokenizer.json")


@pytest.mark.parametrize(
    "part, name",
    [
        (METASPACE, None),
        ({"type": "Metaspace"}, None),
        ({"type": "WhitespaceSplit"}, None),
        ({"type": "ByteLevel"}, "type"),
        (METASPACE | {"prepend_scheme": "first"}, "prepend_scheme"),
        (METASPACE | {"prepend_scheme": "never"}, "prepend_scheme"),
        (METASPACE | {"add_prefix_space": False}, "add_prefix_space"),
    ],
    ids=["all settings", "no settings", "blanks", "bytes", "first", "never", "no space"],
)
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "last"])
def test_texts_are_split_at_spaces_alone(part, name, is_alone):
    whole = part if is_alone else {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, part]}
    if name is None:
        check_words({"pre_tokenizer": whole}, [], "tokenizer.json")
    else:
        with pytest.raises(UserError, match=rf"^tokenizer.json: .*pre_tokenizer: {name}"):
            check_words({"pre_tokenizer": whole}, [], "tokenizer.json")


def test_texts_that_are_not_split_are_refused():
    for tokenizer in ({}, {"pre_tokenizer": None}):
        with pytest.raises(UserError, match="pre_tokenizer: type"):
            check_words(tokenizer, [], "tokenizer.json")
