"""Translation memories: units, languages, encodings, and what is left out."""

import codecs
import collections
import tracemalloc

import pytest

from t2t_lite.corpora import plain_text, tmx
from t2t_lite.errors import UserError
from tests.data import packing

PAIRS = [("one & two", "eins <und> zwei"), ("three", "drei größe")]
HEAD, TAIL = '<tmx version="1.4"><header srclang="en"/><body>', "</body></tmx>"


def unit(*variants):
    return "<tu>" + "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in variants) + "</tu>"


def read(path, data, **options):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return [tuple(pair.values()) for pair in tmx.read_pairs(str(path), **options)]


def test_units_become_pairs(tmp_path):
    assert read(tmp_path / "a.tmx", packing.tmx(*zip(*PAIRS, strict=True)), languages=("en", "de")) == PAIRS


def test_one_line_and_many(tmp_path):
    text = HEAD + unit(("en", "a"), ("de", "b")) + unit(("en", "c\n   d\n\n"), ("de", "e")) + TAIL
    for data in (text, text.replace("><", ">\n <"), text.replace("<t", "<!--\n<seg>x</seg>-->\n<t")):
        assert read(tmp_path / "a.tmx", data) == [("a", "b"), ("c d", "e")]


@pytest.mark.parametrize(
    "encoding", ["ISO-8859-1", "windows-1252", "UTF-16", "GB18030", "Shift_JIS", "UTF-8", "utf-8-sig"]
)
def test_declared_encodings(tmp_path, encoding):
    text = "“größe”" if encoding == "windows-1252" else "größe" if encoding == "ISO-8859-1" else "日本"
    declared = "UTF-8" if encoding == "utf-8-sig" else encoding
    data = f'<?xml version="1.0" encoding="{declared}"?>\n{HEAD}{unit(("en", "a"), ("de", text))}{TAIL}'
    assert read(tmp_path / "a.tmx", data.encode(encoding)) == [("a", text)]


def test_utf16_without_a_mark_and_utf8_that_says_utf16(tmp_path):
    data = f'<?xml version="1.0" encoding="UTF-16"?>\n{HEAD}{unit(("en", "a"), ("de", "größe"))}{TAIL}'
    for encoded in (
        b"\r\n" + data.encode(),
        data.encode("utf-16-le"),
        data.encode("utf-16-be"),
        data.encode(),
        codecs.BOM_UTF8 + data.encode(),
    ):
        assert read(tmp_path / "a.tmx", encoded) == [("a", "größe")]


def test_codes_within_segments_comments_and_entities(tmp_path):
    text = (
        'Press <bpt i="1">&lt;b><sub>note</sub></bpt><hi>O<!-- <seg>no</seg> -->K</hi><ept i="1">&lt;/b></ept>'
        "<ph/>&amp; &#x41;&#2;<![CDATA[<go>]]>"
    )
    data = f"{HEAD}<!-- {unit(('en', 'x'), ('de', 'y'))} -->{unit(('en', text), ('de', 'b'))}{TAIL}"
    assert read(tmp_path / "a.tmx", data) == [("Press OK& A <go>", "b")]
    named = f'<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n{HEAD}{unit(("en", "a&nbsp;b"), ("de", "c"))}{TAIL}'
    assert read(tmp_path / "a.tmx", named) == [("a\u00a0b", "c")]


def test_languages_count_not_the_order(tmp_path):
    units = [
        unit(("EN-us", "one"), ("de", "eins")),
        unit(("de-AT", "zwei"), ("fr", "deux"), ("en", "two"), ("es", "dos"), ("fr", "2")),
        unit(("en-GB", "colour"), ("en", "color"), ("de", "Farbe")),
        unit(("en", "alone")),
        unit(("en", " "), ("de", "leer")),
        unit(("en", ""), ("fr", "vide")),
    ]
    data, removed = HEAD + "".join(units) + TAIL, collections.Counter()
    expected = [("one", "eins"), ("two", "zwei"), ("color", "Farbe")]
    assert read(tmp_path / "a.tmx", data, languages=("en", "de"), removed=removed) == expected
    assert removed == {"units that lack one of the languages": 2, "empty": 1, "segments of other languages": 2}
    assert read(tmp_path / "a.tmx", data, languages=("de", "en")) == [pair[::-1] for pair in expected]
    assert read(tmp_path / "a.tmx", data) == expected, "those of the first unit"
    assert read(tmp_path / "a.tmx", data, languages=("en", "fr"))[0] == ("two", "deux"), "the first of several"
    chinese = HEAD + unit(("zh-TW", "繁"), ("zh-CN", "简"), ("en", "x")) + TAIL
    assert read(tmp_path / "a.tmx", chinese, languages=("en", "zh-CN")) == [("x", "简")]
    with pytest.raises(
        UserError, match=r"no unit in 'en' and 'eo'\. Its languages are 'EN-us, de, de-AT, fr, en, es, en-GB'"
    ):
        read(tmp_path / "a.tmx", data, languages=("en", "eo"))


def test_without_languages_the_order_counts(tmp_path):
    data = f"{HEAD}<tu><seg>a</seg><seg>b</seg></tu><tu><seg>c</seg></tu>{TAIL}"
    removed = collections.Counter()
    assert read(tmp_path / "a.tmx", data, languages=("en", "de"), removed=removed) == [("a", "b")]
    assert removed == {"units that lack one of the languages": 1}


def test_bad_units_are_left_out(tmp_path):
    told = []
    good, bad = (HEAD + unit(("en", "a"), ("de", "b"))).encode(), unit(("en", "c"), ("de", "größe")).encode("latin1")
    data = good + bad + TAIL.encode()
    assert read(tmp_path / "a.tmx", data, on_bad_line=told.append) == [("a", "b")]
    assert len(told) == 1 and "a.tmx: unit number 2 has bytes that are not UTF-8" in told[0]
    turned = read(tmp_path / "a.tmx", data, on_bad_line=told.append, languages=("de", "en"))
    assert turned == [("b", "a")] and len(told) == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HEAD + unit(("en", "a"), ("de", "b")), r"a\.tmx, line 1, column \d+: not XML"),
        ("\n\n<tmx><body>\n<tu>\n</body>", r"a\.tmx, line 3, column 3: not XML: mismatched tag"),
        (f"{HEAD}{TAIL}", r"a\.tmx: no unit with two segments\. Expected"),
        (f"{HEAD}{unit(('en', 'a'))}{TAIL}", r"no unit with two segments\. Its languages are 'en'\. "),
        (f'<!DOCTYPE tmx [\n<!ENTITY a "b">]>{HEAD}{TAIL}', r"a\.tmx, line 2: declares the entity 'a'"),
        (f'<!DOCTYPE tmx SYSTEM "x">{HEAD}\n{unit(("en", "&abc;"))}', r"a\.tmx, line 2: the entity &abc; is not"),
        (f'<?xml version="1.0" encoding="xyz"?>{HEAD}{TAIL}', r"a\.tmx: declares the encoding 'xyz'"),
        (f"{HEAD}\n{unit(('en', 'a'), ('de', 'ö'))}".encode("latin1"), r"a\.tmx, after line \d: byte 0xf6 is not UTF-"),
        ("", "a.tmx, line 1, column 1: not XML"),
    ],
)
def test_files_that_are_none(tmp_path, data, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path / "a.tmx", data)


def test_a_segment_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(plain_text, "LONGEST_LINE", 70_000)
    first, rest = "x" * 40_000, "y" * 30_000
    segment = f"{first}<hi>{rest}</hi>"
    assert read(tmp_path / "a.tmx", HEAD + unit(("en", segment), ("de", "z")) + TAIL) == [(first + rest, "z")]
    with pytest.raises(UserError, match=r"a\.tmx, line 2: more than 70,000 bytes"):
        read(tmp_path / "a.tmx", f"{HEAD}\n{unit(('en', f'{segment}y'), ('de', 'z'))}{TAIL}")
    with pytest.raises(UserError, match=r"a\.tmx: 70,000 characters without a tag"):
        read(tmp_path / "a.tmx", HEAD + unit(("en", "x" * 140_000)))


@pytest.mark.long
def test_memory_does_not_grow_with_the_file(tmp_path):
    (tmp_path / "a.tmx").write_text(HEAD + unit(("en", "a b c"), ("de", "d e f")) * 30_000 + TAIL)
    tracemalloc.start()
    assert sum(1 for _ in tmx.read_pairs(str(tmp_path / "a.tmx"))) == 30_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6
