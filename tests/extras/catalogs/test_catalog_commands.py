"""`.po` and XLIFF files in t2t-decoder and t2t-datagen."""
# Nearest tests of: t2t_lite/decoding/command/decode_catalogs.py, t2t_lite/corpora/catalogs.py

import pytest

polib = pytest.importorskip("polib")
from translate.storage.xliff import xlifffile  # noqa: E402

import t2t_lite  # noqa: E402
from t2t_lite import registry  # noqa: E402
from tests.decoding.runs import SENTENCES, make_language_model_run, make_problem_run, make_run  # noqa: E402
from tests.extras.catalogs.test_po_catalog import HEADER  # noqa: E402
from tests.extras.catalogs.test_xliff_catalog import TEXT  # noqa: E402

ENTRIES = """
msgid "the red house"
msgstr ""

msgid "a green tree %d is old\\n"
msgstr ""

msgid "done"
msgstr "fertig"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), initializer_gain=2.0)


@pytest.fixture
def catalog(tmp_path):
    path = tmp_path / "a.po"
    path.write_text(HEADER + ENTRIES, encoding="utf-8")
    return path


def decode(call_command, run, path, output, *flags):
    return call_command(
        "t2t-decoder", f"--output_dir={run}", f"--decode_from_file={path}", f"--decode_to_file={output}", *flags
    )


@pytest.mark.slow
def test_a_catalog_gets_the_translations_of_translator(call_command, run, catalog, tmp_path):
    output = tmp_path / "b.po"
    result = decode(call_command, run, catalog, output)
    assert result.status == 0, result.stderr
    assert result.stdout == "" and not (tmp_path / "b.po.ids").exists()
    file = polib.pofile(str(output))
    expected = t2t_lite.load(str(run)).translate(["the red house", "a green tree", "is old"])
    texts = [one.text.strip() for one in expected]
    entry = file.find("the red house")
    assert (entry.msgstr, entry.fuzzy) == (texts[0], True) and file.find("done").msgstr == "fertig"
    assert file.find("a green tree %d is old\n").msgstr == f"{texts[1]} %d {texts[2]}\n"
    assert "2 translations filled in" in result.stderr
    again = decode(call_command, run, output, tmp_path / "c.po")
    assert again.status == 0 and (tmp_path / "c.po").read_bytes() == output.read_bytes(), "nothing was missing"


@pytest.mark.slow
def test_a_model_that_keeps_placeholders_reads_whole_texts(call_command, catalog, tmp_path):
    pytest.importorskip("t2t_lite.extras.protect")
    (tmp_path / "data").mkdir()
    (tmp_path / "a.tsv").write_text("".join(f"{sentence}\t{sentence} %d\n" for sentence in SENTENCES))
    problem, paths = registry.problem("translate_own"), [str(tmp_path / "a.tsv")]
    problem.configure(
        train_files=paths, dev_files=paths, languages=["en", "de"], vocab_size=360, protect=["placeholders"]
    )
    run = make_problem_run(problem, "transformer", tmp_path)
    result = decode(call_command, run, catalog, tmp_path / "b.po", "--decode_hparams=log_results=true,beam_size=1")
    assert result.status == 0 and "INPUT: a green tree %d is old\n" in result.stderr, result.stderr


@pytest.mark.slow
def test_an_xliff_file_gets_them_too(call_command, run, tmp_path):
    (tmp_path / "a.xlf").write_text(TEXT, encoding="utf-8")
    result = decode(call_command, run, tmp_path / "a.xlf", tmp_path / "b.xlf")
    assert result.status == 0, result.stderr
    units = xlifffile.parsestring((tmp_path / "b.xlf").read_bytes()).units
    (expected,) = t2t_lite.load(str(run)).translate(["The red house"])
    assert str(units[0].target) == expected.text.strip() and units[0].isfuzzy()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "flags", "message"),
    [
        ("b.txt", [], "b.txt: expected the name of a .po file to write"),
        ("a.po", [], "a.po"),
        ("b.po", ["--n_best_format=json"], "--n_best_format=json: only for lines of text, but "),
        ("b.po", ["--decode_hparams=n_best=2"], "n_best: only for lines of text"),
        ("b.po", ["--mbr=chrf", "--decode_hparams=n_best=2"], "n_best: only for lines of text"),
        ("b.po", ["--decode_hparams=identity_output=true,write_beam_scores=true,delimiter=;"],
         "write_beam_scores, identity_output, delimiter: "),
        ("b.po", ["--decode_shards=2"], "--decode_shards: only for lines of text"),
        ("b.po", ["--decode_reference=a.po"], "--decode_reference: only for lines of text"),
        ("b.po", ["--alignments_file=al"], "--alignments_file: only for lines of text"),
    ],
)  # fmt: skip
def test_what_needs_lines_of_text_is_refused(call_command, run, catalog, tmp_path, monkeypatch, output, flags, message):
    monkeypatch.chdir(tmp_path)
    result = decode(call_command, run, catalog, tmp_path / output, *flags)
    assert result.status == 2 and message in result.stderr and "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.po"]


@pytest.mark.slow
def test_other_models_and_bad_files_are_refused(call_command, run, catalog, tmp_path):
    other = make_language_model_run(tmp_path / "lm")
    result = decode(call_command, other, catalog, tmp_path / "b.po")
    assert result.status == 2 and "a.po: expected a model that translates" in result.stderr
    catalog.write_text(ENTRIES)
    result = decode(call_command, run, catalog, tmp_path / "b.po")
    assert result.status == 2 and "a.po: the header does not name a charset" in result.stderr
    assert not (tmp_path / "b.po").exists()


@pytest.mark.slow
def test_a_model_learns_from_a_catalog(call_command, tmp_path):
    words = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(300)]
    entries = "".join(f'\nmsgid "the {word} %d"\nmsgstr "das {word[::-1]} %d"\n' for word in words)
    (tmp_path / "a.po").write_text(HEADER + entries, encoding="utf-8")
    result = call_command(
        "t2t-datagen", "--problem=translate_own", f"--train_files={tmp_path / 'a.po'}", "--languages=en,ru",
        f"--data_dir={tmp_path / 'data'}", "--vocab_size=300", "--held_out=20",
    )  # fmt: skip
    assert result.status == 0, result.stderr
    records = [path.name for path in (tmp_path / "data").iterdir() if "-train-" in path.name]
    assert records and (tmp_path / "data" / "problem.json").exists()
    result = call_command(
        "t2t-datagen", "--problem=translate_own", f"--train_files={tmp_path / 'a.po'},{tmp_path / 'b.de'}",
        f"--data_dir={tmp_path / 'other'}",
    )  # fmt: skip
    assert result.status == 2 and "b.de" in result.stderr and "side (found 2)" in result.stderr
