"""Columns by number and by name, and first lines that may be headers."""

import pytest

from t2t_lite.corpora import source_files, tables
from t2t_lite.corpora.tables import Layout
from t2t_lite.errors import UserError

LABELS, PAIRS = Layout(("label", "text")), Layout(("inputs", "targets"), languages=("en", "de"))


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def rows(path, layout, **options):
    return [cells for cells, _ in tables.read_table(path, layout, **options)]


def test_columns_go_together(tmp_path):
    path = write(tmp_path / "a.tsv", "one\teins\n\ntwo\t\n")
    expected = [{"inputs": "one", "targets": "eins"}, {"inputs": "two", "targets": ""}]
    assert list(tables.read_pairs(path, PAIRS)) == expected
    write(tmp_path / "wide.tsv", "7\teins\tone\n")
    members = ("tsv", 2, 1, "wide.tsv")
    assert list(source_files.read_members(str(tmp_path), members)) == [{"inputs": "one", "targets": "eins"}]


@pytest.mark.parametrize(
    "layout, line",
    [
        (LABELS, "label\ttext"),
        (LABELS, "Sentiment\tReview"),
        (LABELS, "Kategorie\ttext"),
        (LABELS, "gold_label\tsentence"),
        (Layout(("label", "first", "second")), "label\tsentence1\tsentence2"),
        (Layout(("number", "text")), "score\tText"),
        (PAIRS, "en\tde"),
        (PAIRS, "English\tGerman"),
        (PAIRS, "source\ttarget"),
        (PAIRS, "src_text\ttgt_text"),
    ],
)
def test_a_header_is_asked_about(tmp_path, layout, line):
    data = "\t".join(["1", "two", "three"][: len(layout.names)])
    path = write(tmp_path / "a.tsv", f"\n{line}\n{data}\n")
    with pytest.raises(UserError, match=r"a\.tsv, line 2: .* looks like a header.*--header=false"):
        rows(path, layout)
    assert rows(path, layout._replace(header=True)) == [data.split("\t")]
    assert rows(path, layout._replace(header=False)) == [line.split("\t"), data.split("\t")]
    reverse = tuple(line.lower().split("\t")[::-1])
    assert rows(path, layout._replace(columns=reverse)) == [data.split("\t")[::-1]]


@pytest.mark.parametrize(
    "layout, line",
    [
        (LABELS, "positive\tA text."),
        (LABELS, "sports\tThe label of the record sold many copies in the year of 1997."),
        (LABELS, "1\ttext"),
        (PAIRS, "text\tdas Wort"),
        (PAIRS, "source\tQuelle"),
        (PAIRS, "Hello.\tHallo."),
    ],
)
def test_data_are_no_header(tmp_path, layout, line):
    assert rows(write(tmp_path / "a.tsv", f"{line}\n"), layout) == [line.split("\t")]


def test_columns_are_chosen_by_number_and_name(tmp_path):
    path = write(tmp_path / "a.tsv", "id\ttext\tLabel\n7\tHi.\tgood\n8\tBye.\tbad\textra\n")
    assert rows(path, LABELS._replace(columns=("Label", "text"))) == [["good", "Hi."], ["bad", "Bye."]]
    assert rows(path, LABELS._replace(columns=("3", "2"), header=True)) == [["good", "Hi."], ["bad", "Bye."]]
    with pytest.raises(UserError, match="looks like a header"):
        rows(path, LABELS._replace(columns=("3", "2")))
    with pytest.raises(UserError, match=r"line 1: no column 'lable' in the header .* Nearest: Label"):
        rows(path, LABELS._replace(columns=("lable", "text")))
    with pytest.raises(UserError, match=r"line 1: found 3 columns. Expected at least 9"):
        rows(path, LABELS._replace(columns=("3", "9"), header=False))


@pytest.mark.parametrize(
    "layout, message",
    [
        (LABELS._replace(columns=("1",)), "found 1 column. Expected 2"),
        (LABELS._replace(columns=("0", "1")), "'0'. Expected a number from 1"),
        (LABELS._replace(columns=("2", "2")), "a column comes twice"),
        (LABELS._replace(columns=("label", "text"), header=False), "names stand in a header"),
    ],
)
def test_columns_that_cannot_be(layout, message):
    with pytest.raises(UserError, match=message):
        layout.check()


def test_bad_lines_are_left_out(tmp_path):
    told = []
    path = write(tmp_path / "a.tsv", b"good\tone\nbad\nb\xf6d\ttwo\n\tthree\na\tb\tc\ngood\tfour\n")
    assert rows(path, LABELS, on_bad_line=told.append) == [["good", "one"], ["good", "four"]]
    assert [message.split(":")[0].rsplit(" ")[-1] for message in told] == ["2", "3", "4", "5"]
