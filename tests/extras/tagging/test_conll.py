"""CoNLL's columns and CoNLL-U: what is a word, and what is not."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.tagging.conll import LAYOUT, read_conll

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
    with pytest.raises(UserError, match=r"line 4: found 10 columns, the tag is _\. .*--columns=FORM,XPOS"):
        read(tmp_path, untagged)
    plus = "# global.columns = ID FORM NER\n1\tAda\tB-PER\n2\truns\tO\n"
    assert read(tmp_path, plus, layout=LAYOUT._replace(columns=("FORM", "NER"))) == [[("Ada", "B-PER"), ("runs", "O")]]


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
    assert read(tmp_path, "a\tN=1\n\n#b\tN=2\n") == [[("a", "N=1")], [("#b", "N=2")]]


def test_headers_and_numbered_words_are_what_is_said_of_them(tmp_path):
    header = "token\ttag\nAda\tA\n"
    assert read(tmp_path, header, layout=LAYOUT._replace(header=True)) == [[("Ada", "A")]]
    assert read(tmp_path, header, layout=LAYOUT._replace(header=False))[0][0] == ("token", "tag")
    assert read(tmp_path, header, layout=LAYOUT._replace(columns=("tag", "token"))) == [[("A", "Ada")]]
    numbered = "1\tAda\tx\tA\n2\truns\ty\tB\n"
    assert read(tmp_path, numbered, layout=LAYOUT._replace(columns=("2", "4"))) == [[("Ada", "A"), ("runs", "B")]]


def test_sentences_with_bad_lines_are_left_out(tmp_path):
    told = []
    text = b"a A\nb\n\nc C\n\nd \xff\ne E\n\nf F\n"
    assert read(tmp_path, text, on_bad_line=told.append) == [[("c", "C")], [("f", "F")]]
    assert ["line 2" in told[0] or "line 6" in told[0], len(told)] == [True, 2]
