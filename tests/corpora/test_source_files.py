"""Files of corpora, by each of their doors: a user's own and a published entry, plain and packed, and in archives."""
# Nearest tests of: t2t_lite/corpora/cells.py, t2t_lite/corpora/tables.py, t2t_lite/corpora/tmx.py
# Nearest tests of: t2t_lite/corpora/wmt_files.py

import bz2
import gzip
import json
import lzma
import zipfile

import pytest

from t2t_lite.corpora import source_files
from t2t_lite.corpora.tables import Layout
from t2t_lite.errors import UserError
from tests.data import packing

LANGUAGES = ("en", "de")
LAYOUT = Layout(("inputs", "targets"), header=False, languages=LANGUAGES)
PAIRS = [("one & a", "eins größe"), ("two; 2", "zwei, 2"), ("three", "<drei>")]
SIDES = tuple([*zip(*PAIRS, strict=True)])
JSON = [json.dumps(dict(zip(LANGUAGES, pair, strict=True)), ensure_ascii=False) for pair in PAIRS]


def xml_set():
    texts = "".join(
        f"<doc><{tag} lang='{language}'>"
        + "".join(f"<seg id='{at}'>{packing.escaped(text)}</seg>" for at, text in enumerate(side))
        + f"</{tag}>"
        for tag, language, side in zip(("src", "ref"), LANGUAGES, SIDES, strict=True)
    ).replace("<doc><ref", "<ref")
    return f"<dataset>{texts}</doc></dataset>".encode()


CORPORA = {  # the files of each kind of corpus
    "lines": {"a.en": packing.lines(SIDES[0]), "a.de": packing.lines(SIDES[1])},
    "sgm": {"a.en.sgm": packing.sgm(SIDES[0]), "a.de.sgm": packing.sgm(SIDES[1], side="ref")},
    "tmx": {"a.tmx": packing.tmx(*SIDES)},
    "xml": {"a.xml": xml_set()},
    "tsv": {"a.tsv": packing.lines("\t".join(pair) for pair in PAIRS)},
    "csv": {"a.csv": packing.lines('"{}","{}"'.format(*pair) for pair in PAIRS)},
    "jsonl": {"a.jsonl": packing.lines(JSON)},
    "ndjson": {"a.ndjson": packing.lines(JSON)},
}
PACKERS = {"": bytes, ".gz": gzip.compress, ".BZ2": bz2.compress, ".xz": lzma.compress}


def tuples(pairs):
    return [(pair["inputs"], pair["targets"]) for pair in pairs]


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("kind", CORPORA)
def test_a_user_s_corpus_of_each_kind(tmp_path, kind, packer):
    paths = []
    for name, data in CORPORA[kind].items():
        paths.append(str(tmp_path / f"{name}{packer}"))
        (tmp_path / f"{name}{packer}").write_bytes(PACKERS[packer](data))
    assert source_files.holds_both(paths[0]) == (len(paths) == 1)
    assert tuples(source_files.read_corpus(paths, LAYOUT, LANGUAGES)) == PAIRS


@pytest.mark.parametrize("ending", [".zip", ".tgz", ".tar.xz"])
@pytest.mark.parametrize("kind", ["lines", "tmx"])
def test_a_user_s_archive(tmp_path, kind, ending):
    write = packing.write_zip if ending == ".zip" else packing.write_tar
    path = write(tmp_path / f"c{ending}", {"README": b"text", **CORPORA[kind], "a.ids": b"7\n"})
    assert source_files.holds_both(path)
    assert tuples(source_files.read_corpus([path], LAYOUT, LANGUAGES)) == PAIRS
    assert tuples(source_files.read_corpus([path], LAYOUT, LANGUAGES[::-1])) == [pair[::-1] for pair in PAIRS]


@pytest.mark.parametrize("place", ["", "http://h/b.zip", "http://h/b.tar.gz"])
@pytest.mark.parametrize("kind", ["lines", "sgm", "tmx", "tsv"])
def test_a_published_entry(tmp_path, kind, place):
    members = tuple(f"in/{name}" for name in CORPORA[kind])
    data = dict(zip(members, CORPORA[kind].values(), strict=True))
    if place:
        other = {f"out/{name}": b"no\tnein\tno\n" for name in CORPORA[kind]}
        write = packing.write_zip if place.endswith(".zip") else packing.write_tar
        write(tmp_path / place.rpartition("/")[2], {**other, **data})
    else:
        (tmp_path / "in").mkdir()
        for name, content in data.items():
            (tmp_path / name).write_bytes(content)
    entry = {"tsv": ("tsv", 0, 1, "in/*.tsv"), "tmx": ("tmx", *members)}.get(kind, members)
    assert tuples(source_files.read_members(str(tmp_path), entry, place, LANGUAGES)) == PAIRS
    if kind == "tsv":
        assert tuples(source_files.read_members(str(tmp_path), ("tsv", 1, 0, entry[3]), place))[0] == PAIRS[0][::-1]


@pytest.mark.parametrize("kind", ["lines", "sgm", "tmx", "tsv", "csv", "jsonl"])
def test_bad_lines_are_told_through_each_door(tmp_path, kind):
    damaged = {name: data.replace("größe".encode(), b"gr\xf6\xdfe") for name, data in CORPORA[kind].items()}
    for name, data in damaged.items():
        (tmp_path / name).write_bytes(data)
    paths, entry = [str(tmp_path / name) for name in damaged], {"tsv": ("tsv", 0, 1), "tmx": ("tmx",)}.get(kind, ())
    doors = [lambda told: source_files.read_corpus(paths, LAYOUT, LANGUAGES, None, told)]
    if kind not in ("csv", "jsonl"):
        members = (*entry, *damaged)
        doors.append(lambda told: source_files.read_members(str(tmp_path), members, "", LANGUAGES, None, told))
    for door in doors:
        told = []
        assert tuples(door(told.append)) == PAIRS[1:]
        assert len(told) == 1 and "UTF-8" in told[0] and str(tmp_path) in told[0]
        with pytest.raises(UserError, match="UTF-8"):
            list(door(None))


def test_unpacked_files_come_before_the_archive_if_all_are_there(tmp_path):
    packing.write_tar(tmp_path / "corpus.tgz", {"in/x.en": b"packed\n", "in/x.de": b"gepackt\n"})
    (tmp_path / "in").mkdir()
    for name, expected in ((None, "packed"), ("x.en", "packed"), ("x.de", "unpacked")):
        if name:
            (tmp_path / "in" / name).write_text("unpacked\n")
        found = tuples(source_files.read_members(str(tmp_path), ("in/x.en", "in/x.de"), "corpus.tgz"))
        assert found[0][0] == expected


@pytest.mark.parametrize("ending", (".tar", ".zip"))
def test_columns_of_all_members_that_match(tmp_path, ending):
    def rows(first):
        return gzip.compress(packing.lines(f"id\t0.9\tcs {i}\ten {i}" for i in range(first, first + 10)))

    write = packing.write_zip if ending == ".zip" else packing.write_tar
    write(tmp_path / f"c{ending}", {"d/00train.gz": rows(0), "d/00dtest.gz": rows(90), "d/01train.gz": rows(10)})
    url = f"http://h/c{ending}"
    pairs = source_files.read_members(str(tmp_path), ("tsv", 3, 2, "d/*train.gz"), url)
    assert tuples(pairs) == [(f"en {i}", f"cs {i}") for i in range(20)]
    texts = source_files.find_texts(str(tmp_path), "d/0?dtest.gz", url)
    assert [str(source) for source in texts] == [f"{tmp_path}/c{ending}, member d/00dtest.gz"]
    with pytest.raises(UserError, match=rf"c{ending}: no member d/\*trian\.gz\. Nearest: d/01train\.gz.*from {url}"):
        list(source_files.read_members(str(tmp_path), ("tsv", 3, 2, "d/*trian.gz"), url))
    (tmp_path / "d").mkdir()
    for name in ("b.txt", "a.txt", "a.csv"):
        (tmp_path / "d" / name).write_text("x\n")
    assert source_files.find_texts(str(tmp_path), "d/*.txt", url) == [f"{tmp_path}/d/{name}.txt" for name in "ab"]


@pytest.mark.parametrize(
    ("members", "url", "message"),
    [
        (("a.en", "a.de"), "http://x/y.tgz", r"/y\.tgz: no such file\. Download it from http://x/y\.tgz\."),
        (("a.en", "a.de"), "y.zip", r"/y\.zip: no such file\. Put it there\."),
        (("a.en", "a.de"), "", r"/a\.de: no such file\. Put it there\."),
        (("tmx", "a.tmx"), "http://x/y.html", r"/a\.tmx: no such file\. Download it from http://x/y\.html\."),
        (("tsv", 0, 1, "*.tsv"), "", r"/\*\.tsv: no such file"),
    ],
)
def test_missing_files_are_named_with_where_they_come_from(tmp_path, members, url, message):
    (tmp_path / "a.en").write_text("x\n")
    with pytest.raises(UserError, match=message):
        list(source_files.read_members(str(tmp_path), members, url))


@pytest.mark.parametrize("members", [["a.en"], ("a.en", "a.de", "b.de")])
def test_an_entry_of_plain_text_has_two_files(tmp_path, members):
    """In tensor2tensor, an entry for the vocabulary may have others."""
    with pytest.raises(
        UserError, match=rf"^{', '.join(members)}: found {len(members)} files?\. .*\(inputs, targets\)\."
    ):
        [*source_files.read_members(str(tmp_path), members)]


def test_archives_are_named_by_the_last_part_of_their_address():
    names = {
        "http://h/a/dev.tgz": "dev.tgz",
        "http://opus.example/download.php?f=SETIMES/v2/moses/en-ro.txt.zip": "en-ro.txt.zip",
        "https://h/blob/c.tar.gz?raw=true": "c.tar.gz",
        "https://h/a/dev.tgz?sig=a/b": "dev.tgz",
        "https://h/a/dev.tsv?sig=a/b&x=c/d#e/f": "dev.tsv",
        "https://h/a/?sig=a/b": "a",
        "https://h": "h",
        "mine.tgz": "mine.tgz",
        "in/mine.tgz?x=1": "mine.tgz",
        "": "",
    }
    assert {url: source_files.archive_name(url) for url in names} == names


# Archives of two languages, as OPUS publishes them.

INSIDE = {"README": b"text", "C.de-en.de": b"eins\nzwei\n", "C.de-en.en": b"one\ntwo\n", "C.de-en.xml": b"<x/>"}
IN_INSIDE = [("one", "eins"), ("two", "zwei")]
MEMORY = packing.tmx(["one", "two"], ["eins", "zwei"])


def of_a_mac(members):
    """A Mac's zip has a file of attributes for each other one."""
    return {**members, **{f"__MACOSX/._{name}": b"\0\5\x16\7\0\2\0\0Mac OS X" for name in members}}


@pytest.mark.parametrize(
    ("members", "languages", "expected"),
    [
        (INSIDE, LANGUAGES, IN_INSIDE),
        (INSIDE, LANGUAGES[::-1], [pair[::-1] for pair in IN_INSIDE]),
        ({f"in/{name}.gz": gzip.compress(text) for name, text in INSIDE.items()}, LANGUAGES, IN_INSIDE),
        ({"a.en": b"one\n", "a.pt_br": b"um\n", "a.pt": b"no\n"}, ("en", "pt-BR"), [("one", "um")]),
        ({"LICENSE": b"", "a/x.tmx": MEMORY}, LANGUAGES, IN_INSIDE),
        ({**INSIDE, "x.tmx": b"", "D.en": b""}, LANGUAGES, IN_INSIDE),
        (of_a_mac(INSIDE), LANGUAGES, IN_INSIDE),
        (of_a_mac({"x.tmx": MEMORY}), LANGUAGES, IN_INSIDE),
    ],
)
def test_what_an_archive_of_two_languages_has(tmp_path, members, languages, expected):
    path = packing.write_zip(tmp_path / "c.zip", members)
    assert tuples(source_files.read_packed_pairs(path, languages)) == expected


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.en": b"one\n"}, r"c\.zip: found 0 pairs of files that end in \.en and \.de, and 0 \.tmx, among a\.en\. "),
        ({"a.en": b"one\n", "b.de": b"eins\n"}, "0 pairs .* among a.en, b.de"),
        ({**INSIDE, "D.en": b"", "D.de": b""}, "found 2 pairs of files .* among README, .*D.en and 1 more"),
        ({"a.tmx": b"", "b.tmx": b""}, "and 2 .tmx, among a.tmx, b.tmx"),
        ({"a.en": b"one\n", "a.de": b"eins\nzwei\n"}, r"member a\.de has 2 lines, .*member a\.en has 1"),
        ({"a.en": b"one\n", "a.de": b"gr\xf6\n"}, r"c\.zip, member a\.de, line 1: byte 0xf6"),
        ({}, "among no file"),
    ],
)
def test_archives_without_one_corpus(tmp_path, members, message):
    path = packing.write_zip(tmp_path / "c.zip", members)
    with pytest.raises(UserError, match=message):
        list(source_files.read_packed_pairs(path, LANGUAGES))


def test_what_is_left_out_of_an_archive_is_told(tmp_path):
    told, path = [], tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("x.tmx", MEMORY.replace(b"eins", b"\xff"))
    assert tuples(source_files.read_packed_pairs(str(path), LANGUAGES, None, told.append)) == IN_INSIDE[1:]
    assert len(told) == 1
    path.write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(UserError, match=r"c\.zip: damaged or truncated"):
        list(source_files.read_packed_pairs(str(path), LANGUAGES))
