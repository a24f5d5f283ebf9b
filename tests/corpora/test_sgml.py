import time

import pytest

from t2t_lite.corpora import source_files, wmt_files
from t2t_lite.errors import UserError
from tests.data import packing

TEXTS = ["Plain.", 'R&D "costs" < 3 > 2', "größe", "", "AT&amp;T stays escaped once", "end"]


def write(folder, name, data):
    (folder / name).write_bytes(data)
    return str(folder / name)


def test_segments_come_in_order_with_their_entities_decoded(tmp_path):
    found = list(wmt_files.read_segments(write(tmp_path, "a.sgm", packing.sgm(TEXTS))))
    assert [text for _, text in found] == TEXTS
    assert [key for key, _ in found] == [(f"paper/{doc}", str(i)) for doc in (0, 1) for i in (1, 2, 3)]


def test_only_sgml_entities_are_decoded():
    assert wmt_files.unescape("&lt;a&gt; &amp;amp; &quot;&apos; &#8211;&#x2013; &copy &nbsp; &#0; &#xd800; & ;") == (
        "<a> &amp; \"' ––" + " &copy &nbsp; &#0; &#xd800; & ;"
    )


def test_other_ways_to_write_the_same(tmp_path):
    text = (
        "<DOC docid='d'>\r\n<hl><seg id=1> one </seg></hl><p><SEG ID=\"2\">two\nlines</SEG> <seg id='3'>three</seg>\n"
    )
    found = list(wmt_files.read_segments(write(tmp_path, "a.sgm", text.encode())))
    assert found == [(("d", "1"), " one "), (("d", "2"), "two lines"), (("d", "3"), "three")]


def test_two_files_go_together_by_their_ids(tmp_path):
    members = ("src.en.sgm", "ref.de.sgm")
    write(tmp_path, members[0], packing.sgm([f"en {i}" for i in range(7)]))
    write(tmp_path, members[1], packing.sgm([f"de {i}" for i in range(7)], side="ref"))
    pairs = list(source_files.read_members(str(tmp_path), members))
    assert pairs == [{"inputs": f"en {i}", "targets": f"de {i}"} for i in range(7)]


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (packing.sgm(TEXTS), packing.sgm(TEXTS[:5]), r"a.sgm has 6 segments, .*b.sgm has 5. Expected equally many"),
        (
            packing.sgm(TEXTS),
            packing.sgm(TEXTS, docs=3),
            "a.sgm has segment 3 of document paper/0 as its .* number 3, .*b.sgm has segment 1 of document paper/1",
        ),
    ],
)
def test_files_that_do_not_go_together(tmp_path, inputs, targets, message):
    paths = write(tmp_path, "a.sgm", inputs), write(tmp_path, "b.sgm", targets)
    with pytest.raises(UserError, match=message):
        list(wmt_files.read_segment_pairs(*paths))


@pytest.mark.parametrize("part", ["<seg ", "<doc ", "</seg ", "<seg id=", "&#"])
def test_a_hostile_line_takes_linear_time(tmp_path, part):
    (tmp_path / "a.sgm").write_text(f'{part * (10**6 // len(part))}\n<doc docid="d"><seg id="1">text</seg></doc>\n')
    start = time.process_time()
    assert [text for _, text in wmt_files.read_segments(str(tmp_path / "a.sgm"))] == ["text"]
    assert time.process_time() - start < 2
