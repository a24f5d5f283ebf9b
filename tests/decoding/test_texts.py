import pytest

from t2t_lite.decoding.texts import check_options, check_texts


def test_lists_and_their_like_become_lists_of_text():
    assert check_texts(["a", "ü"]) == check_texts(("a", "ü")) == check_texts(iter(["a", "ü"])) == ["a", "ü"]
    assert check_texts([]) == []
    assert check_texts(["\ud83d\ude00 \ud800"]) == ["\U0001f600 \ufffd"]
    assert check_texts(["a", None], may_be_none=True) == ["a", ""]


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
    with pytest.raises(TypeError, match=r"`xyz`. Expected some of alpha, beam_size"):
        check_options(["xyz"], ["alpha", "beam_size"], "translate")
