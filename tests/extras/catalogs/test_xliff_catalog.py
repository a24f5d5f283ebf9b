"""XLIFF 1.2: what is filled in, what stays, and what is refused; read again by translate-toolkit."""
# Nearest tests of: extras/catalogs/catalog_files.py

import collections

import pytest

pytest.importorskip("translate")
from translate.storage.xliff import xlifffile

from t2t_lite.corpora.catalogs import catalog_of
from t2t_lite.corpora.source_files import read_corpus
from t2t_lite.extras.catalogs.catalog_files import UNFINISHED, UNTRANSLATED
from t2t_lite.extras.catalogs.xliff_catalog import XliffCatalog
from tests.extras.damaged_files import check_damage

TEXT = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file source-language="en" target-language="de" datatype="plaintext" original="a.html">
    <body>
      <trans-unit id="a"><source>The red house</source><note>A note</note></trans-unit>
      <trans-unit id="b"><source>Hello <x id="1" ctype="{{n}}"/>, <g id="2">open <ph id="3">c</ph>it</g>!</source>
      </trans-unit>
      <trans-unit id="c" approved="yes"><source>Done</source><target state="final">Fertig</target></trans-unit>
      <trans-unit id="d" translate="no"><source>Keep</source></trans-unit>
      <trans-unit id="e"><source>Empty</source><target/></trans-unit>
      <trans-unit id="f"><source>To review</source><target state="needs-review-translation">Zu</target></trans-unit>
      <trans-unit id="g"><source> %1$s &lt;b&gt; %2$s </source></trans-unit>
    </body>
  </file>
</xliff>
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.xlf"
    path.write_text(TEXT, encoding="utf-8")
    return path


def filled(path, translate=str.upper):
    catalog = XliffCatalog(str(path))
    content, *counts = catalog.translated([translate(line) for line in catalog.lines])
    return {unit.getid().rpartition("\x04")[2]: unit for unit in xlifffile.parsestring(content).units}, counts, content


def test_units_without_a_translation_are_filled_in_and_to_be_reviewed(path):
    assert XliffCatalog(str(path)).lines == ["The red house", "Hello", "open", "it", "Empty"]
    units, counts, content = filled(path)
    assert counts == [4, 0]
    assert str(units["a"].target) == "THE RED HOUSE" and units["a"].isfuzzy() and str(units["a"].getnotes()) == "A note"
    for key in "abeg":
        assert units[key].target_dom.get("state") == "needs-review-translation" and not units[key].isapproved()
    expected = 'HELLO <x id="1" ctype="{{n}}"/>, <g id="2">OPEN <ph id="3">c</ph>IT</g>!</target>'
    assert expected in content.decode() and " %1$s &lt;b&gt; %2$s </target>" in content.decode()
    order = [child.tag.rpartition("}")[2] for child in units["a"].xmlelement]
    assert order == ["source", "target", "note"], "as the schema has it"


def test_all_else_stays(path):
    units, _, content = filled(path)
    assert (str(units["c"].target), units["c"].isapproved()) == ("Fertig", True)
    assert units["d"].target_dom is None and str(units["f"].target) == "Zu"
    assert b'original="a.html"' in content and content.startswith(b"<?xml")
    again = xlifffile.parsestring(TEXT.encode())
    assert [str(unit.source).strip() for unit in again.units] == [str(unit.source).strip() for unit in units.values()]


def test_a_unit_whose_translation_lacks_something_stays_empty(path):
    units, counts, _ = filled(path, lambda line: "" if line == "it" else f"{line} %s" if line == "Empty" else line)
    assert counts == [2, 2] and units["b"].target_dom is None and not units["e"].target


def test_an_icu_message_around_an_element_stays_empty(path):
    message = '{n, plural, =1 {one {x}} other {<x id="1"/> days}}'
    path.write_text(TEXT.replace("The red house", message), encoding="utf-8")
    units, counts, _ = filled(path)
    assert counts == [3, 1] and units["a"].target_dom is None
    path.write_text(TEXT.replace("The red house", "Missing {"), encoding="utf-8")
    assert str(filled(path)[0]["a"].target) == "MISSING {"


def test_pairs_are_finished_units_without_codes(path):
    removed = collections.Counter()
    assert [*read_corpus([str(path)], None, ("en", "de"), removed)] == [{"inputs": "Done", "targets": "Fertig"}]
    assert removed == {UNTRANSLATED: 5, UNFINISHED: 1} and catalog_of("b.xliff") is XliffCatalog
    path.write_bytes(filled(path)[2].replace(b' state="needs-review-translation"', b""))
    pairs = [*XliffCatalog.pairs(str(path), removed)]
    assert {"inputs": "Hello , open it!", "targets": "HELLO , OPEN IT!"} in pairs


BAD = {
    "version 2": (TEXT.replace('"1.2"', '"2.0"'), "found XLIFF '2.0'. Expected XLIFF 1.2"),
    "another kind": ("<html/>", "found <html>. Expected XLIFF 1.2"), "no XML": ("<xliff", "line 1, column 1: not XML"),
    "entities": (TEXT.replace("<xliff", '<!DOCTYPE x [<!ENTITY a "b">]><xliff', 1), "declares the entity 'a'"),
    "nothing": ("", "not XML"), "bytes": (TEXT.replace("red", "r\udcff").encode("utf-8", "surrogateescape"), "not XML"),
    "encoding": ("<?xml version='1.0' encoding='utff-8'?><xliff/>", "unknown encoding: utff-8. Convert the file"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_by_name(tmp_path, content, message):
    check_damage(XliffCatalog, tmp_path, content, f".*{message}", "a.xlf")
