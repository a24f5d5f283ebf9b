import codecs
import collections
import gzip
import tracemalloc

import pytest

from t2t_lite.corpora import source_files, tmx
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
    data = packing.tmx(*zip(*PAIRS, strict=True))
    (tmp_path / "a.tmx").write_bytes(data)
    (tmp_path / "b.tmx.gz").write_bytes(gzip.compress(data))
    packing.write_zip(tmp_path / "c.zip", {"in/c.tmx": data})
    for url, name in (("", "a.tmx"), ("http://h/b.tmx.gz", "b.tmx.gz"), ("http://h/c.zip", "in/c.tmx")):
        pairs = source_files.read_members(str(tmp_path), ("tmx", name), url, ("en", "de"))
        assert [tuple(pair.values()) for pair in pairs] == PAIRS


def test_one_line_and_many(tmp_path):
    text = HEAD + unit(("en", "a"), ("de", "b")) + unit(("en", "c\n   d\n\n"), ("de", "e")) + TAIL
    for data in (text, text.replace("><", ">\n <").replace("<", "<!--\n<seg>x</seg>--><", 0)):
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
        unit(("de-AT", "zwei"), ("fr", "deux"), ("en", "two")),
        unit(("en-GB", "colour"), ("en", "color"), ("de", "Farbe")),
        unit(("en", "alone")),
        unit(("en", " "), ("de", "leer")),
        unit(("en", ""), ("fr", "vide")),
    ]
    data, removed = HEAD + "".join(units) + TAIL, collections.Counter()
    expected = [("one", "eins"), ("two", "zwei"), ("color", "Farbe")]
    assert read(tmp_path / "a.tmx", data, languages=("en", "de"), removed=removed) == expected
    assert removed == {"units without both languages": 2, "empty": 1, "segments of other languages": 1}
    assert read(tmp_path / "a.tmx", data, languages=("de", "en")) == [pair[::-1] for pair in expected]
    assert read(tmp_path / "a.tmx", data) == expected, "those of the first unit"
    chinese = HEAD + unit(("zh-TW", "繁"), ("zh-CN", "简"), ("en", "x")) + TAIL
    assert read(tmp_path / "a.tmx", chinese, languages=("en", "zh-CN")) == [("x", "简")]
    with pytest.raises(UserError, match=r"no unit with 'en' and 'eo'\. It has the languages 'EN-us, de, de-AT, fr, en"):
        read(tmp_path / "a.tmx", data, languages=("en", "eo"))


def test_without_languages_the_order_counts(tmp_path):
    data = f"{HEAD}<tu><seg>a</seg><seg>b</seg></tu><tu><seg>c</seg></tu>{TAIL}"
    removed = collections.Counter()
    assert read(tmp_path / "a.tmx", data, languages=("en", "de"), removed=removed) == [("a", "b")]
    assert removed == {"units without both languages": 1}


def test_bad_units_are_left_out(tmp_path):
    told = []
    data = HEAD.encode() + unit(("en", "a"), ("de", "b")).encode() + unit(("en", "c"), ("de", "größe")).encode("latin1")
    assert read(tmp_path / "a.tmx", data + TAIL.encode(), on_bad_line=told.append) == [("a", "b")]
    assert len(told) == 1 and "unit number 2 has bytes that are not UTF-8" in told[0]


@pytest.mark.long
def test_memory_does_not_grow_with_the_file(tmp_path):
    (tmp_path / "a.tmx").write_text(HEAD + unit(("en", "a b c"), ("de", "d e f")) * 30_000 + TAIL)
    tracemalloc.start()
    assert sum(1 for _ in tmx.read_pairs(str(tmp_path / "a.tmx"))) == 30_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6
