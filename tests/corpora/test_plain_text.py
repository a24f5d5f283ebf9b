import bz2
import gzip
import lzma

import pytest

from t2t_lite.corpora import plain_text, source_files
from t2t_lite.errors import UserError

PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


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


@pytest.mark.parametrize("place", [3, 70_000, 2**16 - 1, 2**16])
def test_the_place_of_a_wrong_byte_is_counted_from_its_lines_begin(tmp_path, place):
    (tmp_path / "a").write_bytes(b"first\n" + b"x" * (place - 3) + "ü".encode() + b"x\xffy\n")
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


def test_columns_go_together(tmp_path):
    path = write(tmp_path / "a.tsv", "one\teins\n\ntwo\t\n")
    expected = [{"inputs": "one", "targets": "eins"}, {"inputs": "two", "targets": ""}]
    assert list(plain_text.read_corpus([path])) == expected
    write(tmp_path / "wide.tsv", "7\teins\tone\n")
    members = ("tsv", 2, 1, "wide.tsv")
    assert list(source_files.read_members(str(tmp_path), members)) == [{"inputs": "one", "targets": "eins"}]


@pytest.mark.parametrize(
    ("en", "de", "found"), [(5, 3, "a.en has 5 lines, .*a.de has 3"), (2, 9, "a.de has 9 .*a.en has 2")]
)
def test_unequal_files_are_refused_with_both_counts(tmp_path, en, de, found):
    paths = write(tmp_path / "a.en", "x\n" * en), write(tmp_path / "a.de", "x\n" * de)
    with pytest.raises(UserError, match=found):
        list(plain_text.read_pairs(*paths))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty", b"", "empty: the file is empty. Expected one sentence per line"),
        # mtime: processes that share the tests have to name them alike
        ("empty.gz", gzip.compress(b"", mtime=0), "empty.gz: the file is empty"),
        ("latin1", "gut\ngröße\n".encode("latin1"), "latin1, line 2: byte 0xf6 at position 2 is not UTF-8"),
        ("nul.gz", b"\x00" * 30, "nul.gz: damaged or not gz"),
        ("text.bz2", b"text\n", "text.bz2: damaged or not bz2"),
        ("text.xz", b"text\n", "text.xz: damaged or not xz"),
        ("cut.gz", gzip.compress(b"line\n" * 9999, mtime=0)[:-30], "cut.gz: damaged or not gz"),
        ("cut.bz2", bz2.compress(b"line\n" * 9999)[:-30], "cut.bz2: damaged or not bz2"),
        ("cut.xz", lzma.compress(b"line\n" * 9999)[:-30], "cut.xz: damaged or not xz"),
    ],
)
def test_bad_files_are_named(tmp_path, name, data, message):
    with pytest.raises(UserError, match=message):
        list(plain_text.read_lines(write(tmp_path / name, data)))


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(UserError, match="none: no such file"):
        list(plain_text.read_lines(str(tmp_path / "none")))
    with pytest.raises(UserError, match="is a folder"):
        list(plain_text.read_lines(str(tmp_path)))
    with pytest.raises(UserError, match=r"y.tgz: no such file. Download it from http://x/y.tgz"):
        list(source_files.read_members(str(tmp_path), ("none.en", "none.de"), "http://x/y.tgz"))


@pytest.mark.parametrize(("line", "found"), [("one", "1 column. Expected 2"), ("a\tb\tc", "3 columns. Expected 2")])
def test_lines_with_other_columns_are_named(tmp_path, line, found):
    with pytest.raises(UserError, match=f"a.tsv, line 2: {found}"):
        list(plain_text.read_tsv(write(tmp_path / "a.tsv", f"one\teins\n{line}\n")))
