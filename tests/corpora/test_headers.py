"""Which columns a table that has others than expected may mean."""

import pytest

from t2t_lite.corpora.tables import Layout, header_question, likely_columns, read_table
from t2t_lite.errors import UserError

LABELS, NUMBERS = Layout(("label", "text")), Layout(("number", "text"))
PAIRS, TAGS = Layout(("inputs", "targets"), languages=("en", "de")), Layout(("word", "tag"))
LABELLED_PAIRS = Layout(("label", "first", "second"))
ROWS = [[str(n), f"the film number {n}", ("good", "bad")[n % 2]] for n in range(20)]


@pytest.mark.parametrize(
    ("layout", "names", "rows", "expected"),
    [
        (LABELS, ["id", "text", "label"], (), [2, 1]),
        (LABELS, ["id", "text", "label"], ROWS, [2, 1]),
        (LABELS, ["nr", "satz", "klasse"], ROWS, [2, 1]),
        (LABELS, None, ROWS, [2, 1]),
        (LABELS, None, [[f"{n:032x}", f"第{n}部", "ab"[n % 2]] for n in range(20)], [2, 1]),
        (LABELS, ["text", "label"], (), [1, 0]),
        (LABELS, ["text", "gold_label"], [["a b", "x"]], [1, 0]),
        (LABELS, None, ROWS[:2], None),  # any column could have the labels
        (LABELS, ["a", "b"], (), None),
        (NUMBERS, None, [[str(n), f"film {n}", str(n / 7)] for n in range(1, 20)], [2, 1]),
        (NUMBERS, ["id", "review", "stars"], (), [2, 1]),
        (PAIRS, ["id", "de", "en"], (), [2, 1]),
        (PAIRS, None, [[str(n), f"a film {n}", f"ein Film {n} war da"] for n in range(20)], [1, 2]),
        (LABELLED_PAIRS, ["idx", "sentence1", "sentence2", "label"], (), [3, 1, 2]),
        (LABELLED_PAIRS, None, [[f"a {n}", f"is longer than {n}", "ab"[n % 2]] for n in range(20)], [2, 0, 1]),
        (TAGS, ["id", "form", "lemma", "upos"], (), [1, 3]),
    ],
)
def test_columns_are_proposed_by_their_names_or_by_what_they_hold(layout, names, rows, expected):
    assert likely_columns(layout, names, rows) == expected


@pytest.mark.parametrize(
    ("cells", "proposed"),
    [
        (["label", "text"], "; --header, or names such as --columns=label,text,"),
        (["text", "label"], "; names such as --columns=label,text,"),
        (["id", "text", "label"], "; names such as --columns=label,text,"),
    ],
)
def test_the_question_about_a_header_proposes_what_works(cells, proposed):
    assert proposed in header_question("a.tsv, line 1", cells, LABELS)


@pytest.mark.parametrize(
    ("layout", "header", "row", "columns"),
    [
        (LABELS, "text\tlabel", "a film\tgood", "label,text"),
        (PAIRS, "de\ten", "eins\tone", "en,de"),
        (PAIRS, "target\tsource", "eins\tone", "source,target"),
    ],
)
def test_a_header_in_another_order_is_refused(tmp_path, layout, header, row, columns):
    path = tmp_path / "a.tsv"
    path.write_text(f"{header}\n{row}\n")
    with pytest.raises(UserError, match=rf"has another order than .* --columns={columns}\."):
        list(read_table(str(path), layout._replace(header=True)))
    chosen = layout._replace(columns=tuple(columns.split(",")))
    assert [cells for cells, _ in read_table(str(path), chosen)] == [row.split("\t")[::-1]]
