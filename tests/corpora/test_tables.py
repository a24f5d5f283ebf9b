"""Columns by number and by name, and first lines that may be headers."""

import pytest

from t2t_lite.corpora import tables
from t2t_lite.corpora.tables import Layout, header_question
from t2t_lite.errors import UserError

LABELS, PAIRS = Layout(("label", "text")), Layout(("inputs", "targets"), languages=("en", "de"))
LABELLED_PAIRS = Layout(("label", "first", "second"))


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def rows(path, layout, **options):
    return [cells for cells, _ in tables.read_table(path, layout, **options)]


def test_columns_go_together(tmp_path):
    path = write(tmp_path / "a.tsv", "one\teins\n\ntwo\t\n")
    expected = [{"inputs": "one", "targets": "eins"}, {"inputs": "two", "targets": ""}]
    assert list(tables.read_pairs(path, PAIRS)) == expected


@pytest.mark.parametrize(
    "layout, line",
    [
        (LABELS, "label\ttext"),
        (LABELS, "Sentiment\tReview"),
        (LABELS, "Kategorie\ttext"),
        (LABELS, "gold_label\tsentence"),
        (LABELLED_PAIRS, "label\tsentence1\tsentence2"),
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
    for twice in (("3", "Label"), ("label", "Label"), ("2", "02")):
        with pytest.raises(UserError, match=f"line 1: --columns={','.join(twice)}: a column is given twice"):
            rows(path, LABELS._replace(columns=twice, header=True))


@pytest.mark.parametrize(
    "layout, message",
    [
        (LABELS._replace(columns=("1",)), "--columns=1: expected 2 different columns, for label and text"),
        (LABELS._replace(columns=("0", "1")), "--columns=0,1: expected numbers from 1"),
        (LABELS._replace(columns=("2", "2")), "--columns=2,2: expected 2 different columns"),
        (LABELS._replace(columns=("label", "text"), header=False), "--header=false: names "),
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


@pytest.mark.parametrize(
    ("layout", "cells", "proposed"),
    [
        (LABELS, "label text", " --header, or the names of the columns: --columns=label,text."),
        (LABELS, "klasse satz", " --header, or the names of the columns: --columns=klasse,satz."),
        (LABELS, "satz label", "a header, set the names of the columns: --columns=label,satz."),
        (LABELS, "id text label", "a header, set the names of the columns: --columns=label,text."),
        (LABELS, "nr satz label", "a header, set the names of the columns: --columns=label,TEXT."),
        (PAIRS, "id de en", "a header, set the names of the columns: --columns=en,de."),
        (LABELLED_PAIRS, "idx sentence1 sentence2 label", " --columns=label,sentence1,sentence2."),
    ],
)
def test_the_question_about_a_header_proposes_what_its_names_say(layout, cells, proposed):
    assert proposed in header_question("a.tsv, line 1", cells.split(), layout)


def test_columns_of_a_table_with_more_of_them_are_asked_for(tmp_path):
    path, asked = write(tmp_path / "a.tsv", "id\tsatz\tlabel\n1\tein Satz\tx\n"), r"for label and text, such as"
    with pytest.raises(UserError, match=rf"line 1: found 3 columns.* {asked} --columns=1,2\."):
        rows(path, LABELS._replace(header=False))
    with pytest.raises(UserError, match=rf"line 2: found 3 columns.* {asked} --columns=label,TEXT\."):
        rows(path, LABELS._replace(header=True))


@pytest.mark.parametrize(
    ("layout", "header", "row", "columns"),
    [
        (LABELS, "text\tlabel", "a film\tgood", "label,text"),
        (PAIRS, "de\ten", "eins\tone", "en,de"),
        (PAIRS, "target\tsource", "eins\tone", "source,target"),
    ],
)
def test_a_header_in_another_order_is_refused(tmp_path, layout, header, row, columns):
    path = write(tmp_path / "a.tsv", f"{header}\n{row}\n")
    with pytest.raises(UserError, match=rf"is in a different order than .* --columns={columns}\."):
        rows(path, layout._replace(header=True))
    chosen = layout._replace(columns=tuple(columns.split(",")))
    assert rows(path, chosen) == [row.split("\t")[::-1]]


def test_which_columns_are_numbers():
    columns = ("1", "12345", "123456", "²", "-1", "", "a1")
    assert [column for column in columns if tables.is_number(column)] == ["1", "12345"]
