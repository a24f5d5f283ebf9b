"""Archives with a corpus of two languages, as OPUS publishes them."""

import gzip

import pytest

from t2t_lite.corpora import source_files
from t2t_lite.errors import UserError
from tests.data import packing

INSIDE = {"README": b"text", "C.de-en.de": b"eins\nzwei\n", "C.de-en.en": b"one\ntwo\n", "C.de-en.xml": b"<x/>"}
PAIRS = [{"inputs": "one", "targets": "eins"}, {"inputs": "two", "targets": "zwei"}]


def read(folder, members, languages=("en", "de"), **options):
    packing.write_zip(folder / "c.zip", members)
    return list(source_files.read_packed_pairs(str(folder / "c.zip"), languages, **options))


def test_the_files_of_the_two_languages_are_read_in_either_direction(tmp_path):
    assert read(tmp_path, INSIDE) == PAIRS
    turned = [{"inputs": pair["targets"], "targets": pair["inputs"]} for pair in PAIRS]
    assert read(tmp_path, INSIDE, ("de", "en")) == turned
    packed = {f"in/{name}.gz": gzip.compress(text) for name, text in INSIDE.items()}
    assert read(tmp_path, packed) == PAIRS
    found = read(tmp_path, {"a.en": b"one\n", "a.pt_br": b"um\n"}, ("en", "pt-BR"))
    assert found == [{"inputs": "one", "targets": "um"}]


def test_a_translation_memory_is_read(tmp_path):
    assert read(tmp_path, {"LICENSE": b"", "a/x.tmx": packing.tmx(["one", "two"], ["eins", "zwei"])}) == PAIRS


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.en": b"one\n"}, r"c\.zip: found 0 pairs of files that end in \.en and \.de, and 0 \.tmx, among a\.en\. "),
        ({"a.en": b"one\n", "b.de": b"eins\n"}, "0 pairs .* among a.en, b.de. Expected one of them. Unpack it"),
        ({**INSIDE, "D.en": b"", "D.de": b""}, "found 2 pairs of files .* among README, .* and 1 more"),
        ({"a.tmx": b"", "b.tmx": b""}, "and 2 .tmx, among a.tmx, b.tmx"),
        ({"a.en": b"one\n", "a.de": b"eins\nzwei\n"}, r"member a\.de has 2 lines, .*member a\.en has 1"),
        ({"a.en": b"one\n", "a.de": b"gr\xf6\n"}, r"c\.zip, member a\.de, line 1: byte 0xf6"),
        ({}, "among no file"),
    ],
)
def test_archives_without_one_corpus(tmp_path, members, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, members)


def test_what_is_no_archive(tmp_path):
    (tmp_path / "c.zip").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(UserError, match=r"c\.zip: damaged or truncated"):
        list(source_files.read_packed_pairs(str(tmp_path / "c.zip"), ("en", "de")))
