"""Lines and running text of files: where they end, how they are packed and encoded, and which are left out."""
# Nearest tests of: t2t_lite/corpora/archives.py, t2t_lite/corpora/encodings.py

import bz2
import collections
import functools
import gzip
import lzma
import os

import pyarrow
import pytest

from t2t_lite.corpora import archives, plain_text
from t2t_lite.errors import UserError
from tests.data import packing

ZSTD = functools.partial(pyarrow.compress, codec="zstd", asbytes=True)
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": ZSTD}


def write(path, data):
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


@pytest.mark.parametrize("ending", PACK)
def test_packed_files_read_alike(tmp_path, ending):
    text = "one\nzwei größe\n\nlast without an end".encode()
    path = write(tmp_path / f"a.en{ending}", PACK[ending](text))
    assert list(plain_text.read_lines(path)) == ["one", "zwei größe", "", "last without an end"]
    assert plain_text.without_packing(path) == str(tmp_path / "a.en")


def test_only_line_feeds_end_lines(tmp_path):
    path = write(tmp_path / "a", "\ufeffone\r\ntwo\u2028still two\x85\x0b\x0c\u2029too\r\nthree\rtoo\n")
    lines = list(plain_text.read_lines(path))
    assert lines == ["one", "two\u2028still two\x85\x0b\x0c\u2029too", "three\rtoo"]
    assert plain_text.clean(lines[1]) == "two still two    too"


def test_a_byte_order_mark_is_no_text_at_the_begin_alone(tmp_path):
    path = write(tmp_path / "a", "\ufeffa\n\ufeffb\n")
    assert list(plain_text.read_lines(path)) == ["a", "\ufeffb"]
    assert "".join(plain_text.read_text(path)) == "a\n\ufeffb\n"


def test_control_characters_become_blanks():
    assert plain_text.clean("\ta\x00b\x1fc\x7fd\u2029e \u00a0") == "a b c d e"
    assert plain_text.clean(" \x00\t ") == ""
    assert plain_text.clean("no-break\u00a0space stays") == "no-break\u00a0space stays"


def test_a_long_line_is_one_line(tmp_path):
    path = write(tmp_path / "a", "x" * 100_000 + "\ny\n")
    assert [len(line) for line in plain_text.read_lines(path)] == [100_000, 1]


def test_a_line_end_may_lie_between_two_parts(tmp_path):
    for length in range(2**16 - 3, 2**16 + 2):
        (tmp_path / "a").write_bytes(b"x" * length + b"\r\nsecond\r")
        assert "".join(plain_text.read_text(str(tmp_path / "a"))) == "x" * length + "\nsecond\r"


@pytest.mark.parametrize("before", ["üx", "\rx"])
@pytest.mark.parametrize("place", [3, 70_000, *range(2**16 - 1, 2**16 + 3)])  # a part ends before, in or behind them
def test_the_place_of_a_wrong_byte_is_counted_from_its_lines_begin(tmp_path, place, before):
    (tmp_path / "a").write_bytes(b"first\n" + before.encode().rjust(place, b"x") + b"\xffy\n")
    where = f"line 2: byte 0xff at position {place} is"
    for read in (plain_text.read_lines, plain_text.read_text):
        with pytest.raises(UserError, match=where):
            list(read(str(tmp_path / "a")))


def test_pairs_go_together_by_line(tmp_path):
    paths = write(tmp_path / "a.en", "one \n\nthree\n"), write(tmp_path / "a.de", "eins\nzwei\n drei\n")
    assert list(plain_text.read_pairs(*paths)) == [
        {"inputs": "one", "targets": "eins"},
        {"inputs": "", "targets": "zwei"},
        {"inputs": "three", "targets": "drei"},
    ]


@pytest.mark.parametrize(
    ("en", "de", "found"), [(5, 3, "a.en has 5 lines, .*a.de has 3"), (2, 9, "a.de has 9 .*a.en has 2")]
)
def test_unequal_files_are_refused_with_both_counts(tmp_path, en, de, found):
    paths = write(tmp_path / "a.en", "x\n" * en), write(tmp_path / "a.de", "x\n" * de)
    with pytest.raises(UserError, match=found):
        list(plain_text.read_pairs(*paths))


GERMAN = "Der Hund schläft größer.\nHallo Welt\n" * 50
SCRIPTS = {
    "la": GERMAN, "ru": "Привет мир\nкак дела\n", "zh": "这是一个句子上一\n中文测试\n", "pa": "ਸਤ ਸ੍ਰੀ ਅਕਾਲ\nਪੰਜਾਬੀ\n",
    "hi": "नमस्ते दुनिया\n", "ar": "مرحبا بالعالم\n", "ko": "안녕하세요 세계\n", "short": "hello",
}  # fmt: skip
READERS = (plain_text.read_lines, plain_text.read_text)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32", "UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"])
def test_wide_encodings_are_named_with_and_without_a_mark(tmp_path, encoding, read):
    for name, text in SCRIPTS.items():
        path = write(tmp_path / name, text.encode(encoding))
        with pytest.raises(UserError, match=f"{name}: the text is {encoding}. .*iconv -f {encoding} -t UTF-8"):
            list(read(path))
        assert "".join(plain_text.read_text(write(tmp_path / name, text))) == text


def test_a_nul_here_and_there_is_no_wide_encoding(tmp_path):
    for text in ("three\x00\x07 cats\n", "\0" * 30, "a\0b\n" * 3, "x\0\ny\n", GERMAN + "\0\n"):
        assert list(plain_text.read_lines(write(tmp_path / "a", text)))


@pytest.mark.parametrize("read", READERS)
def test_the_first_bytes_say_how_a_file_is_packed(tmp_path, read):
    expected = list(read(write(tmp_path / "plain", GERMAN)))
    for ending, pack in PACK.items():
        for name in (f"a{ending.upper()}", "no_ending", "wrong.bz2" if ending else "a.txt"):
            assert list(read(write(tmp_path / name, pack(GERMAN.encode())))) == expected
    assert plain_text.without_packing("a.tsv.GZ") == "a.tsv"
    packing.write_zip(tmp_path / "in.zip", {"a.GZ": gzip.compress(GERMAN.encode()), "a": gzip.compress(b"x\n")})
    assert list(read(archives.Member(str(tmp_path / "in.zip"), "a.GZ"))) == expected
    assert list(read(archives.Member(str(tmp_path / "in.zip"), "a"))) in (["x"], ["x\n"])


@pytest.mark.parametrize("read", READERS)
def test_advice_does_not_ruin_a_file_of_which_few_lines_are_bad(tmp_path, read):
    path = write(tmp_path / "a.de", GERMAN.encode() + b"gr\xf6\n" + GERMAN.encode())
    with pytest.raises(UserError, match=r"a\.de, line 101: .*100 of the 101 .* are UTF-8, and a conv") as error:
        list(read(path))
    assert "iconv" not in str(error.value) and "--skip_bad_lines" in str(error.value)
    early = write(tmp_path / "b.de", b"gr\xf6\n" + GERMAN.encode())
    with pytest.raises(UserError, match=r"b\.de, line 1: .*50 of the 51 .* are UTF-8, and a conv"):
        list(read(early))
    latin = write(tmp_path / "c.de", GERMAN.encode("latin1"))
    with pytest.raises(UserError, match=r"c\.de, line 1: .*0 of the 50 .* are UTF-8\. .*\(iconv -f ENCODING -t UTF-8"):
        list(read(latin))


def test_texts_may_begin_like_other_formats(tmp_path):
    for text in ("PAR1 is a receptor.\n", "PK\n", "BZh9 is no word\n", "a" * 256 + "mustard\n", "7z\n"):
        assert "".join(plain_text.read_text(write(tmp_path / "a", text))) == text
    packing.write_tar(tmp_path / "a.tar", {"a.en": b"a\n"})
    (tmp_path / "a.tar").rename(tmp_path / "a.en")
    with pytest.raises(UserError, match=r"a\.en: this is a tar archive"):
        list(plain_text.read_lines(str(tmp_path / "a.en")))


def test_bad_lines_are_left_out_and_told(tmp_path):
    told = []
    good, bad = write(tmp_path / "a.en", "one\ntwo\nthree\n"), write(tmp_path / "a.de", b"eins\nzw\xf6i\ndrei\n")
    assert list(plain_text.read_lines(bad, told.append)) == ["eins", None, "drei"]
    pairs = [tuple(pair.values()) for pair in plain_text.read_pairs(good, bad, told.append)]
    assert pairs == [("one", "eins"), ("three", "drei")]
    assert len(told) == 2 and all("a.de, line 2: byte 0xf6" in message for message in told)
    told.clear()
    assert list(plain_text.read_lines(write(tmp_path / "b", b"\xf6\n\xf6\none\n\xfc"), told.append))[2] == "one"
    assert ["UTF-8, leave" in message or "iconv" in message for message in told] == [True, False, False]  # once
    assert list(plain_text.read_lines(bad, told.append, keeps_bad=True))[1] == "zw\udcf6i" and len(told) == 3


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"a\n\xff\nb\n", "a\nb\n"),
        (b"\xffa\nb\n", "b\n"),
        (b"a\n\xff", "a\n"),
        (b"x" * 70_000 + b"\xff\nb\n", "x" * 2**16 + "\nb\n"),
        (b"\xff" + b"x" * 140_000 + b"\nb\n", "b\n"),
        (b"x" * 65_535 + b"\xc3\xff\nb\n", "x" * 65_535 + "\nb\n"),  # the bad byte ends a character of the part before
    ],
)
def test_bad_lines_of_running_text_are_left_out(tmp_path, data, expected):
    told = []
    assert "".join(plain_text.read_text(write(tmp_path / "a", data), told.append)) == expected
    assert len(told) == 1


def test_a_cr_may_end_a_text(tmp_path):
    assert list(plain_text.read_lines(write(tmp_path / "a", "one line\r"))) == ["one line"]


def test_zstd_is_read_as_a_stream_and_damage_is_named(tmp_path):
    """Several frames, one behind the other, are one file to zstd."""
    text = os.urandom(300_000).hex()
    path = write(tmp_path / "a.zst", ZSTD(f"{text}\n".encode()) + ZSTD(b"end\n"))
    assert list(plain_text.read_lines(path)) == [text, "end"]
    whole = (tmp_path / "a.zst").read_bytes()
    for size in (3, 9, len(whole) // 2, len(whole) - 1):
        path = write(tmp_path / "cut.zst", whole[:size])
        with pytest.raises(UserError, match=r"cut\.zst: damaged or not zst \(.+\)\. Copy it again"):
            list(plain_text.read_lines(path))
    with pytest.raises(UserError, match=r"wrong\.zst: damaged or not zst"):
        list(plain_text.read_lines(write(tmp_path / "wrong.zst", b"plain text\n")))
    archive = packing.write_tar(tmp_path / "c.tar", {"in/a.en": f"{text}\n".encode()})
    path = write(tmp_path / "c.tar.zst", ZSTD((tmp_path / "c.tar").read_bytes()))
    assert archive != path and list(plain_text.read_lines(archives.Member(path, "in/a.en"))) == [text]


@pytest.mark.parametrize("read", READERS)
def test_files_without_text(tmp_path, read):
    for name, data in {"a": b"", "a.gz": gzip.compress(b"")}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match=rf"/{name}: the file is empty"):
            list(read(str(tmp_path / name)))
    with pytest.raises(UserError, match="none: no such file"):
        list(read(str(tmp_path / "none")))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.en.gz", b"no gzip\n", r"a\.en\.gz: damaged or not gz \("),
        ("a.en", gzip.compress(b"one\n" * 99)[:-3], r"a\.en: damaged \(it ends too early\)"),
    ],
)
def test_damaged_files(tmp_path, name, data, message):
    with pytest.raises(UserError, match=message):
        list(plain_text.read_lines(write(tmp_path / name, data)))


def test_a_line_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(plain_text, "LONGEST_LINE", 5)  # with its end
    assert list(plain_text.read_lines(write(tmp_path / "a", "abcd\nabcde"))) == ["abcd", "abcde"]
    with pytest.raises(UserError, match=r"/a, line 2: more than 5 bytes"):
        list(plain_text.read_lines(write(tmp_path / "a", "abcd\nabcde\n")))


def test_bad_lines_are_counted_and_a_few_are_shown(caplog):
    removed = collections.Counter()
    bad_lines = plain_text.BadLines(removed)
    for number in (1, 2, 2, 3, 4, 5, 6, 7):  # files are read more than once
        bad_lines(f"line {number}: bad.")
    assert removed == {plain_text.REASON: 8}
    assert caplog.messages == [*(f"line {number}: bad. Left out." for number in range(1, 6)),
                               "further skipped lines are only counted"]  # fmt: skip


def test_what_does_not_fit_into_a_field_becomes_a_space():
    assert plain_text.as_field("a\tb\nc\u2028d ") == "a b c d "
    assert [plain_text.kind(f"x/a.b{name}") for name in (".TSV", ".tmx.GZ", "")] == [".tsv", ".tmx", ".b"]
