import numpy as np
import pytest

from t2t_lite.decoding.texts import check_ids, check_options, check_texts, in_batches
from t2t_lite.errors import UserError


def test_lists_and_their_like_become_lists_of_text():
    assert check_texts(["a", "ü"]) == check_texts(("a", "ü")) == check_texts(iter(["a", "ü"])) == ["a", "ü"]
    assert check_texts([]) == []
    assert check_texts(["\ud83d\ude00 \ud800"]) == ["\U0001f600 \ufffd"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("text", r"`texts` must be a list of str, received one str. For one sentence: \[text\]."),
        (b"text", "received one bytes. For one sentence"),
        (None, "received one NoneType"),
        (3, "received one int"),
        ({"a": "b"}, "received one dict"),
        (["a", b"b"], r"`texts`, item 1: must be str, received bytes. Decode it: .decode\('utf-8'\)"),
        (["a", None], "item 1: must be str, received NoneType"),
        ([["a"]], "item 0: must be str, received list"),
    ],
)
def test_anything_else_is_refused(texts, words):
    with pytest.raises(TypeError, match=words):
        check_texts(texts)


def test_an_argument_of_another_name():
    check_options(["alpha"], ["alpha", "beam_size"], "translate")
    with pytest.raises(TypeError, match=r"translate\(\) has no argument `beam`. Nearest: beam_size"):
        check_options(["alpha", "beam"], ["alpha", "beam_size"], "translate")
    with pytest.raises(TypeError, match=r"`xyz`. Expected one or more of alpha, beam_size"):
        check_options(["xyz"], ["alpha", "beam_size"], "translate")


@pytest.mark.parametrize("ids", [[5, 1, 9], (5, 1, 9), np.array([5, 1, 9], "int64"), [np.int32(5), 1, np.uint8(9)]])
def test_ids_become_a_list_of_int(ids):
    assert check_ids(ids, 10) == [5, 1, 9] and {type(i) for i in check_ids(ids, 10)} == {int}
    assert check_ids([], 10) == []


WRONG = [
    [99999999], [-1], [0], [10], [5.5], [5.0], ["a"], [None], [True], [9, True], [[5]], [[5], [5, 6]], "abc", b"abc", 5,
    None,
]  # fmt: skip


@pytest.mark.parametrize("ids", [*WRONG, [2**70], np.array(5)], ids=repr)
def test_what_is_no_id_of_the_vocabulary(ids):
    with pytest.raises(
        UserError, match=r"expected a text or a list of ids|is outside the vocabulary. Expected from 1 to 9"
    ):
        check_ids(ids, 10)


def test_eos_where_it_cannot_stand():
    with pytest.raises(UserError, match=r"id 1 is EOS.* Expected from 2 to 9"):
        check_ids([5, 1], 10, least=2)


def test_items_of_similar_length_are_a_batch():
    items = ["ccc", "a", "dddd", "b", "ee"]
    assert [*in_batches(items, 2)] == [[1, 3], [4, 0], [2]]
    longest_first = in_batches(items, lambda item: 5 - len(item), lambda item: -len(item))
    assert [*longest_first] == [[2], [0, 4], [1, 3]]
    assert [*in_batches([], 2)] == []


@pytest.mark.parametrize("size", [0, 2.5, 4097, "many", True])
def test_no_batch_has_such_a_size(size):
    with pytest.raises(UserError, match=f"batch_size={size}: .*from 1 to 4,096"):
        next(in_batches(["a"], size))
