"""Spelling help and the classes of errors."""

from t2t_lite.errors import Failure, UnknownName, UserError, nearest


def test_nearest_names_the_closest_first():
    assert nearest("transformer_bas", ["lstm", "transformer_big", "transformer_base"]) == (
        "Nearest: transformer_base, transformer_big."
    )


def test_nearest_is_silent_when_nothing_is_close():
    assert nearest("zzz", ["transformer"]) == ""
    assert nearest("zzz", []) == ""


def test_an_unknown_name_is_what_users_of_registries_catch():
    error = UnknownName("problems: 'x' is not registered.")
    assert isinstance(error, KeyError)
    assert isinstance(error, UserError)
    assert isinstance(error, ValueError)
    assert str(error) == "problems: 'x' is not registered."


def test_failures_are_not_mistakes():
    assert not issubclass(Failure, UserError)
