import gzip

import pytest

from t2t_lite.corpora import source_files, tmx
from t2t_lite.errors import UserError
from tests.data import packing

PAIRS = [("one & two", "eins <und> zwei"), ("", "leer"), ("three", "drei größe")]


def test_units_become_pairs(tmp_path):
    data = packing.tmx(*zip(*PAIRS, strict=True))
    (tmp_path / "a.tmx").write_bytes(data)
    (tmp_path / "b.tmx.gz").write_bytes(gzip.compress(data))
    packing.write_zip(tmp_path / "c.zip", {"in/c.tmx": data})
    for url, name in (("", "a.tmx"), ("http://h/b.tmx.gz", "b.tmx.gz"), ("http://h/c.zip", "in/c.tmx")):
        pairs = source_files.read_members(str(tmp_path), ("tmx", name), url)
        assert [tuple(pair.values()) for pair in pairs] == PAIRS


def test_several_units_on_a_line_and_a_unit_over_several(tmp_path):
    line = "<tu><tuv><seg>a</seg></tuv><tuv><seg>b</seg></tuv></tu><tu><seg>c\nd</seg>\n\n<seg>e</seg></tu>"
    (tmp_path / "a.tmx").write_text(line)
    pairs = [tuple(pair.values()) for pair in tmx.read_pairs(str(tmp_path / "a.tmx"))]
    assert pairs == [("a", "b"), ("c d", "e")]


@pytest.mark.parametrize("segments", ["<seg>a</seg>", "<seg>a</seg><seg>b</seg><seg>c</seg>"])
@pytest.mark.parametrize("place", [0, 1])
def test_units_that_are_no_pairs_are_named(tmp_path, segments, place):
    units = ["<tu><seg>a</seg>\n<seg>b</seg></tu>\n", "<tu><seg>c</seg>\n<seg>d</seg></tu>\n"]
    units[place] = f"<tu>{segments}</tu>\n"
    (tmp_path / "a.tmx").write_text("".join(units))
    count = segments.count("<seg>")
    with pytest.raises(UserError, match=rf"a.tmx: unit number {place + 1} has {count} segments?. Expected 2"):
        list(tmx.read_pairs(str(tmp_path / "a.tmx")))
