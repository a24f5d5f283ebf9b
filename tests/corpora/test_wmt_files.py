"""WMT's test sets, as `.sgm` of one side and as XML of all: what t2t-bleu, t2t-decoder and t2t-datagen read of them."""
# Nearest tests of: t2t_lite/evaluation/score_files.py

import logging
import os
import threading
import time

import pytest

from t2t_lite import registry
from t2t_lite.corpora import source_files, wmt_files
from t2t_lite.corpora.wmt_files import REFERENCE, SOURCE, TRANSLATION
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.decoding.command import text_files
from t2t_lite.decoding.command.decode_files import part_of_file
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.errors import UserError
from t2t_lite.evaluation import score_files
from t2t_lite.evaluation.tokenizations import tokenization_of_file
from tests.data import packing

TEXTS = ["Plain.", 'R&D "costs" < 3 > 2', "größe", "", "AT&amp;T stays escaped once", "end"]
EN, DE = ["R&D <costs>", "two", "three", "four"], ["F&E <kostet>", "zwei", "drei", "vier"]


def write(path, data):
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def side(tag, texts, attributes):
    segments = "".join(f'<seg id="{at}">{packing.escaped(text)}</seg>\n' for at, text in texts.items())
    return f"<{tag} {attributes}>\n<p>\n{segments}</p>\n</{tag}>\n"


def xml(*documents, head='<?xml version="1.0" encoding="utf-8"?>\n'):
    docs = "".join(f'<doc id="d{at}" origlang="en">\n{"".join(sides)}</doc>\n' for at, sides in enumerate(documents))
    return f'{head}<dataset id="newstest2021">\n<collection id="general">\n{docs}</collection>\n</dataset>\n'


def document(first, *translators, extra=""):
    """A document of the segments `first` and the next one."""
    of = {name: {at: texts[first + at - 1] for at in (1, 2)} for name, texts in {"en": EN, "de": DE}.items()}
    refs = [side("ref", of["de"], f'lang="de" translator="{name}"') for name in translators]
    return [side("src", of["en"], 'lang="en"'), *refs, extra]


def test_xml_has_all_sides(tmp_path):
    hypotheses = [side("hyp", {1: f"a{at}", 2: "b"}, 'system="X" language="de"') for at in (0, 1)]
    texts = xml(document(0, "A", extra=hypotheses[0]), document(2, "A", extra=hypotheses[1]))
    for encoding in ("utf-8", "utf-16"):
        path = write(tmp_path / "set.xml", texts.replace("utf-8", encoding).encode(encoding))
        assert wmt_files.is_test_set(path)
        assert wmt_files.read_side(path, SOURCE) == EN and wmt_files.read_sides(path, REFERENCE) == [DE]
        assert wmt_files.read_side(path, TRANSLATION) == ["a0", "b", "a1", "b"]


def test_a_document_without_segments_adds_none(tmp_path):
    path = write(tmp_path / "set.xml", xml(document(0, "A"), [], document(2, "A")))
    assert wmt_files.read_side(path, SOURCE) == EN and wmt_files.read_sides(path, REFERENCE) == [DE]


def test_commands_read_their_sides(tmp_path, caplog):
    path = write(tmp_path / "set.xml", xml(document(0, "A", "B", "C"), document(2, "B", "A")))
    with caplog.at_level(logging.INFO, "t2t_lite"):
        assert score_files.read_references([path]) == [DE, DE]
    assert "has references by A, B; skipped, because segments are missing: C" in caplog.text
    plain = write(tmp_path / "ref.de", packing.lines(DE))
    assert score_files.read_references([plain, path]) == [DE, DE, DE]
    assert score_files.read_translation(path, plain, 4, side=SOURCE) == EN
    part = part_of_file(path, DecodeHParams())
    assert part.lines == EN and part.lines_beside("--decode_reference", path, DecodeHParams()) == DE
    source = write(tmp_path / "newstest-src.en.SGM", packing.sgm(EN))
    reference = write(tmp_path / "newstest-ref.zh.sgm", packing.sgm(["你好", "二", "三", "四"], side="ref"))
    assert part_of_file(source, DecodeHParams(delimiter="|")).lines == EN
    found = score_files.read_references([reference])
    assert found == [["你好", "二", "三", "四"]] and tokenization_of_file(reference, found[0]) == "zh"
    told = []
    bad = write(tmp_path / "bad.sgm", packing.sgm(["\ufffd", "two"]).replace(b"two", b"\xff"))
    assert part_of_file(bad, DecodeHParams(), told.append).lines == ["\ufffd", None] and "segment 1 of doc" in told[0]
    assert list(wmt_files.read_segment_pairs(bad, bad, told.append)) == [{"inputs": "\ufffd", "targets": "\ufffd"}]


def test_a_pipe_is_read_once(tmp_path):
    os.mkfifo(pipe := tmp_path / "set.sgm")
    for read in (text_files.input_lines, lambda path: score_files.read_lines(path, SOURCE)):
        writer = threading.Thread(target=pipe.write_bytes, args=(packing.sgm(EN),), daemon=True)
        writer.start()
        assert read(str(pipe)) == EN
        writer.join(20)


def test_the_dev_set_of_one_s_own_corpus(tmp_path):
    train = [write(tmp_path / f"a.{code}", packing.lines(texts)) for code, texts in (("en", EN), ("de", DE))]
    path = write(tmp_path / "set.xml", xml(document(0, "A"), document(2, "A")))
    sgm = [write(tmp_path / f"{s}.{code}.sgm", packing.sgm(texts, side=s)) for s, code, texts in
           (("src", "en", EN), ("ref", "de", DE))]  # fmt: skip
    expected = [{"inputs": source, "targets": target} for source, target in zip(EN, DE, strict=True)]
    for paths, dev in ((train, [path]), (train, sgm), (train[::-1], [path])):
        problem = registry.problem("translate_own")
        problem.configure(train_files=paths, dev_files=dev)
        found = list(problem.generate_samples("", "", DatasetSplit.EVAL))
        turned = [{"inputs": pair["targets"], "targets": pair["inputs"]} for pair in expected]
        assert found == (turned if paths is not train else expected)
    with pytest.raises(UserError, match=r"set\.xml: is a test set from en to de\. Expected en to fr"):
        list(wmt_files.read_pairs(path, ("en", "fr")))


def test_other_xml_is_lines(tmp_path):
    path = write(tmp_path / "page.xml", "<p>one</p>\n<p>two</p>\n")
    assert part_of_file(path, DecodeHParams()).lines == ["<p>one</p>", "<p>two</p>"]


@pytest.mark.parametrize(
    ("text", "wanted", "message"),
    [
        (xml(document(0, "A"))[:-40], SOURCE, r"set\.xml, line \d+, column \d+: not XML"),
        (xml(document(0)), REFERENCE, "no reference covers all 1 document"),
        (xml(document(0, "A"), document(2, "B")), REFERENCE, r"all 2 documents \(not all segments: A, B\)"),
        (xml(), SOURCE, "has no document"),
        (xml(head="<?xml version='1.0' encoding='utff-8'?>"), SOURCE, r".xml: .*unknown encoding: utff-8\. Convert"),
        (xml(head="<?xml version='1.0' encoding='big5'?>"), SOURCE, r"set\.xml: .*multi-byte encodings .*\. Convert"),
        (
            xml(
                document(
                    0, extra=side("hyp", {1: "a", 2: "b"}, 'system="X"') + side("hyp", {1: "a", 2: "b"}, 'system="Y"')
                )
            ),
            TRANSLATION,
            "has 2 translations, by X, Y",
        ),
        (xml(document(0)).replace('id="2"', 'id="1"'), SOURCE, r"set\.xml, line 8: the segment '1' "),
        (xml(document(0), head='<!DOCTYPE x [<!ENTITY a "b">]>\n'), SOURCE, "line 1: declares the entity 'a'"),
    ],
)
def test_bad_test_sets(tmp_path, text, wanted, message):
    with pytest.raises(UserError, match=message):
        wmt_files.read_sides(write(tmp_path / "set.xml", text), wanted)


def test_sgm_of_another_side_is_refused(tmp_path):
    path = write(tmp_path / "src.en.sgm", packing.sgm(EN))
    with pytest.raises(UserError, match=r"src\.en\.sgm: .* the source of a test set, <srcset>. Expected a reference"):
        score_files.read_references([path])
    with pytest.raises(UserError, match=r"empty\.sgm: no segment"):
        score_files.read_translation(write(tmp_path / "empty.sgm", "text\n"), path, 1)


def test_segments_come_in_order_with_their_entities_decoded(tmp_path):
    found = list(wmt_files.read_segments(write(tmp_path / "a.sgm", packing.sgm(TEXTS))))
    assert [text for _, text in found] == TEXTS
    assert [key for key, _ in found] == [(f"paper/{doc}", str(i)) for doc in (0, 1) for i in (1, 2, 3)]


def test_only_sgml_entities_are_decoded():
    assert wmt_files.unescape(
        "&lt;a&gt; &amp;amp; &quot;&apos; &#8211;&#x2013; &copy &nbsp; &#0; &#xd800;&#1114112; & ;"
    ) == ("<a> &amp; \"' ––" + " &copy &nbsp; &#0; &#xd800;&#1114112; & ;")


def test_other_ways_to_write_the_same(tmp_path):
    text = (
        "<DOC docid='d'>\r\n<hl><seg id=1> one </seg></hl><p><SEG ID=\"2\">two\nlines</SEG> <seg id='3'>three</seg>\n"
    )
    found = list(wmt_files.read_segments(write(tmp_path / "a.sgm", text.encode())))
    assert found == [(("d", "1"), " one "), (("d", "2"), "two lines"), (("d", "3"), "three")]


def test_two_files_go_together_by_their_ids(tmp_path):
    members = ("src.en.sgm", "ref.de.sgm")
    write(tmp_path / members[0], packing.sgm([f"en {i}" for i in range(7)]))
    write(tmp_path / members[1], packing.sgm([f"de {i}" for i in range(7)], side="ref"))
    pairs = list(source_files.read_members(str(tmp_path), members))
    assert pairs == [{"inputs": f"en {i}", "targets": f"de {i}"} for i in range(7)]


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (packing.sgm(TEXTS), packing.sgm(TEXTS[:5]), r"a.sgm has 6 segments, .*b.sgm has 5. Expected"),
        (
            packing.sgm(TEXTS),
            packing.sgm(TEXTS, docs=3),
            "a.sgm has segment 3 of document paper/0 as its .* number 3, .*b.sgm has segment 1 of document paper/1",
        ),
    ],
)
def test_files_that_do_not_go_together(tmp_path, inputs, targets, message):
    paths = write(tmp_path / "a.sgm", inputs), write(tmp_path / "b.sgm", targets)
    with pytest.raises(UserError, match=message):
        list(wmt_files.read_segment_pairs(*paths))


@pytest.mark.parametrize("part", ["<seg ", "<doc ", "</seg ", "<seg id=", "&#"])
def test_a_hostile_line_takes_linear_time(tmp_path, part):
    (tmp_path / "a.sgm").write_text(f'{part * (10**6 // len(part))}\n<doc docid="d"><seg id="1">text</seg></doc>\n')
    start = time.process_time()
    assert [text for _, text in wmt_files.read_segments(str(tmp_path / "a.sgm"))] == ["text"]
    assert time.process_time() - start < 2


@pytest.mark.parametrize("end", ["", "</seg>", "</seg\n>"])
def test_a_segment_of_many_lines_takes_linear_time(tmp_path, end):
    (tmp_path / "a.sgm").write_text('<seg id="1">\n' + "some words\n" * 60_000 + end)
    start = time.process_time()
    if end:
        ((_, text),) = wmt_files.read_segments(str(tmp_path / "a.sgm"))
        assert text.split() == ["some", "words"] * 60_000
    else:
        with pytest.raises(UserError, match="line 1: the segment that begins here has no </seg>"):
            list(wmt_files.read_segments(str(tmp_path / "a.sgm")))
    assert time.process_time() - start < 2
