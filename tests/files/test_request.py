"""What is asked for and what is there, compared by name."""

from t2t_lite.files.request import Difference, Request


def test_the_differences_are_told_in_the_order_of_what_is_there():
    request = Request({"num_heads": 8, "new": True, "same": [1]}, {"same": [1], "num_heads": 4, "old": "x"})
    assert request.changes == {"num_heads": [4, 8], "old": ["x", None], "new": [None, True]}
    assert request.difference() == "num_heads: 4 -> 8, old: x -> None, new: None -> True"
    assert request.first == Difference("num_heads", stored=4, requested=8)


def test_only_the_named_ones_are_compared_in_their_order():
    request = Request({"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 1, "c": 4, "d": None}, ["b", "a", "d"])
    assert list(request.changes) == ["b", "a"]
    request = Request({"a": 1}, {"a": 1, "b": None})  # a missing one is None
    assert (request.changes, request.first, request.difference()) == ({}, None, "")
