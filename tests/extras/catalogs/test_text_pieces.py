"""Texts are divided at placeholders, which come through whatever a model writes."""

import pytest

from t2t_lite.extras.catalogs.text_pieces import PLACEHOLDERS, TextPieces

FOUND = {
    "%s and %1$s, %d%%": ["%s", "%1$s", "%d", "%%"], "%(name)s %@ %2$@ %5.2f %-3ld %.*f": 6,
    "${a} #{b} %{c} {0:.2f} {}": 5, "{{a}} {{ b }} {{{c}}} %{{d}}": ["{{a}}", "{{ b }}", "{{{c}}}", "%{{d}}"],
    "You have {n, plural, =1 {one {x}} other {{y, select, a {{b}} other {c}}}}!": 1, "{ {a} } {b": ["{ {a} }"],
    "<b>x</b> <br/> <a href='%s'>": ["<b>", "</b>", "<br/>", "<a href='%s'>"], "a &amp; b &#160;": ["&amp;", "&#160;"],
    "100% of it, 50 % off": [], "A & B; 1 < 2 > 1": [], "%sure": [],
}  # fmt: skip


@pytest.mark.parametrize(("text", "found"), FOUND.items())
def test_placeholders(text, found):
    every = [match[0] for match in PLACEHOLDERS.finditer(text)]
    assert every == found or len(every) == found


@pytest.mark.parametrize("text", [*FOUND, "", "  a\n\n b\t", "\r\n", "%s", "Grün\u2028x"])
def test_the_same_pieces_give_the_same_text(text):
    pieces = TextPieces(text)
    assert pieces.joined(pieces.pieces) == text
    assert all(piece == piece.strip() and any(map(str.isalpha, piece)) for piece in pieces.pieces)


def test_a_text_without_letters_needs_no_translation():
    assert TextPieces(" %s: %d (1)\n").pieces == []


def test_what_is_kept_stays_within_its_piece():
    pieces = TextPieces("%d: open %s now\nor %d", lambda text: [(9, 11)])
    assert pieces.pieces == [": open %s now", "or"]
    assert pieces.joined([": jetzt %s", "x"]) == "%d: jetzt %s\nx %d"
    assert pieces.joined(["Jetzt", "x"]) is pieces.joined(["Jetzt %s %s", "x"]) is pieces.joined(["%s", " "]) is None
    assert TextPieces("%s", lambda text: [(0, 2)]).pieces == []


@pytest.mark.parametrize("text", ["{a", "a}", "}{", "{n, plural, one {", "{a} {{b}} }"])
def test_braces_without_their_counterparts(text):
    assert TextPieces(text).has_open_braces
    assert not TextPieces(text, lambda text: [(0, len(text))]).has_open_braces
    assert not TextPieces("{a} {{b}}").has_open_braces
