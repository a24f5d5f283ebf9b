"""What separates the cells of a CSV file: what all first lines show, or else the user says it."""

import pytest

from t2t_lite.corpora.separators import FIRST_LINES
from t2t_lite.corpora.tables import Layout, read_table
from t2t_lite.errors import UserError

LABELS, NUMBERS = Layout(("label", "text")), Layout(("number", "text"))


def cells(folder, text, layout=LABELS, name="a.csv", **options):
    path = folder / name
    path.write_bytes(text.encode())
    return [row for row, _ in read_table(str(path), layout, **options)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("good;a, b\nbad;c\n", [["good", "a, b"], ["bad", "c"]]),
        ("good;a\r\nbad;b, c\nbad;d, e, f\r\n", [["good", "a"], ["bad", "b, c"], ["bad", "d, e, f"]]),
        ("good,a; b; c\nbad,d; e\n", [["good", "a; b; c"], ["bad", "d; e"]]),
        ('"good";"a, b"\n"bad";"c, d"\n', [["good", "a, b"], ["bad", "c, d"]]),
        ('good,"a; b, c"\nbad,"d;\ne"\n', [["good", "a; b, c"], ["bad", "d; e"]]),
        ("good|a, b\nbad|c\n", [["good", "a, b"], ["bad", "c"]]),
        ("good\ta, b\nbad\tc, d, e\n", [["good", "a, b"], ["bad", "c, d, e"]]),
        ("good,a\tb\nbad,c\n", [["good", "a b"], ["bad", "c"]]),
        ("\n\ufeffgood;a\n\nbad;b\n", [["\ufeffgood", "a"], ["bad", "b"]]),
        ("sep=;\ngood;a, b\nbad;c, d\n", [["good", "a, b"], ["bad", "c, d"]]),
        ('\ufeff"sep=,"\r\ngood,a; b\r\nbad,c; d\r\n', [["good", "a; b"], ["bad", "c; d"]]),
        ("SEP=\t\ngood\ta, b\nbad\tc, d\n", [["good", "a, b"], ["bad", "c, d"]]),
    ],
)
def test_the_only_one_that_gives_the_expected_columns_separates(tmp_path, text, expected):
    assert cells(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "layout", "flags"),
    [
        ("good;a, b\nbad;c, d\n", LABELS, "--separator=comma or --separator=semicolon"),
        ("3,5;a\n4,0;b\n", NUMBERS, "--separator=comma or --separator=semicolon"),
        ("good\ta, b\nbad\tc, d\n", LABELS, "--separator=comma or --separator=tab"),
        ("1;a, b, c;good\n2;d, e, f;bad\n", LABELS._replace(columns=("3", "2")), "comma or --separator=semicolon"),
        ("1,a;good;x\n2;b,bad,x\n", LABELS, "--separator=comma or --separator=semicolon"),
    ],
)
def test_the_user_is_asked_where_several_would_do(tmp_path, text, layout, flags):
    with pytest.raises(UserError, match=rf"a\.csv: .* Say what separates them: .*{flags}\."):
        cells(tmp_path, text, layout)


def test_the_user_s_word_counts(tmp_path):
    text = "sep=,\ngood;a, b\nbad;c, d\n"
    semicolons = LABELS._replace(separator="semicolon")
    assert cells(tmp_path, text, semicolons) == [["good", "a, b"], ["bad", "c, d"]]
    assert cells(tmp_path, text.partition("\n")[2], semicolons, "a.tsv") == [["good", "a, b"], ["bad", "c, d"]]
    commas = LABELS._replace(separator="comma")
    assert cells(tmp_path, text, commas) == [["good;a", "b"], ["bad;c", "d"]]


def test_names_of_columns_are_in_the_header(tmp_path):
    named = LABELS._replace(columns=("label", "text"))
    text = "id;text;label\n1;a, b;good\n2;c, d;bad\n"
    assert cells(tmp_path, text, named) == [["good", "a, b"], ["bad", "c, d"]]
    with pytest.raises(UserError, match=r"line 1: no column 'lable' in the header"):
        cells(tmp_path, text, named._replace(columns=("lable", "text"), separator="semicolon"))


def test_a_bad_line_is_named_where_the_others_show_the_separator(tmp_path):
    text = "good;a, b\nbad;c\nbad\ngood;d\n"
    with pytest.raises(UserError, match=r"line 3: found 1 column. Expected 2: label;text, divided by ;"):
        cells(tmp_path, text)
    told = []
    assert len(cells(tmp_path, text, on_bad_line=told.append)) == 3 and "line 3" in told[0]
    with pytest.raises(UserError, match=r"line 1: found 1 column. Expected 2"):
        cells(tmp_path, "good\nbad\n")


def test_only_the_first_lines_are_looked_at(tmp_path):
    """A quoted cell may go on behind them, and a later line may have any number of separators."""
    rows = ["good;a, b", "bad;c"] * (FIRST_LINES // 2 - 1)
    rows = [*rows, "bad;d", 'good;"e\nf"', "bad;g, h", 'bad;"i"']
    assert cells(tmp_path, "\n".join(rows))[-3:] == [["good", "e f"], ["bad", "g, h"], ["bad", "i"]]


def test_a_carriage_return_within_a_line_is_a_space(tmp_path):
    assert cells(tmp_path, "good,a\rb\nbad,c\r\n") == [["good", "a b"], ["bad", "c"]]
