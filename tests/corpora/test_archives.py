import bz2
import gzip
import io
import lzma
import os
import tarfile
import tracemalloc
import zipfile

import pytest

from t2t_lite.corpora import archives, plain_text, source_files
from t2t_lite.errors import UserError
from tests.data import packing

ENDINGS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip")
TEXT = [f"line {number} größe" for number in range(2000)]


def pack(folder, ending, members):
    path = folder / f"corpus{ending}"
    return (packing.write_zip if ending == ".zip" else packing.write_tar)(path, members)


def read(archive, name, url=""):
    return list(plain_text.read_lines(archives.Member(archive, name, url)))


@pytest.mark.parametrize("ending", ENDINGS)
def test_members_are_read_from_every_kind_of_archive(tmp_path, ending):
    members = {"other.en": b"no\n" * 5000, "./in/a.en": packing.lines(TEXT), "a.en": b"at the top\n"}
    archive = pack(tmp_path, ending, members)
    assert read(archive, "in/a.en") == TEXT
    assert read(archive, "a.en") == ["at the top"]
    assert os.listdir(tmp_path) == [f"corpus{ending}"]


@pytest.mark.parametrize("ending", (".tar", ".tgz", ".zip"))
def test_packed_members_are_unpacked(tmp_path, ending):
    data = packing.lines(TEXT)
    # Two streams, one behind the other, are one file to gzip.
    archive = pack(tmp_path, ending, {"giga.en.gz": gzip.compress(data[:5000]) + gzip.compress(data[5000:])})
    assert read(archive, "giga.en.gz") == TEXT


@pytest.mark.parametrize("module", [gzip, bz2, lzma], ids=lambda module: module.__name__)
@pytest.mark.parametrize("padding", [0, 512, 2**18 - 200, 2**18, 2**19])
def test_packed_streams_may_have_padding_between_and_behind_them(module, padding):
    packed = b"".join(module.compress(text) + bytes(padding) for text in (b"a\n" * 10, b"b\n" * 10))
    ending = {gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[module]
    assert archives.unpacked(io.BytesIO(packed), ending).read() == b"a\n" * 10 + b"b\n" * 10
    assert module is not gzip or gzip.decompress(packed) == b"a\n" * 10 + b"b\n" * 10
    with pytest.raises(EOFError, match="it ends too early"):
        archives.unpacked(io.BytesIO(packed.rstrip(b"\0")[:-1]), ending).read()


@pytest.mark.slow
@pytest.mark.parametrize("module, ending", [(gzip, ".gz"), (bz2, ".bz2"), (lzma, ".xz")])
def test_a_small_file_that_holds_much_takes_little_memory(module, ending):
    packed = module.compress(bytes(2**26))
    tracemalloc.start()
    try:
        file = archives.unpacked(io.BytesIO(packed), ending)
        assert sum(map(len, iter(lambda: file.read(2**20), b""))) == 2**26
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_two_sides_are_read_side_by_side_in_any_order(tmp_path):
    sides = {
        "x.de": packing.lines(f"de {i}" for i in range(50_000)),
        "x.en": packing.lines(f"en {i}" for i in range(50_000)),
    }
    for members in (sides, dict(reversed(sides.items()))):
        pack(tmp_path, ".tgz", members)
        pairs = list(source_files.read_members(str(tmp_path), ("x.en", "x.de"), "http://h/corpus.tgz"))
        assert pairs == [{"inputs": f"en {i}", "targets": f"de {i}"} for i in range(50_000)]


def test_unpacked_files_come_before_the_archive(tmp_path):
    pack(tmp_path, ".tgz", {"in/x.en": b"packed\n", "in/x.de": b"gepackt\n"})
    members = ("in/x.en", "in/x.de")
    assert next(source_files.read_members(str(tmp_path), members, "corpus.tgz"))["inputs"] == "packed"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.en").write_text("unpacked\n")
    assert next(source_files.read_members(str(tmp_path), members, "corpus.tgz"))["inputs"] == "packed"
    (tmp_path / "in" / "x.de").write_text("ausgepackt\n")
    assert next(source_files.read_members(str(tmp_path), members, "corpus.tgz"))["inputs"] == "unpacked"


@pytest.mark.parametrize("ending", (".tar", ".zip"))
def test_columns_of_all_members_that_match(tmp_path, ending):
    def rows(first):
        return gzip.compress(packing.lines(f"id\t0.9\tcs {i}\ten {i}" for i in range(first, first + 10)))

    names = {"d/00train.gz": rows(0), "d/00dtest.gz": rows(90), "d/01train.gz": rows(10)}
    pack(tmp_path, ending, names)
    members = ("tsv", 3, 2, "d/*train.gz")
    pairs = list(source_files.read_members(str(tmp_path), members, f"http://h/corpus{ending}"))
    assert pairs == [{"inputs": f"en {i}", "targets": f"cs {i}"} for i in range(20)]
    with pytest.raises(UserError, match=r"corpus\.(tar|zip): no member d/\*trian.gz. Nearest: d/01train.gz"):
        list(source_files.read_members(str(tmp_path), ("tsv", 3, 2, "d/*trian.gz"), f"http://h/corpus{ending}"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_member_is_answered_with_the_nearest(tmp_path, ending):
    archive = pack(tmp_path, ending, {"training/europarl-v7.de-en.en": b"x\n", "training/europarl-v7.de-en.de": b"x\n"})
    with pytest.raises(UserError, match=r"no member europarl-v7.de-en.en. Nearest: training/europarl-v7.de-en.en") as e:
        read(archive, "europarl-v7.de-en.en", "http://h/c.tgz")
    assert str(e.value).startswith(archive)
    assert str(e.value).endswith("Delete the archive and download it again from http://h/c.tgz.")
    with pytest.raises(UserError, match=r"no member zzz. It holds 2 files, first training/europarl-v7.de-en.en"):
        read(archive, "zzz")


@pytest.mark.few("0.4", "0.0-.tar.gz", "0.9-.zip")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("share", (0.0, 0.4, 0.9))
def test_archives_that_are_cut_short(tmp_path, ending, share):
    noise = os.urandom(200_000).hex().encode() + b"\n"  # what packs badly, so that the cut is in the member
    archive = pack(tmp_path, ending, {"first.en": noise, "a.en": noise})
    with open(archive, "r+b") as file:
        file.truncate(int(os.path.getsize(archive) * share))
    with pytest.raises(
        UserError,
        match=r"corpus.*: damaged or truncated \(.+\). Delete the archive and download it again from http://h/x",
    ):
        read(archive, "a.en", "http://h/x")


OUTSIDE = ("../../etc/passwd", "/etc/passwd", "in/../../x")


@pytest.mark.parametrize(
    ("ending", "members", "name", "words"),
    [
        *(
            (ending, {outside: b"root\n", "a.en": b"x\n"}, "a.en",
             "its member .* points outside of the archive. Expected names inside it; nothing")
            for outside in OUTSIDE for ending in (".tgz", ".zip")
        ),
        (".tgz", {"b.en": None}, "b.en", "member b.en: is a folder or a link. Expected a file"),
        (".tar", {"a.en.gz": gzip.compress(packing.lines(TEXT))[:-20]}, "a.en.gz",
         r"corpus.tar, member a.en.gz: damaged or truncated \(it ends too early\)"),
        (".tar", {"a.en.gz": b"no gzip\n"}, "a.en.gz", "member a.en.gz: damaged or truncated"),
    ],
)  # fmt: skip
def test_members_that_cannot_be_read(tmp_path, ending, members, name, words):
    with pytest.raises(UserError, match=words):
        read(pack(tmp_path, ending, members), name)


def test_archives_that_are_none(tmp_path):
    archive = pack(tmp_path, ".tar", {"b.en": b"x" * 512, "a.en": b"x\n"})
    with open(archive, "r+b") as file:
        file.truncate(1024)  # between two members
    with pytest.raises(UserError, match="truncated"):
        read(archive, "a.en")
    with tarfile.open(tmp_path / "corpus.tgz", "w:gz") as tar:
        link = tarfile.TarInfo("a.en")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(UserError, match=r"member a.en: is a folder or a link. Expected a file"):
        read(str(tmp_path / "corpus.tgz"), "a.en")
    (tmp_path / "corpus.tgz").write_bytes(b"<html>404</html>")
    with pytest.raises(UserError, match=r"corpus.tgz.*damaged or truncated"):
        read(str(tmp_path / "corpus.tgz"), "a.en")
    locked = io.BytesIO()
    with zipfile.ZipFile(locked, "w") as packed:
        packed.writestr("a.en", b"text\n")
    data = bytearray(locked.getvalue())
    data[6] |= 1  # the bit that says: encrypted; in the member's head and in the index
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(data)
    with pytest.raises(UserError, match=r"locked.zip.*damaged or truncated \(.*password"):
        read(str(tmp_path / "locked.zip"), "a.en")


def test_bad_text_is_named_with_archive_member_and_line(tmp_path):
    archive = pack(tmp_path, ".tgz", {"in/a.en": b"good\ngr\xf6\xdfe\n", "in/a.de": b"gut\ngut\ngut\n", "empty": b""})
    with pytest.raises(UserError, match=r"corpus.tgz, member in/a.en, line 2: byte 0xf6 at position 2 is not UTF-8"):
        read(archive, "in/a.en")
    with pytest.raises(UserError, match=r"corpus.tgz, member empty: the file is empty"):
        read(archive, "empty")
    pack(tmp_path, ".tgz", {"in/a.en": b"good\nbetter\n", "in/a.de": b"gut\n" * 5})
    with pytest.raises(
        UserError, match=r"corpus.tgz, member in/a.de has 5 lines, .*member in/a.en has 2. Expected equally"
    ):
        list(source_files.read_members(str(tmp_path), ("in/a.en", "in/a.de"), "corpus.tgz"))


@pytest.mark.slow
def test_a_member_may_be_left_in_the_middle(tmp_path):
    archive = pack(tmp_path, ".tgz", {"a.en": os.urandom(3_000_000).hex().encode().replace(b"0", b"\n")})
    pairs = source_files.read_members(str(tmp_path), ("a.en", "a.en"), "corpus.tgz")
    next(pairs)
    pairs.close()
    assert len(read(archive, "a.en")) > 1000
