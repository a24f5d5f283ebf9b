"""HTML is divided into texts and tags, of which nothing but the texts changes."""

import html
import random
import re
import time

import pytest

pytest.importorskip("t2t_lite.extras.serving")
from t2t_lite.extras.libretranslate.html_texts import HTMLTexts
from t2t_lite.extras.serving.refusals import Refusal

PAGE = """<!DOCTYPE html>
<html lang=en><head><title>The house</title><style>p > b {color: red}</style><script>if (a<b && c) {"</p>"}</script>
<body class='x y'>  <p>The <b>red</b> house &amp; the&nbsp;tree.<p>Is <a href="?a=1&b=2" title="a > b">old</a>!<br/>New
 line here.</p>\r\n<ul><li>one<li>two <img src=a.png> </ul><!-- a <b> comment --><pre>x &lt; y</pre><code>f(x)</code>
<p translate="no">Keep <i>me</i> <br></p><div class="a notranslate">and <div>me</div></div>
<table><tr><td>3<td>\u00fc \U0001f600</table>
"""


@pytest.mark.parametrize("protects_tags", [True, False])
def test_a_document_of_the_same_texts_is_the_same_document(protects_tags):
    texts = HTMLTexts(PAGE, protects_tags)
    found = texts.with_translations(texts.pieces)
    # An entity is written in one way, and white space is one space, as browsers show it.
    expected = PAGE.replace("&nbsp;", "\xa0").replace("New\n line", "New line")
    assert found == expected


def test_pieces_are_whole_sentences_where_tags_are_protected_and_else_what_is_between_tags():
    some = ["The house", 'Is <a href="?a=1&b=2" title="a > b">old</a>!', "New line here.", "one", "two", "x < y"]
    pieces = HTMLTexts(PAGE, True).pieces
    assert {*some, "The <b>red</b> house & the\xa0tree.", "3", "\u00fc \U0001f600"} == {*pieces} and len(pieces) == 9
    assert HTMLTexts(PAGE, False).pieces[1:4] == ["The", "red", "house & the\xa0tree."]
    for kept in ("Keep", "me", "f(x)", "comment", "color"):
        assert not any(kept in piece for piece in pieces)
    assert HTMLTexts("", True).pieces == HTMLTexts(" <br> &nbsp; ", True).pieces == []


@pytest.mark.parametrize("text", ["</>", "</> <p>a</p>", "&a", "a</>b"])
def test_what_the_parser_passes_over_stays(text):
    texts = HTMLTexts(text, True)
    assert html.unescape(texts.with_translations(texts.pieces)) == text


def test_translations_are_escaped_and_their_tags_come_through():
    texts = HTMLTexts("<div><b>The</b> red <i>house</i></div>", True)
    assert texts.pieces == ["<b>The</b> red <i>house</i>"]
    moved = "<i>Haus</i> & <b>das</b>"
    assert texts.with_translations([moved]) == "<div><i>Haus</i> &amp; <b>das</b></div>"
    wrong = (
        "no tags",
        "<b>a</b> <i>b",
        "<b>a <i>b</b></i>",
        "<b>a</b><i>b</i><b></b>",
        "<b>a</b> <u>b</u>",
        "1 < 2 <b>a</b><i>b</i>",
        "das rote Haus <b> </b> <i> </i>",  # as a SavedModel appends tags that the model has lost
    )
    for translation in wrong:
        assert texts.with_translations([translation]) is None
    texts = HTMLTexts("see <i></i> the <b>red <img></b> house", True)
    assert texts.with_translations(["<b><img> rot</b> <i></i> x"]) == "<b><img> rot</b> <i></i> x"
    assert texts.with_translations(["x <i>y</i> <b><img></b>"]) == "x <i>y</i> <b><img></b>"  # a picture is content
    assert HTMLTexts("<p>a</p>", False).with_translations(["<script>&"]) == "<p>&lt;script&gt;&amp;</p>"


def test_tags_with_line_breaks_come_through():
    document = "see <a\n  href=x>the  house</a>"
    texts = HTMLTexts(document, True)
    assert texts.pieces == ["see <a href=x>the house</a>"]
    assert texts.with_translations(["<a href=x>Haus</a> hier"]) == "<a\n  href=x>Haus</a> hier"


@pytest.mark.parametrize("protects_tags", [True, False])
def test_lines_of_preformatted_text_stay_lines(protects_tags):
    document = "a\nb<pre>\none\n  two\r\n\nthree <b>x</b>\n</pre><pre class=notranslate>c\nd</pre>"
    texts = HTMLTexts(document, protects_tags)
    assert texts.pieces == ["a b", "one", "two", *(["three <b>x</b>"] if protects_tags else ["three", "x"])]
    assert texts.with_translations(texts.pieces) == document.replace("a\nb", "a b")


def test_tags_around_a_whole_text_stay_outside():
    texts = HTMLTexts(" <a href='x'> <b>Hello</b> world <img> </a> ", True)
    assert texts.pieces == ["<b>Hello</b> world"]
    assert texts.with_translations(["<b>A</b> B"]) == " <a href='x'> <b>A</b> B <img> </a> "
    assert HTMLTexts("<i><b>a</b></i>", True).pieces == ["a"]


def test_a_text_that_looks_like_a_tag_is_translated_without_other_tags():
    assert HTMLTexts("x <b>&lt;i&gt;</b> y", True).pieces == ["x", "<i>", "y"]


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "a <b": "<b is not closed. Expected >", "x <a href='": "is not closed", "<!-- c": "<!-- c is not closed",
        "<b>x": "<b> is not closed. Expected </b>", "<div><b>x</div>": "<b> is not closed before </div>",
        "x</b>": "</b> has no start tag", "<p><span>a<p>b": "<span> is not closed",
    }.items(),
)  # fmt: skip
def test_what_is_not_closed_is_refused_by_name(text, message):
    with pytest.raises(Refusal, match=re.escape(message)):
        HTMLTexts(text, False)


def test_any_nesting_of_elements_comes_through():
    """Random documents, each of whose texts is replaced by its capitals."""
    rng = random.Random(3)

    def document(depth):
        parts = []
        for _ in range(rng.randint(1, 4)):
            name = rng.choice(["b", "i", "p", "div", "span", "code", "br", "", "", ""])
            if not name:
                parts.append(rng.choice(["some text ", " a &lt; b ", "\n", "x", "&euro;&#33;"]))
            elif name == "br":
                parts.append("<br>")
            else:
                parts.append(f"<{name}>{document(depth - 1) if depth else 'end'}</{name}>")
        return "".join(parts)

    for _ in range(200):
        text = document(3)
        for protects_tags in (True, False):
            texts = HTMLTexts(text, protects_tags)
            found = texts.with_translations(
                [re.sub(r"[a-z]+(?![^<]*>)", lambda m: m[0].upper(), piece) for piece in texts.pieces]
            )
            assert re.findall("<[^>]*>", found) == re.findall("<[^>]*>", text)
            shown = [" ".join(html.unescape(re.sub("<[^>]*>", " ", one)).split()).lower() for one in (found, text)]
            assert shown[0] == shown[1]


@pytest.mark.parametrize("text", ["<b>" * 5000 + "x" + "</b>" * 5000, "<li>x" * 20_000 + "</p>" * 20_000])
def test_a_hostile_document_is_divided_in_linear_time(text):
    start = time.process_time()
    assert HTMLTexts(text, True).pieces[0] == "x" and time.process_time() - start < 2
