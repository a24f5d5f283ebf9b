"""The iterators over text files that ported problems call in `generate_samples`."""

import pytest

from t2t_lite.data import problem as text_problems
from t2t_lite.errors import UserError


@pytest.fixture
def written(tmp_path):
    """A function: writes a text into a new file and returns its path."""

    def write(text):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_lines_pairs_columns_and_texts(written):
    one, other = written("a b \n\nc\n"), written("A\n\nC\r\n")
    pairs = [{"inputs": "a b", "targets": "A"}, {"inputs": "", "targets": ""}, {"inputs": "c", "targets": "C"}]
    assert [*text_problems.txt_line_iterator(one)] == ["a b", "", "c"]
    assert [*text_problems.text2text_txt_iterator(one, other)] == pairs
    assert [*text_problems.text2self_txt_iterator(other)] == [{"targets": "A"}, {"targets": ""}, {"targets": "C"}]
    assert [*text_problems.text2text_txt_tab_iterator(written("a b\tA\nc\tC\n"))] == [pairs[0], pairs[2]]
    with pytest.raises(UserError, match="Expected equally many"):
        [*text_problems.text2text_txt_iterator(one, written("A\n"))]
    with pytest.raises(UserError, match="line 2: found 1 column"):
        [*text_problems.text2text_txt_tab_iterator(written("a\tA\nb\n"))]


def test_classes(written):
    texts = written("good\nbad\n")
    expected = [{"inputs": "good", "label": 1}, {"inputs": "bad", "label": 0}]
    assert [*text_problems.text2class_txt_iterator(texts, written("1\n0\n"))] == expected
    named = written("pos\nneg\n")
    assert [*text_problems.text2class_txt_iterator(texts, named, class_strs=["neg", "pos"])] == expected
    with pytest.raises(UserError, match=r"line 1: 'pos'\. Expected a whole number"):
        [*text_problems.text2class_txt_iterator(texts, named)]
    with pytest.raises(UserError, match=r"line 2: 'neg'\. Expected no or pos"):
        [*text_problems.text2class_txt_iterator(texts, named, class_strs=["no", "pos"])]


def test_numbers(written):
    texts = written("one\ntwo\n")
    expected = [{"inputs": "one", "targets": [1.0]}, {"inputs": "two", "targets": [2.5]}]
    assert [*text_problems.text2real_txt_iterator(texts, written("1\n2.5\n"))] == expected
    with pytest.raises(UserError, match=r"line 2: 'two'\. Expected a number"):
        [*text_problems.text2real_txt_iterator(texts, written("1\ntwo\n"))]
