"""Members of archives: each kind of archive reads alike, and says what is wrong with it."""

import bz2
import functools
import gzip
import io
import lzma
import os
import stat
import tarfile
import tracemalloc
import zipfile

import pyarrow
import pytest

from t2t_lite.corpora import archives, plain_text, source_files
from t2t_lite.errors import UserError

ZSTD = functools.partial(pyarrow.compress, codec="zstd", asbytes=True)
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": ZSTD}
KINDS = {
    ".tar": bytes, ".tgz": gzip.compress, ".tar.gz": gzip.compress, ".tar.bz2": bz2.compress, ".tbz2": bz2.compress,
    ".tar.xz": lzma.compress, ".tar.zst": ZSTD, ".zip": None,
}  # fmt: skip
TEXT = [f"line {number} größe" for number in range(2000)]
DATA = "".join(f"{line}\n" for line in TEXT).encode()
FOLDER, LINK = None, b"/etc/passwd"


def pack(folder, ending, members):
    """Writes an archive of {name: bytes, or `FOLDER`, or `LINK`}; returns its path."""
    path, out = folder / f"corpus{ending}", io.BytesIO()
    if ending.lower() == ".zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in members.items():
                entry = zipfile.ZipInfo(name if data is not FOLDER else f"{name}/")
                entry.external_attr = (stat.S_IFLNK if data is LINK else stat.S_IFREG) << 16
                packed.writestr(entry, data or b"", zipfile.ZIP_DEFLATED)
    else:
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.type = tarfile.DIRTYPE if data is FOLDER else tarfile.SYMTYPE if data is LINK else tarfile.REGTYPE
                entry.linkname, entry.size = ("/etc/passwd", 0) if data is LINK else ("", len(data or b""))
                tar.addfile(entry, io.BytesIO(data or b""))
    path.write_bytes((KINDS[ending.lower()] or bytes)(out.getvalue()))
    return str(path)


def read(archive, name, url=""):
    return list(plain_text.read_lines(archives.Member(archive, name, url)))


@pytest.mark.parametrize("ending", [*KINDS, ".ZIP", ".TAR.GZ"])
def test_members_are_read_from_every_kind_of_archive(tmp_path, ending):
    packed = {f"b{end}": compress(DATA[:5000]) + compress(DATA[5000:]) for end, compress in PACK.items()}
    members = {"in": FOLDER, "other": b"no\n" * 5000, "./in/a.en": DATA, "a.en": b"at the top\n", **packed, "c": LINK}
    archive = pack(tmp_path, ending, members)
    assert archives.is_archive(archive) and not archives.is_archive(f"{archive}.en")
    assert read(archive, "in/a.en") == read(archive, "./in/../in/a.en") == TEXT
    assert read(archive, "a.en") == ["at the top"]
    for name in packed:  # two streams, one behind the other, are one file
        assert read(archive, name) == TEXT
    assert archives.member_names(archive) == [name for name, data in members.items() if data not in (FOLDER, LINK)]
    assert [str(one) for one in archives.matching_members(archive, "*.en", "")] == [
        f"{archive}, member {name}" for name in ("./in/a.en", "a.en")
    ]
    assert os.listdir(tmp_path) == [f"corpus{ending}"]


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("padding", [0, 512, 2**18 - 200, 2**18, 2**19])
def test_packed_streams_may_have_padding_between_and_behind_them(ending, padding):
    packed = b"".join(PACK[ending](text) + bytes(padding) for text in (b"a\n" * 10, b"b\n" * 10))
    assert archives.unpacked(io.BytesIO(packed), ending).read() == b"a\n" * 10 + b"b\n" * 10
    with pytest.raises(EOFError, match="it ends too early"):
        archives.unpacked(io.BytesIO(packed.rstrip(b"\0")[:-1]), ending).read()


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_a_small_file_that_holds_much_takes_little_memory(ending):
    packed = PACK[ending](bytes(2**26))
    tracemalloc.start()
    try:
        file = archives.unpacked(io.BytesIO(packed), ending)
        assert sum(map(len, iter(lambda: file.read(2**20), b""))) == 2**26
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_two_sides_are_read_side_by_side_in_any_order(tmp_path):
    sides = {f"x.{code}": "".join(f"{code} {i}\n" for i in range(50_000)).encode() for code in ("de", "en")}
    for members in (sides, dict(reversed(sides.items()))):
        pack(tmp_path, ".tgz", members)
        pairs = list(source_files.read_members(str(tmp_path), ("x.en", "x.de"), "http://h/corpus.tgz"))
        assert pairs == [{"inputs": f"en {i}", "targets": f"de {i}"} for i in range(50_000)]


@pytest.mark.few("0.4", "0.0-.tar.gz", "0.9-.zip")
@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("share", (0.0, 0.4, 0.9))
def test_archives_that_are_cut_short(tmp_path, ending, share):
    noise = os.urandom(200_000).hex().encode() + b"\n"  # what packs badly, so that the cut is in the member
    archive = pack(tmp_path, ending, {"first.en": noise, "a.en": noise})
    os.truncate(archive, int(os.path.getsize(archive) * share))
    with pytest.raises(UserError, match=r"corpus.*: damaged or truncated \(.+\)\. .* again from http://h/x\.$"):
        read(archive, "a.en", "http://h/x")


@pytest.mark.parametrize("ending", [".tar", ".tgz", ".zip"])
@pytest.mark.parametrize(
    ("members", "name", "words"),
    [
        *(
            ({outside: b"root\n", "a.en": b"x\n"}, "a.en", rf"corpus\.\w+: its member {outside} points outside")
            for outside in ("../../etc/passwd", "/etc/passwd", "in/../../x", "..")
        ),
        ({"b.en": FOLDER}, "b.en", r"member b\.en/?: is a folder or a link"),
        ({"b.en": LINK}, "b.en", r"member b\.en: is a folder or a link"),
        ({"a.en.gz": gzip.compress(DATA)[:-20]}, "a.en.gz", r"member a\.en\.gz: damaged or truncated \(it ends too e"),
        ({"a.en.gz": b"no gzip\n"}, "a.en.gz", r"member a\.en\.gz: damaged or truncated"),
        ({"a.en": b"good\ngr\xf6\xdfe\n"}, "a.en", r"member a\.en, line 2: byte 0xf6 at position 2 is not UTF-8"),
        ({"a.en": b""}, "a.en", r"member a\.en: the file is empty"),
        ({"t/x.de-en.en": b"x", "t/x.de-en.de": b"x"}, "x.de-en.en", "no member x.de-en.en. Nearest: t/x.de-en.en"),
        ({"t/x.en": b"x\n", "t/x.de": b"x\n"}, "zzz", r"no member zzz\. .* 2 files, first t/x\.en\."),
        ({"t": FOLDER}, "zzz", r"no member zzz\. .* 0 files\."),
    ],
)  # fmt: skip
def test_members_that_cannot_be_read(tmp_path, ending, members, name, words):
    archive = pack(tmp_path, ending, members)
    with pytest.raises(UserError, match=words) as error:
        read(archive, name, "http://h/c.tgz")
    assert str(error.value).startswith(archive)
    if "0xf6" not in words and "empty" not in words:
        assert str(error.value).endswith("Delete the archive and download it again from http://h/c.tgz.")
        with pytest.raises(UserError, match=r"Delete the archive and download it again\.$"):
            read(archive, name)


def test_archives_that_are_none(tmp_path):
    archive = pack(tmp_path, ".tar", {"b.en": b"x" * 512, "a.en": b"x\n"})
    os.truncate(archive, 1024)  # between two members
    with pytest.raises(UserError, match="truncated"):
        read(archive, "a.en")
    (tmp_path / "corpus.tgz").write_bytes(b"<html>404</html>")
    with pytest.raises(UserError, match=r"corpus.tgz.*damaged or truncated"):
        archives.member_names(str(tmp_path / "corpus.tgz"))
    data = bytearray((tmp_path / pack(tmp_path, ".zip", {"a.en": b"text\n"})).read_bytes())
    data[6] |= 1  # the bit that says: encrypted; in the member's head and in the index
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(data)
    with pytest.raises(UserError, match=r"locked.zip.*damaged or truncated \(.*password"):
        read(str(tmp_path / "locked.zip"), "a.en")
    with pytest.raises(UserError, match=r"none\.zip: no such file"):
        read(str(tmp_path / "none.zip"), "a.en")


@pytest.mark.slow
def test_a_member_may_be_left_in_the_middle(tmp_path):
    archive = pack(tmp_path, ".tgz", {"a.en": os.urandom(3_000_000).hex().encode().replace(b"0", b"\n")})
    pairs = source_files.read_members(str(tmp_path), ("a.en", "a.en"), "corpus.tgz")
    next(pairs)
    pairs.close()
    assert len(read(archive, "a.en")) > 1000
