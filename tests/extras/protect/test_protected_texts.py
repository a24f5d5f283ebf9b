"""Protected texts: which they are, symbols for them, and texts for symbols, in Python and in a graph."""

# Nearest tests of: extras/protect/protected_graph.py

import itertools
import random
import time

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.extras.protect import protected_graph
from t2t_lite.extras.protect.protected_texts import KINDS, NUMBERS, ProtectedTexts, blocks, symbol
from t2t_lite.text.offsets import spans_in_blocks
from t2t_lite.text.stray_characters import reading_plain
from t2t_lite.text.subwords import NORMALIZATIONS, train_sentencepiece
from t2t_lite.text.vocabulary import SentencePieceEncoder

ALL = ProtectedTexts(KINDS)
MORE = ProtectedTexts(["icu:3", "placeholders:30", "comments", "printf:12", "tags"])
# What is found of a text, whole texts with nothing else in them, and near misses.
FOUND = {
    "See https://x.org/a_(b)?q=1#z. Or (www.foo.com), ftp://f.g/h!": [
        "https://x.org/a_(b)?q=1#z", "www.foo.com", "ftp://f.g/h"
    ],
    "HTTP://de.wikipedia.org/wiki/Köln, и http://я.рф/и»": ["HTTP://de.wikipedia.org/wiki/Köln", "http://я.рф/и"],
    "请访问http://example.com。谢谢": ["http://example.com"],
    "me.you+x@mail.x.co.uk, <me@x.org>; a@b": ["me.you+x@mail.x.co.uk", "me@x.org"],
    'a <b>c</b><br/> <a href="https://x.y/?z">d</a > <x:y-z />': [
        "<b>", "</b>", "<br/>", '<a href="https://x.y/?z">', "</a >", "<x:y-z />"
    ],
    "1 < 2 and 3 > 2, <3, < b>, i<j": [],
    "{name} {0:.2f} {} {{ a.b }} {{c}} ${d} {two words} {": ["{name}", "{0:.2f}", "{}", "{{ a.b }}", "{{c}}", "${d}"],
    "%s %1$s %(name)d. 5% d": ["%s", "%1$s", "%(name)d"],
    "www. http:// @x.org awww.x.org httpx": [],
    "a ⟦url1⟧ ⟦tag10⟧ ⟦tag11⟧ ⟦urls1⟧": ["⟦url1⟧", "⟦tag10⟧"],
    "%d %1$s %@ %-5.2f %2$@ %lld %5d %'d %05.1lf %*d %.*f %1$*2$d %#x %c %n": [
        "%d", "%1$s", "%@", "%-5.2f", "%2$@", "%lld", "%5d", "%'d", "%05.1lf", "%*d", "%.*f", "%1$*2$d", "%#x",
        "%c", "%n",
    ],
    "%dpx, %dx%d, %(size)d%%, %#@files@, %1$#@a@": ["%d", "%d", "%d", "%(size)d", "%#@files@", "%1$#@a@"],
    "100 % sure, 50%-off, 5% discount, %%d, 100%% sure, %": [],
    "%%%d": ["%d"],
    "{n, plural, one {# file} other {# files}}": ["{n, plural, one {", "#", "} other {", "#", "}}"],
    "{n,plural,offset:1 =0{no C#}one{{who} at #1}other{all}}": [
        "{n,plural,offset:1 =0{", "}one{", "{who}", "}other{", "}}"
    ],
    "{g, select, female {She} other {They}} at {0, date, long}": [
        "{g, select, female {", "} other {", "}}", "{0, date, long}"
    ],
    "{a, selectordinal, one {x {b, plural, other {y}}} two {z}}": [
        "{a, selectordinal, one {", "{b, plural, other {", "}}", "} two {", "}}"
    ],
    "{n, choice, 0#no} {n, plural} {a b}": [],
    "a&nbsp;b &#8212; &#x1F600; & &; &nbsp AT&T;": ["&nbsp;", "&#8212;", "&#x1F600;"],
    "<!-- a\n<b> - -- > --> b <!----> <!--[if IE]> <i> <![endif]--> <!-- <-->": [
        "<!-- a\n<b> - -- > -->", "<!---->", "<!--[if IE]> <i> <![endif]-->", "<!-- <-->"
    ],
    "a <!-- not closed <b> <i": ["<b>"],
    "<!-- a <!-- b -->": ["<!-- b -->"],
}  # fmt: skip
ATOMS = [
    "http://", "https://x.org", "www.", "ſ", "\u212a", "a", "B", ".", ",", ")", "(", " ", "  ", "<b>", "</b>", "<", ">",
    "<br/>", "<a ", "{", "}", "{x}", "{{", "$", "%s", "%1$s", "%(", "é", "中", "。", "@", "x.org", "me@x.org", "⟦url1⟧",
    "⟦", "⟧", "⟦tag10⟧", "⟦url11⟧", "⟦placeholder3⟧", "1", "-", "'", '"', "\n", "\0", "\u00a0", "\u2028", "/", ":", "?",
    "%%", "%", "%d", "%-5.2f", "%@", "%1$", "#@", "l", "d", ".", "*", "&", "&nbsp;", "&#8212;", "&#x", ";", "#", "!--",
    "<!--", "-->", "--", "<!", "{n, plural, one {", "} other {", "}}", "{n,", " select", ",", "=1", "⟦entity1⟧",
    "⟦printf12⟧",
    "\x85", "\x1c", "\x0b", "😀", "\\1", "\\", "[", "]", "!", "~", "\xff", "\ufffd",
]  # fmt: skip


@pytest.fixture(scope="module")
def texts():
    draw = random.Random(1)
    every = [*FOUND, *("".join(pair) for pair in itertools.pairwise(FOUND))]
    many = ["{x} " * 15, "".join(f"{{{at}}}" for at in range(25)), *["<b> {a} {b} http://x.y " * 12] * 20]
    some = ["".join(draw.choices(ATOMS, k=draw.randrange(25))) for _ in range(4000)]
    return [*some, *every, *many, "", " ", " {x}\n"]


@pytest.fixture(scope="module", params=[ALL, MORE], ids=["all kinds", "numbers"])
def hidden_in_graph(texts, request):
    """Returns a ProtectedTexts and the HiddenBatch that a graph makes of the texts."""
    return request.param, tf.function(protected_graph.hide, autograph=False)(request.param, tf.constant(texts))


def test_what_is_protected():
    for text, expected in FOUND.items():
        assert [text[start:end] for start, end in ALL.find(text)] == expected, text
    assert not ProtectedTexts(["placeholders"]).find("100%sure") and len(ALL.find("100%sure")) == 1
    ((_, url),) = ProtectedTexts(["urls"]).hide('<a href="http://x.y">').texts
    assert url == "http://x.y"  # of a kind that is not asked for, nothing is


def test_symbols_are_numbered_by_kind_and_equal_texts_have_two():
    names = ("url", "email", "tag", "placeholder", "printf", "icu", "entity", "comment")
    assert ALL.symbols == [f"⟦{name}{n}⟧" for name in names for n in range(1, 11)]
    assert ProtectedTexts(["tags", "urls"]).kinds == ("urls", "tags")
    hidden = ALL.hide("{a} http://x.y {b} {a}")
    assert hidden.text == "⟦placeholder1⟧ ⟦url1⟧ ⟦placeholder2⟧ ⟦placeholder3⟧"
    assert [text for _, text in hidden.texts] == ["{a}", "http://x.y", "{b}", "{a}"]


def test_from_the_eleventh_text_of_a_kind_on_symbols_are_shared_and_none_is_lost():
    many = ALL.hide(" ".join(f"{{a{at}}}" for at in range(12)))
    assert many.text.endswith("⟦placeholder10⟧ ⟦placeholder1⟧ ⟦placeholder2⟧") and len(many.texts) == 12
    output = "⟦placeholder1⟧ x ⟦placeholder2⟧ ⟦placeholder1⟧ ⟦placeholder1⟧"
    restored = ALL.restore(output, many.texts)
    assert restored.lost == ["{a2}", "{a3}", "{a4}", "{a5}", "{a6}", "{a7}", "{a8}", "{a9}", "{a11}"]
    assert restored.text == " ".join(["{a0} x {a1} {a10}", *restored.lost])
    assert ALL.hide_as("{a11} {a10} {a1}", many.texts) == "⟦placeholder2⟧ ⟦placeholder1⟧ ⟦placeholder2⟧"


def test_a_kind_has_as_many_symbols_as_its_number_says():
    assert MORE.kinds == ("tags", "placeholders", "printf", "icu", "comments")
    assert MORE.numbers == {"tags": 10, "placeholders": 30, "printf": 12, "icu": 3, "comments": 10}
    assert len({*MORE.symbols}) == len(MORE.symbols) == 65
    hidden = MORE.hide(" ".join(f"{{a{at}}} %{at}d" for at in range(1, 32)))
    symbols = [one for one, _ in hidden.texts]
    assert symbols[::2] == [symbol("placeholders", at % 30 + 1) for at in range(31)]
    assert symbols[1::2] == [symbol("printf", at % 12 + 1) for at in range(31)]
    texts = hidden.texts[:60:2]
    assert MORE.restore(" ".join(reversed(symbols[:60:2])), texts).text == " ".join(t for _, t in reversed(texts))
    assert MORE.hide_pair("%5d {a}", "{a} %5d", 29)[0] == "⟦printf6⟧ ⟦placeholder30⟧"
    assert MORE.counts("⟦placeholder30⟧ ⟦placeholder1⟧⟦printf12⟧ ⟦url1⟧") == {"placeholders": 2, "printf": 1}


@pytest.mark.parametrize(
    "word", ["url", "urls:", "urls:0", "urls:101", "urls:05", "urls:x", "urls:-1", ":3", "urls:3:3", "urls:٣"]
)
def test_a_number_of_symbols_is_checked(word):
    with pytest.raises(UserError, match=f"^--protect: '{word}': "):
        ProtectedTexts([word])


def test_of_a_text_that_was_truncated_only_the_first_texts_were_read():
    hidden = ALL.hide("{x} " * 12)
    pieces = [*[symbol("placeholders", number) for number in range(1, NUMBERS + 1)], "a", symbol("placeholders", 1)]
    assert hidden.read(pieces) == hidden.texts[:11] and hidden.read(["a"]) == []


def test_a_text_of_the_user_that_looks_like_a_symbol_is_no_other_s():
    hidden = ALL.hide("⟦url2⟧ http://x.y ⟦tag11⟧ ⟦")
    assert hidden.text == "⟦url1⟧ ⟦url2⟧ ⟦ tag11⟧ ⟦ "
    assert ALL.restore("⟦url2⟧, ⟦url1⟧", hidden.texts).text == "http://x.y, ⟦url2⟧"


@pytest.mark.parametrize(
    "output, expected, lost",
    [
        ("⟦url1⟧ x ⟦tag1⟧", "u x <b>", []),
        ("⟦tag1⟧ x ⟦url1⟧", "<b> x u", []),
        ("x", "x u <b>", ["u", "<b>"]),
        ("", "u <b>", ["u", "<b>"]),
        ("x ⟦tag1⟧ y", "x <b> y u", ["u"]),
        ("⟦url1⟧ ⟦url1⟧ x ⟦tag1⟧ ⟦tag1⟧.", "u x <b>.", []),
        ("x ⟦url2⟧ ⟦url1⟧⟦tag1⟧ ⟦tag9⟧", "x u<b>", []),
        ("⟦url2⟧ ⟦tag2⟧ x ⟦url1⟧⟦tag1⟧", "x u<b>", []),
        ("⟦url2⟧", "u <b>", ["u", "<b>"]),
        ("⟦url1⟧ ⟦ url2⟧ ⟦tag1⟧", "u ⟦ url2⟧ <b>", []),
    ],
)
def test_an_output_has_each_text_as_often_as_its_input(output, expected, lost):
    """Symbols that the model wrote twice or invented are removed, what it lost stands at the end."""
    restored = ALL.restore(output, [("⟦url1⟧", "u"), ("⟦tag1⟧", "<b>")])
    assert (restored.text, restored.lost) == (expected, lost)
    assert "".join(old for old, _ in restored.segments) == output


def test_texts_come_through_whatever_the_model_writes(texts):
    draw = random.Random(2)
    for text in texts[:500]:
        hidden = ALL.hide(text)
        kept = [one for _, one in hidden.texts]
        symbols = [*(one for one, _ in hidden.texts), *draw.choices(ALL.symbols, k=3)]
        output = "".join(draw.choices([*symbols, " ", "x"], k=draw.randrange(9)))
        found = ALL.restore(output, hidden.texts)
        assert found.text.count("x") == output.count("x") + sum(one.count("x") for one in kept)
        assert len(found.text.replace(" ", "")) == sum(
            len(one.replace(" ", "")) for one in [*kept, "x" * output.count("x")]
        )
        assert ALL.restore(hidden.text, hidden.texts).lost == []


def test_of_a_training_pair_what_both_sides_have_equally_often_gets_symbols():
    assert ALL.hide_pair("{b} of {a}", "von {a} {b}") == (
        "⟦placeholder1⟧ of ⟦placeholder2⟧", "von ⟦placeholder2⟧ ⟦placeholder1⟧", 2, 0,
    )  # fmt: skip
    assert ALL.hide_pair("{a} http://x.en", "{a} http://x.de") == (
        "⟦placeholder1⟧ http://x.en", "⟦placeholder1⟧ http://x.de", 1, 2,
    )  # fmt: skip
    assert ALL.hide_pair("<b>a {x} {x}", "<b>c<b> {x} {x}")[:2] == (
        "<b>a ⟦placeholder1⟧ ⟦placeholder2⟧", "<b>c<b> ⟦placeholder1⟧ ⟦placeholder2⟧",
    )  # fmt: skip
    assert ALL.hide_pair("⟦tag1⟧ <b>", "<b> ⟦") == ("⟦ tag1⟧ ⟦tag1⟧", "⟦tag1⟧ ⟦ ", 1, 1)
    assert ALL.hide_pair("{a} {b} {c}", "{a}", NUMBERS - 1)[0] == "⟦placeholder10⟧ {b} {c}"
    rolled = ALL.hide_pair("{a} {b}", "{b} {a}", NUMBERS - 1)
    assert rolled[:2] == ("⟦placeholder10⟧ ⟦placeholder1⟧", "⟦placeholder1⟧ ⟦placeholder10⟧")
    assert ALL.hide_pair("nothing", "nichts") == ("nothing", "nichts", 0, 0)
    assert ALL.hide_pair("<b> {a} <i>", "<b> {a} <i>", 3)[0] == "⟦tag4⟧ ⟦placeholder4⟧ ⟦tag5⟧", (
        "each kind from there on"
    )


def test_a_target_gets_the_symbols_of_its_input():
    texts = ALL.hide("{a} {b} {a}").texts
    assert ALL.hide_as("{a} {b} {c} {a} {a} ⟦placeholder1⟧", texts) == (
        "⟦placeholder1⟧ ⟦placeholder2⟧ {c} ⟦placeholder3⟧ {a} ⟦ placeholder1⟧"
    )


def test_a_text_of_only_protected_texts_is_known_as_such():
    only = {"{x}": True, " {x}\u00a0<b/>\n": True, "{x}.": False, "": False, " ": False, "{x}" * 11: True}
    assert {text: ALL.hide(text).is_only_protected for text in only} == only


def test_spans_of_symbols_are_those_of_their_texts():
    text = "see http://x.org/y now"
    hidden = ALL.hide(text)
    spans = spans_in_blocks([(0, 3), (4, 10), (11, 14)], [(*b[2:], *b[:2]) for b in blocks(hidden.segments)])
    assert [text[start:end] for start, end in spans] == ["see", "http://x.org/y", "now"]
    restored = ALL.restore("⟦url1⟧ ⟦url1⟧ da", hidden.texts)
    spans = spans_in_blocks([(0, 6), (6, 13), (13, 16)], blocks(restored.segments))
    assert [restored.text[start:end] for start, end in spans] == ["http://x.org/y", "", " da"]


def test_what_is_no_symbol_keeps_its_place(texts):
    """Whatever is replaced or removed beside a letter, its span in the other text is that letter."""
    draw = random.Random(4)
    for text in texts[:500]:
        hidden = ALL.hide(text)
        symbols = [*(one for one, _ in hidden.texts), *ALL.symbols[:2]]
        output = "".join(draw.choices([*symbols, " ", "Ä", "ÖÜ", "⟦ "], k=draw.randrange(12)))
        restored = ALL.restore(output, hidden.texts)
        places = [(at, at + 1) for at, letter in enumerate(output) if letter in "ÄÖÜ"]
        found = spans_in_blocks(places, blocks(restored.segments)) if places else []
        assert [restored.text[a:b] for a, b in found] == [output[a:b] for a, b in places]


def test_a_bracket_that_is_no_symbol_moves_no_word():
    text = "a ⟦ lot of ⟦ brackets"
    hidden = ALL.hide(text)
    assert hidden.text == "a ⟦  lot of ⟦  brackets"
    places = [(hidden.text.index(word), hidden.text.index(word) + len(word)) for word in ("lot", "of", "brackets")]
    spans = spans_in_blocks(places, [(*b[2:], *b[:2]) for b in blocks(hidden.segments)])
    assert [text[start:end] for start, end in spans] == ["lot", "of", "brackets"]


def test_a_graph_hides_as_python_does(texts, hidden_in_graph):
    protection, found = hidden_in_graph
    rows = zip(texts, *(part.numpy() for part in found), strict=True)
    for text, hidden, slots, kept, only in rows:
        expected = protection.hide(text)
        assert hidden.decode() == expected.text
        symbols = [protection.symbols[slot] for slot in slots if slot >= 0]
        assert [(one, found.decode()) for one, found in zip(symbols, kept, strict=False)] == expected.texts
        assert only.decode() == (text if expected.is_only_protected else "")


@pytest.mark.slow
def test_a_graph_restores_and_matches_as_python_does(texts, hidden_in_graph):
    protection, hidden_batch = hidden_in_graph
    draw, hidden = random.Random(3), [protection.hide(text) for text in texts]
    others = [*protection.symbols[:3], " ", " ", "x", "⟦ ", "é", ""]
    outputs = [
        "".join(draw.choices([pair[0] for pair in one.texts] * 2 + others, k=draw.randrange(12))) for one in hidden
    ]
    slots, found = hidden_batch.slots, hidden_batch.protected
    restored = tf.function(protected_graph.restore, autograph=False)(
        protection, tf.constant(outputs), slots, found
    ).numpy()
    expected = [protection.restore(output, one.texts).text for output, one in zip(outputs, hidden, strict=True)]
    assert [text.decode() for text in restored] == expected
    targets = [
        "".join(draw.choices([pair[1] for pair in one.texts] * 2 + ["{x}", " ", "⟦url1⟧"], k=8)) for one in hidden
    ]
    matched = tf.function(protected_graph.hide_as, autograph=False)(
        protection, tf.constant(targets), hidden_batch
    ).numpy()
    expected = [protection.hide_as(target, one.texts) for target, one in zip(targets, hidden, strict=True)]
    assert [text.decode() for text in matched] == expected


@pytest.mark.parametrize("count", [0, 1])
def test_a_graph_takes_an_empty_batch_and_one_without_protected_texts(count):
    texts = tf.constant(["abc"] * count, tf.string)
    hidden = protected_graph.hide(ALL, texts)
    assert hidden.slots.shape == (count, 0)
    for found in (
        hidden.texts,
        protected_graph.restore(ALL, texts, hidden.slots, hidden.protected),
        protected_graph.hide_as(ALL, texts, hidden),
    ):
        assert found.numpy().tolist() == [b"abc"] * count


def test_no_text_takes_long():
    """Python's regular expressions try again at every character, which may not cost the square of the length."""
    for part in (
        "a", "<a ", "http://", "{", "www.", "a@", "((", "http://(", "%(", "a.", "-@", "{{ ", "<a>", "<!--", "<!-- ",
        "<<!--", "<!<!--", "<-<!--", "<!---", "<!-- -->", "&a", "&#1", "%0", "%(a", "%1$*", "%%", "{n, plural, ", "{ ",
        "} ", "} a ", "{n, select, a {", "{n, date, ", "} =1", "#",
    ):  # fmt: skip
        text = part * (60_000 // len(part))
        start = time.process_time()
        ALL.hide(text)
        assert time.process_time() - start < 2, part


def test_every_symbol_is_one_piece_whatever_the_normalization(tmp_path):
    for normalization in (NORMALIZATIONS[0], NORMALIZATIONS[-1]):
        prefix = str(tmp_path / normalization)
        symbols = ALL.symbols
        train_sentencepiece(["The house was old"] * 9, prefix, 360, normalization=normalization,
                            user_defined_symbols=symbols)  # fmt: skip
        encoder = SentencePieceEncoder(f"{prefix}.model")
        lines = ["".join(symbols), *(f"({one}) {one},x" for one in symbols), "⟦ url1⟧ ⟦ｕrl１⟧ ⟦ur\u00adl1⟧"]
        for reads in (encoder, reading_plain(encoder)):
            ids = [reads.encode(line) for line in lines]
            assert reads.tf_encode(tf.constant(lines)).to_list() == ids
            assert [i for i in ids[0] if encoder.pieces([i]) != ["▁"]] == [3 + at for at in range(len(symbols))]
            assert [row.count(3 + at) for at, row in enumerate(ids[1:-1])] == [2] * len(symbols)
            hidden = [reads.encode(ALL.hide(line).text) for line in lines[-1:]]
            assert not {*range(4, 3 + len(symbols))} & {*hidden[0]} and hidden[0].count(3) == 0
        assert symbol("urls", 1) == symbols[0]
