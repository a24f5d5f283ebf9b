"""Tables as CSV and as JSON lines: the same cells as from tabs, each bad row with its line; separators."""

import json

import pytest

from t2t_lite.corpora import tables
from t2t_lite.corpora.cells import FIRST_LINES
from t2t_lite.corpora.tables import Layout
from t2t_lite.errors import UserError

PAIRS = Layout(("inputs", "targets"), languages=("en", "de"))
LABELS = Layout(("label", "text"))


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def cells(path, layout=PAIRS, **options):
    return [texts for texts, _ in tables.read_table(path, layout, **options)]


@pytest.mark.parametrize("separator", [",", ";"])
def test_quotes_hold_separators_quotes_and_line_ends(tmp_path, separator):
    rows = f'one{separator}eins\r\n\r\n"a{separator} ""b""\nc"{separator}"ä{separator}\tö"\r\n x {separator} y \n'
    path = write(tmp_path / "a.csv", "\ufeff" + rows)
    assert cells(path) == [["one", "eins"], [f'a{separator} "b" c', f"ä{separator} ö"], ["x", "y"]]
    assert [where for _, where in tables.read_table(path, PAIRS)][1] == f"{path}, line 4"


def test_where_tabs_separate_quotes_are_text(tmp_path):
    text = 'number "one\teins\nsay "hi", you\tsag "hallo"\n'
    assert cells(write(tmp_path / "a.csv", text)) == cells(write(tmp_path / "a.tsv", text))


def test_columns_of_csv_are_chosen_as_those_of_tables(tmp_path):
    path = write(tmp_path / "a.csv", "id,de,en\n1,eins,one\n")
    assert cells(path, PAIRS._replace(columns=("en", "de"))) == [["one", "eins"]]
    assert cells(path, PAIRS._replace(columns=("3", "2"), header=True)) == [["one", "eins"]]
    with pytest.raises(UserError, match=r"a\.csv, line 1: 'label,text' looks like a header"):
        cells(write(tmp_path / "a.csv", "label,text\nx,y\n"), LABELS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one,eins\ntwo\n", r"line 2: found 1 column\. Expected 2: inputs,targets, separated by ,\."),
        ("one;eins\n;\nzwei;two;2\n", r"line 3: found 3 columns\. Expected 2: inputs;targets, separated by ;\."),
        ('one,eins\n"two"x,zwei\n', "line 2: ',' expected after '\"'. Expected quotes around a cell"),
        ('one,eins\n"two,zwei\nthree,drei\n', "line 2: unexpected end of data"),
        ("", "the file is empty"),
        (b"one,gr\xf6\n", "line 1: byte 0xf6"),
        (b"\x28\xb5\x2f\xfdxy", "damaged"),
    ],
)
def test_bad_rows_of_csv(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        cells(write(tmp_path / "a.csv", text))


def test_bad_rows_are_left_out(tmp_path):
    told = []
    text = b'one,eins\n"two"x,zwei\ngr\xf6,x\nfour\nfive,f\xc3\xbcnf\n\xef\xbf\xbd,y\n'
    expected = [["one", "eins"], ["five", "fünf"], ["\ufffd", "y"]]  # U+FFFD may be in a text
    assert cells(write(tmp_path / "a.csv", text), on_bad_line=told.append) == expected
    assert [message.partition(": ")[0][-6:] for message in told] == ["line 2", "line 3", "line 4"]
    told.clear()
    lines = [b'{"en": "a", "de": "b"}', b'{"en": "a"}', b"[1]", b"{", b'{"en": "\xff", "de": "b"}', b'{"en": "c"']
    path = write(tmp_path / "a.jsonl", b"\n".join(lines) + b', "de": 4}')
    assert cells(path, on_bad_line=told.append) == [["a", "b"], ["c", "4"]]
    assert [message.partition(": ")[0][-6:] for message in told] == ["line 2", "line 3", "line 4", "line 5"]


def test_fields_of_json_lines_are_chosen_by_name(tmp_path):
    rows = [{"id": 1, "en": "one\ntwo", "de": "eins", "label": "x", "text": "t", "translation": {"en": "1", "de": "2"}}]
    path = write(tmp_path / "a.JSONL", "\n".join([*map(json.dumps, rows), "", ""]))
    assert cells(path) == [["one two", "eins"]]
    assert cells(path, PAIRS._replace(fields=("de", "id"))) == [["eins", "1"]]
    assert cells(path, PAIRS._replace(fields=("translation.en", "translation.de"))) == [["1", "2"]]
    assert cells(path, PAIRS._replace(columns=("text", "en"))) == [["t", "one two"]]
    assert cells(path, LABELS) == [["x", "t"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"en": "a"}', r"a\.jsonl, line 2: no field 'de', only 'en'\. .*--fields=en,de"),
        ('{"en": "a", "De": "b"}', "line 2: no field 'de', only 'en', 'De'. Nearest: en, De. Name the fields"),
        ('["a", "b"]', r"line 2: .*Expected an object in each line"),
        ('{"en": "a", "de": null}', "line 2: the field 'de' is None. Expected a text"),
        ('{"en": "a", "de": true}', "the field 'de' is True"),
        ('{"en": "a", "de": ["b"]}', "line 2: the field 'de' is"),
        ('{"en": "a", "de": "\\ud800"}', "line 2: the field 'de' is"),
        ('{"en": "a", "en": "b", "de": "c"}', "line 2"),
        ("[" * 100_000, "line 2"),
        ('{"en": "a", "de"', "line 2"),
        ('{"en": "a", "de": " "}', "line 2: the field 'de' is blank"),
    ],
)
def test_bad_lines_of_json(tmp_path, line, message):
    with pytest.raises(UserError, match=message):
        cells(write(tmp_path / "a.jsonl", f'{{"en": "one", "de": "eins"}}\n{line}\n'))


def cells_of(folder, text, layout=LABELS, name="a.csv", **options):
    return cells(write(folder / name, text), layout, **options)


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
    assert cells_of(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("good;a\nbad,b\n", ()),
        ("good;a, b\nbad;c, d\n", ()),
        ("3,5;a\n4,0;b\n", ()),
        ("1;a, b, c;good\n2;d, e, f;bad\n", ("3", "2")),
        ("1,a;good;x\n2;b,bad,x\n", ()),
        ("good;a,b\nbad;c,d\nbad,e;f,g;h", ()),
    ],
)
def test_the_user_is_asked_where_several_would_do(tmp_path, text, columns):
    question = r"a\.csv: commas or semicolons may .*: --separator=comma or --separator=semicolon\."
    with pytest.raises(UserError, match=question):
        cells_of(tmp_path, text, LABELS._replace(columns=columns))


def test_the_user_s_word_counts(tmp_path):
    text = "sep=,\ngood;a, b\nbad;c, d\n"
    semicolons = LABELS._replace(separator="semicolon")
    assert cells_of(tmp_path, text, semicolons) == [["good", "a, b"], ["bad", "c, d"]]
    assert cells_of(tmp_path, text.partition("\n")[2], semicolons, "a.tsv") == [["good", "a, b"], ["bad", "c, d"]]
    commas = LABELS._replace(separator="comma")
    assert cells_of(tmp_path, text, commas) == [["good;a", "b"], ["bad;c", "d"]]


def test_names_of_columns_are_in_the_header(tmp_path):
    named = LABELS._replace(columns=("label", "text"))
    text = "id;text;label\n1;a, b;good\n2;c, d;bad\n"
    assert cells_of(tmp_path, text, named) == [["good", "a, b"], ["bad", "c, d"]]
    with pytest.raises(UserError, match=r"line 1: no column 'lable' in the header"):
        cells_of(tmp_path, text, named._replace(columns=("lable", "text"), separator="semicolon"))


def test_a_bad_line_is_named_where_the_others_show_the_separator(tmp_path):
    text = "good;a, b\nbad;c\nbad\ngood;d\n"
    with pytest.raises(UserError, match=r"line 3: found 1 column. Expected 2: label;text, separated by ;"):
        cells_of(tmp_path, text)
    told = []
    assert len(cells_of(tmp_path, text, on_bad_line=told.append)) == 3 and "line 3" in told[0]
    with pytest.raises(UserError, match=r"line 1: found 1 column. Expected 2"):
        cells_of(tmp_path, "good\nbad\n")


@pytest.mark.parametrize(("size", "count"), [(1, FIRST_LINES), (300_000, 4)])
def test_lines_behind_the_first_ones_do_not_count(tmp_path, size, count):
    rows = [f"good;{'a' * size}"] * count + ["good;a, b;c"] * 2 * count
    layout = LABELS._replace(columns=("1", "2"), header=False)
    assert cells_of(tmp_path, "\n".join(rows), layout)[-1] == ["good", "a, b"]


def test_a_cell_may_be_long(tmp_path):
    """Python's csv refuses those above 131,072 characters otherwise."""
    assert cells_of(tmp_path, f'good,"{"x" * 200_000}"\n') == [["good", "x" * 200_000]]


def test_only_the_first_lines_are_looked_at(tmp_path):
    """A quoted cell may go on behind them, and a later line may have any number of separators."""
    rows = ["good;a, b", "bad;c"] * (FIRST_LINES // 2 - 1)
    rows = [*rows, "bad;d", 'good;"e\nf"', "bad;g, h", 'bad;"i"']
    assert cells_of(tmp_path, "\n".join(rows))[-3:] == [["good", "e f"], ["bad", "g, h"], ["bad", "i"]]


def test_a_carriage_return_within_a_line_is_a_space(tmp_path):
    assert cells_of(tmp_path, "good,a\rb\nbad,c\r\n") == [["good", "a b"], ["bad", "c"]]
