"""CoNLL's columns and CoNLL-U: what is a word, and what is not."""

import pytest

from t2t_lite.extras.tagging.conll import LAYOUT, read_conll
from tests.extras.damaged_files import check_damage

U = """# newdoc id = a
# text = Don't go to it.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tthere\tthere\tADV\tRB\t_\t_\t_\t3:x\t_

# a comment\twith a tab
1\t#\t#\tSYM\t#\t_\t0\troot\t_\t_
"""


def read(tmp_path, text, **options):
    (tmp_path / "a.conll").write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read_conll(str(tmp_path / "a.conll"), **options)
    return [list(zip(sentence.words, sentence.tags, strict=True)) for sentence in found]


def test_conll_u(tmp_path):
    first = [("Do", "AUX"), ("n't", "PART"), ("go", "VERB")]
    assert read(tmp_path, U) == [first, [("#", "SYM")]]
    layout = LAYOUT._replace(columns=("FORM", "XPOS"))
    assert read(tmp_path, U, layout=layout)[0] == [("Do", "VB"), ("n't", "RB"), ("go", "VB")]
    assert read(tmp_path, U, layout=LAYOUT._replace(columns=("3", "8")))[0][0] == ("do", "aux")
    untagged = U.replace("AUX", "_")
    assert [word for word, _ in read(tmp_path, untagged, with_tags=False)[0]] == ["Do", "n't", "go"]
    with_underscores = LAYOUT._replace(columns=("FORM", "FORM"))
    assert read(tmp_path, U.replace("\tDo\t", "\t_\t"), layout=with_underscores)[0][0] == ("_", "_"), "a word may be _"
    plus, layout = "# global.columns = ID FORM NER\n", LAYOUT._replace(columns=("FORM", "NER"))
    expected = [[("Ada", "B-PER"), ("runs", "O")]]
    assert read(tmp_path, f"{plus}1\tAda\tB-PER\n2\truns\tO\n", layout=layout) == expected
    assert read(tmp_path, f"{plus}\n1\tAda\tB-PER\n2\truns\tO\n", layout=layout) == expected, "in a block of its own"


@pytest.mark.parametrize(
    "text",
    [
        "# id 5f6d\tdomain=en\nAda _ _ B-PER\nruns _ _ O\n\n# id 77\tdomain=en\n# _ _ O\n",
        "# id 5f6d\tdomain=en\nAda\tB-PER\nruns\tO\n\n# sentence 2\tdomain=en\n#\tO\n",
        "#doc\tdomain=en\nAda\tB-PER\nruns\tO\n\n# \n#\tO\n",
        "# This is a corpus.\n\n# sent_id = 1\nAda B-PER\nruns O\n\n# O\n",
        "-DOCSTART- -X- O\n\n# text = x\nAda NNP B-PER\nruns VBZ O\n\n# # O\n",
    ],
)
def test_comments_are_no_words_and_number_signs_are(tmp_path, text):
    assert read(tmp_path, text) == [[("Ada", "B-PER"), ("runs", "O")], [("#", "O")]]


def test_number_signs_within_and_alone(tmp_path):
    assert read(tmp_path, "#hashtag\tO\nx\tO\n# \tO\n") == [[("#hashtag", "O"), ("x", "O"), ("#", "O")]]
    assert read(tmp_path, "#one\tO\n#two\tA\n") == [[("#one", "O"), ("#two", "A")]]
    assert read(tmp_path, "# text = x\n\n") == []
    assert read(tmp_path, "ein\tCase=Nom\n\n#\tCase=Nom\n") == [[("ein", "Case=Nom")], [("#", "Case=Nom")]]
    assert read(tmp_path, "a\tN=1\n\n#b\tN=2\n") == [[("a", "N=1")], [("#b", "N=2")]]


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("token\ttag\nAda\tA\n", {"header": True}, [("Ada", "A")]),
        ("token\ttag\nAda\tA\n", {"header": False}, [("token", "tag"), ("Ada", "A")]),
        ("token\ttag\nAda\tA\n", {"columns": ("tag", "token")}, [("A", "Ada")]),
        ("1\tAda\tx\tA\n2\truns\ty\tB\n", {"columns": ("2", "4")}, [("Ada", "A"), ("runs", "B")]),
        ("2\tAda\tA\n1\truns\tB\n", {}, [("2", "A"), ("1", "B")]),  # they number nothing
        ("1\tx\tA\n", {}, [("1", "A")]), ("1\tA\n2\tB\n", {}, [("1", "A"), ("2", "B")]),  # numbers may be words
    ],
)  # fmt: skip
def test_headers_and_numbered_words_are_what_is_said_of_them(text, changes, expected, tmp_path):
    assert read(tmp_path, text, layout=LAYOUT._replace(**changes)) == [expected]


def test_a_column_of_words_is_enough_without_tags(tmp_path):
    assert [[word for word, _ in found] for found in read(tmp_path, "Ada\nruns\n\n#x\n", with_tags=False)] == [
        ["Ada", "runs"], ["#x"]
    ]  # fmt: skip
    found = read(tmp_path, "Ada\tNN\nruns\tVB\n", with_tags=False, layout=LAYOUT._replace(columns=("1", "7")))
    assert [word for word, _ in found[0]] == ["Ada", "runs"], "the column of tags need not exist"


def test_sentences_with_bad_lines_are_left_out(tmp_path):
    told = []
    text = b"\xfe A\n\na A\nb\n\nc C\n\nd \xff\ne E\n\nf F\n"
    assert read(tmp_path, text, on_bad_line=told.append) == [[("c", "C")], [("f", "F")]]
    assert [message.split(", ")[1].split(":")[0] for message in told] == ["line 1", "line 4", "line 8"]


COLUMNS = LAYOUT._replace(columns=("1", "3"))
DAMAGED = {
    "no tag": ("a X\nb\n", LAYOUT, ", line 2: found 1 column[.].* 2, "),
    "another width": ("a X\nb Y\n\nc P X\n", LAYOUT, ", line 4: found 3 columns[.].* 2,"),
    "a blank word": ("a\tX\n\tY\n", LAYOUT, ", line 2: found 2 columns, one of them blank"),
    "a blank tag": ("a\tx\tX\nb\ty\t \n", LAYOUT, ", line 2: found 3 columns, one of them blank.* 3,"),
    "a header": ("token\ttag\nAda\tA\n", LAYOUT, ", line 1: 'token<TAB>tag' looks like a header"),
    "a header behind a comment": ("# x\nlemma\ttag\nAda\tA\n", LAYOUT, ", line 2: 'lemma<TAB>tag'"),
    "numbers": ("1\tAda\tx\tA\n2\truns\ty\tB\n", LAYOUT, ", line 1: .*numbers the words.*--columns=2,4"),
    "fewer columns": ("a\tX\n", COLUMNS, ", line 1: found 2 columns.*--columns=1,3"),
    "no tag in CoNLL-U": (U.replace("AUX", "_"), LAYOUT, ", line 4: .* the tag is _.*--columns=FORM,XPOS"),
    "fewer in CoNLL-U": (U.replace("\troot\t_\t_\n3.1", "\n3.1"), LAYOUT, ", line 6: found 7 columns[.].* 10 of "),
    "blanks in CoNLL-U": (U + U[-25:].replace("\t", " "), LAYOUT, ", line 11: found 1 column[.].* 10 of "),
    "no such name": (U, LAYOUT._replace(columns=("FORM", "NER")), ", line 3: .*NER"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_damage_is_named(kind, tmp_path):
    content, layout, words = DAMAGED[kind]
    check_damage(lambda path: [*read_conll(path, layout=layout)], tmp_path, content, words)


def test_a_column_may_hold_any_character_but_a_blank(tmp_path):
    first, second = "10\u00a0000 N\r\n\u6771\u4eac\u200b N\r\n \t \r\n", "x" * 100_000 + "\tO"
    found = read(tmp_path, f"\ufeff{first}{second}")
    assert found == [[("10\u00a0000", "N"), ("\u6771\u4eac\u200b", "N")], [("x" * 100_000, "O")]]
    assert [sentence.place for sentence in read_conll(str(tmp_path / "a.conll"))] == [
        f"{tmp_path}/a.conll, line {number}" for number in (1, 4)
    ]
    check_damage(
        lambda path: [*read_conll(path)], tmp_path, "a N\nb \x07 N\n", ", line 2: found 3 columns, one of them blank"
    )
