"""`.po` files: what is filled in, stays and is refused; read again by polib, translate-toolkit and gettext."""
# Nearest tests of: extras/catalogs/catalog_files.py

import collections
import gettext
import io
import re
import shutil
import subprocess

import pytest

pytest.importorskip("polib")
pytest.importorskip("translate")
import polib
from translate.storage import po
from translate.tools.pocompile import convertmo

from t2t_lite.corpora.catalogs import catalog_of, is_catalog
from t2t_lite.corpora.source_files import holds_both, read_corpus
from t2t_lite.extras.catalogs.catalog_files import UNFINISHED, UNTRANSLATED
from t2t_lite.extras.catalogs.po_catalog import PoCatalog
from tests.extras.damaged_files import check_damage

HEADER = """# Translators.
msgid ""
msgstr ""
"Project-Id-Version: x\\n"
"Language: ru\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && n%100-n%10!=10 ? 1 : 2);\\n"
"""
ENTRIES = """
#. For translators
#: a.c:1
#, c-format
msgctxt "menu"
msgid "Open %d of %2$s <b>now</b>"
msgstr ""

msgid "Done"
msgstr "Готово"

#, fuzzy
msgid "Doubtful"
msgstr "Сомнительно"

#, python-format
msgid "one file in {name}"
msgid_plural "%(count)d files in {name}"
msgstr[0] ""
msgstr[1] "%(count)d файла в {name}"
msgstr[2] ""

msgid ""
"\\n"
"  First line\\n"
"\\tSecond\\n"
msgstr ""

msgid "%s: %d"
msgstr ""

#~ msgid "Old"
#~ msgstr ""
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.po"
    path.write_text(HEADER + ENTRIES, encoding="utf-8")
    return path


def filled(path, translate=str.upper, **options):
    """Returns (polib's file, counts) after all lines have been translated."""
    catalog = PoCatalog(str(path), **options)
    content, *counts = catalog.translated([translate(line) for line in catalog.lines])
    return polib.pofile(content.decode(catalog.encoding)), counts, content


def test_entries_without_a_translation_are_filled_in_and_marked(path):
    catalog = PoCatalog(str(path))
    # fmt: off
    assert catalog.lines == ["Open", "of", "now", "files in", "files in", "First line", "Second"]
    # fmt: on
    file, counts, _ = filled(path)
    assert counts == [5, 0]
    by_id = {entry.msgid: entry for entry in file}
    first = by_id["Open %d of %2$s <b>now</b>"]
    assert (
        first.msgstr == "OPEN %d OF %2$s <b>NOW</b>" and first.msgctxt == "menu" and first.comment == "For translators"
    )
    assert first.flags == ["fuzzy", "c-format"] and first.occurrences == [("a.c", "1")]
    assert by_id["\n  First line\n\tSecond\n"].msgstr == "\n  FIRST LINE\n\tSECOND\n"
    assert by_id["%s: %d"].msgstr == "%s: %d" and by_id["%s: %d"].fuzzy
    forms = by_id["one file in {name}"]
    assert forms.msgid_plural == "%(count)d files in {name}" and forms.fuzzy
    assert forms.msgstr_plural == {
        0: "%(count)d FILES IN {name}", 1: "%(count)d файла в {name}", 2: "%(count)d FILES IN {name}",
    }  # fmt: skip


def test_all_else_stays(path):
    before = polib.pofile(str(path))
    file, _, _ = filled(path)
    assert file.metadata == before.metadata and file.header == before.header and len(file) == len(before)
    for msgid in ("Done", "Doubtful", "Old"):
        one, other = (found.find(msgid, include_obsolete_entries=True) for found in (before, file))
        assert (one.msgstr, one.flags, one.obsolete) == (other.msgstr, other.flags, other.obsolete)
    assert PoCatalog(str(path)).lines and filled(path)[0].percent_translated() == before.percent_translated()


def test_other_programs_read_the_result(path, tmp_path):
    """translate-toolkit reads it; its compiler leaves fuzzy entries out unless it is asked for them."""
    content = filled(path)[2]
    store = po.pofile.parsestring(content)
    fuzzy = [unit.isfuzzy() for unit in store.units if unit.source and not unit.isobsolete() and not unit.isheader()]
    assert fuzzy == [True, False, True, True, True, True]
    for include_fuzzy, expected in ((True, "%(count)d FILES IN {name}"), (False, "%(count)d files in {name}")):
        with (tmp_path / "a.mo").open("wb") as compiled:
            assert convertmo(io.BytesIO(content), compiled, None, include_fuzzy)
        translations = gettext.GNUTranslations(io.BytesIO((tmp_path / "a.mo").read_bytes()))
        assert translations.ngettext("one file in {name}", "%(count)d files in {name}", 21) == expected
        assert translations.gettext("Done") == "Готово"


def test_a_translation_with_other_placeholders_or_none_is_left_out(path):
    file, counts, _ = filled(path, lambda line: "" if line == "First line" else f"{line} %s" if line == "of" else line)
    assert counts == [3, 2]
    for msgid in ("Open %d of %2$s <b>now</b>", "\n  First line\n\tSecond\n"):
        assert not file.find(msgid).msgstr and not file.find(msgid).fuzzy


def test_placeholders_that_the_model_keeps_stay_in_their_sentence(path):
    protect = pytest.importorskip("t2t_lite.extras.protect.protected_texts")
    keeps = protect.ProtectedTexts(("tags", "placeholders")).find
    lines = PoCatalog(str(path), keeps).lines
    assert lines[0] == "Open %d of %2$s <b>now</b>" and lines[2] == "%(count)d files in {name}"


def test_encodings_and_line_ends_stay(tmp_path):
    text = (HEADER + '\nmsgid "Café"\nmsgstr ""\n').replace("UTF-8", "ISO-8859-1").replace("\n", "\r\n")
    (tmp_path / "a.po").write_bytes(text.encode("latin-1"))
    content = filled(tmp_path / "a.po")[2]
    assert b'msgstr "CAF\xc9"\r\n' in content and b"\n" not in content.replace(b"\r\n", b"")


def test_only_line_feeds_divide_lines(tmp_path):
    path = tmp_path / "a.po"
    path.write_text(HEADER + '\n# Page\x0cbreak\u2028\nmsgid "One\u2028two\x85"\nmsgstr ""\n', encoding="utf-8")
    path.write_bytes(PoCatalog(str(path)).translated(["Eins"])[0])
    (entry,) = polib.pofile(str(path))  # polib divides the lines of a file only at line feeds
    assert (entry.msgid, entry.msgstr) == ("One\u2028two\x85", "Eins\x85")
    assert entry.tcomment.split() == ["Page", "break"]


def test_a_charset_without_a_character_of_a_translation_becomes_utf_8(tmp_path):
    (tmp_path / "a.po").write_bytes((HEADER + ENTRIES).replace("charset=UTF-8", "charset=KOI8-R").encode("KOI8-R"))
    catalog = PoCatalog(str(tmp_path / "a.po"))
    content, count, _ = catalog.translated([f"\u201e{line}\u201c" for line in catalog.lines])
    assert count and content.count("\u201e".encode()) == len(catalog.lines)
    (tmp_path / "b.po").write_bytes(content)
    again = PoCatalog(str(tmp_path / "b.po"))
    assert (again.encoding, again.lines) == ("UTF-8", [])
    assert "Готово" in content.decode() and b"KOI8" not in content


def test_a_language_without_plurals_has_one_form_from_the_plural(tmp_path):
    header = re.sub("nplurals=.*;", "nplurals=1; plural=0;", HEADER)
    (tmp_path / "a.po").write_text(header + '\nmsgid "a file"\nmsgid_plural "files"\nmsgstr[0] ""\n', encoding="utf-8")
    assert next(iter(filled(tmp_path / "a.po")[0])).msgstr_plural == {0: "FILES"}


@pytest.mark.parametrize(
    ("forms", "msgid", "expected"),
    [("nplurals=2; plural=(n != 1);", "one file", "ONE FILE"), ("nplurals=2; plural=(n > 1);", "one file", "%d FILES"),
     ("nplurals=2; plural=(n > 1);", "%d file", "%d FILE"), ("nplurals=2; plural=n==1;", "one file", "ONE FILE")],
)  # fmt: skip
def test_a_form_of_several_numbers_names_the_number(tmp_path, forms, msgid, expected):
    header = re.sub("nplurals=.*;", forms, HEADER)
    entry = f'\n#, c-format\nmsgid "{msgid}"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    (tmp_path / "a.po").write_text(header + entry, encoding="utf-8")
    file, _, content = filled(tmp_path / "a.po")
    assert sorted(next(iter(file)).msgstr_plural.values()) == sorted([expected, "%d FILES"])
    if program := shutil.which("msgfmt"):  # gettext's own check
        command = [program, "--check-format", "--use-fuzzy", "-o", tmp_path / "a.mo", "-"]
        assert subprocess.run(command, input=content, capture_output=True).returncode == 0


def test_pairs_are_finished_entries(path):
    removed = collections.Counter()
    pairs = [*read_corpus([str(path)], None, ("en", "ru"), removed)]
    assert pairs == [{"inputs": "Done", "targets": "Готово"}] and holds_both(str(path))
    assert removed == {UNFINISHED: 2, UNTRANSLATED: 5}
    filled_path = path.with_name("b.po")
    filled_path.write_bytes(filled(path)[2].replace(b"#, fuzzy, c-format", b"#, c-format").replace(b"#, fuzzy\n", b""))
    pairs = [*read_corpus([str(filled_path)], None, ("en", "ru"))]
    assert {"inputs": "First line Second", "targets": "FIRST LINE SECOND"} in pairs
    assert {"inputs": "Open %d of %2$s <b>now</b>", "targets": "OPEN %d OF %2$s <b>NOW</b>"} in pairs


@pytest.mark.parametrize(
    ("plural", "translations", "expected"),
    [
        (None, ("файл", "%d файла", "%d файлов"), [["a file", "файл"], ["%d files", "%d файлов"]]),
        (None, ("%d файл", "%d файла", "%d файлов"), [["%d files", "%d файлов"]]),  # the first form is also that of 21
        ("nplurals=2; plural=n==1;", ("%d Dateien", "Datei"), [["a file", "Datei"], ["%d files", "%d Dateien"]]),
    ],
)
def test_plural_forms_are_two_pairs(tmp_path, plural, translations, expected):
    header = re.sub("nplurals=.*;", plural, HEADER) if plural else HEADER
    forms = "".join(f'msgstr[{index}] "{text}"\n' for index, text in enumerate(translations))
    (tmp_path / "a.po").write_text(f'{header}\nmsgid "a file"\nmsgid_plural "%d files"\n{forms}', encoding="utf-8")
    pairs = PoCatalog.pairs(str(tmp_path / "a.po"), collections.Counter())
    assert [[*pair.values()] for pair in pairs] == expected


BAD = {
    "no charset": (HEADER.replace("; charset=UTF-8", "") + ENTRIES, "does not name a charset. Expected the line"),
    "a template": (HEADER.replace("UTF-8", "CHARSET"), "charset=CHARSET, as templates do"),
    "no header": ('msgid "a"\nmsgstr ""\n', "does not name a charset"),
    "an unknown charset": (HEADER.replace("UTF-8", "KLINGON"), "unknown charset 'KLINGON'"),
    "no plural forms": (HEADER.replace("Plural-Forms", "X-Forms") + ENTRIES, "line [0-9]+: .* has no Plural-Forms"),
    "odd plural forms": (re.sub("plural=.*;", "plural=n+5;", HEADER) + ENTRIES, "has Plural-Forms: 'nplurals"),
    "a quote": (HEADER + '\nmsgid "a\nmsgstr ""\n', ", line 10: found 'msgid \"a'. Expected msgid"),
    "no keyword": (HEADER + '\nmessage "a"\n', ", line 10: found 'message"),
    "no msgid": (HEADER + '\nmsgstr "a"\n', ": not a .po file: "),
    "another charset": (HEADER.encode() + b'\nmsgid "\xff"\nmsgstr ""\n', "line 10: byte 0xff is not UTF-8"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_by_name(tmp_path, content, message):
    check_damage(PoCatalog, tmp_path, content, f".*{message}", "a.po")


def test_files_are_known_by_their_extension(path):
    assert catalog_of(str(path)) is PoCatalog and catalog_of("a.po.gz") is PoCatalog and catalog_of("a.txt") is None
    assert is_catalog("A.PO") and not is_catalog("po")
