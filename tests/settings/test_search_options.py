"""The settings of a search: what each may be, and which of them a graph holds as values or gets as tensors."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.settings.search_options import SearchOptions, kept_settings


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 3, "n_best": 3}, {"sampling": True, "n_best": 9, "beam_size": 2}, {"stop": ["x" * 100] * 16},
        {"stop": "one"}, {"banned_texts": ["ä" * 5] * 100}, {"banned_texts": " word"},
    ],
)  # fmt: skip
def test_what_is_just_allowed(options):
    made = SearchOptions(**options)
    for name in options.keys() & {"stop", "banned_texts"}:
        given = options[name]
        assert getattr(made, name) == (tuple(given) if isinstance(given, list) else (given,))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 2**31}, "seed="), ({"extra_length": 2**31}, "extra_length="),  # int32 in an export
        ({"beam_size": 2, "n_best": 3}, "n_best=3.*beam_size=2"), ({"stop": ["x"] * 17}, "stop=.*16.*100"),
        ({"stop": ["x" * 101]}, "stop=.*16.*100"), ({"stop": [""]}, "stop="), ({"stop": [3]}, r"stop=\[3\]"),
        ({"banned_texts": ["x"] * 101}, "banned_texts=.*100.*1,000"), ({"banned_texts": ["ä" * 501]}, "banned_texts="),
        ({"banned_texts": [""]}, "banned_texts="), ({"banned_texts": ["a\ufffd"]}, "banned_texts=.*U.FFFD"),
    ],
)  # fmt: skip
def test_what_is_just_refused(options, words):
    with pytest.raises(UserError, match=words):
        SearchOptions(**options)


OPTIONS = {
    "beam_size": 3, "alpha": 0.7, "extra_length": 11, "batch_size": 5, "length_penalty": "power", "n_best": 2,
    "ends": "top", "temperature": 0.9, "top_k": 13, "top_p": 0.8, "seed": 17, "no_repeat_ngram_size": 4,
    "repetition_penalty": 1.3, "stop": ("x",), "banned_texts": ("y",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("sampling", "values", "tensors"),
    [
        (False, {"beam_size", "length_penalty", "ends"}, {"alpha", "repetition_penalty"}),
        (True, {"top_k"}, {"temperature", "top_p", "repetition_penalty"}),
    ],
)
def test_options_are_values_or_tensors_of_a_graph(sampling, values, tensors):
    options = SearchOptions(**OPTIONS, sampling=sampling)
    values |= {"n_best", "no_repeat_ngram_size"}
    expected = {name: OPTIONS[name] for name in values} | ({"sampling": True} if sampling else {})
    assert options.traced().changes() == expected
    assert options.numbers() == {name: OPTIONS[name] for name in tensors}
    plain = SearchOptions(sampling=sampling)
    assert plain.numbers() == ({"temperature": 1.0} if sampling else {"alpha": 0.6})
    assert options.changes() == OPTIONS | ({"sampling": True} if sampling else {}) and not SearchOptions().changes()


def test_an_export_keeps_banned_texts_only_where_there_are_some():
    names = ("alpha", "banned_texts")
    assert kept_settings(SearchOptions(alpha=0.7), names) == {"alpha": 0.7}
    assert kept_settings(SearchOptions(alpha=0.7, banned_texts=["y"]), names) == {"alpha": 0.7, "banned_texts": ("y",)}
