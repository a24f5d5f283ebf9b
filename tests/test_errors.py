"""Spelling help and the classes of errors."""

import re

import pytest

from t2t_lite.errors import UnknownName, UserError, counted, first_line, located, nearest, needs, printable


def test_nearest_names_the_closest_first_and_is_silent_when_nothing_is_close():
    found = nearest("transformer_bas", ["lstm", "transformer_big", "transformer_base"])
    assert found == "Nearest: transformer_base, transformer_big."
    assert nearest("zzz", ["transformer"]) == ""
    assert nearest("zzz", []) == ""


def test_an_unknown_name_is_what_users_of_registries_catch():
    error = UnknownName("problems: 'x' is not registered.")
    assert isinstance(error, KeyError)
    assert isinstance(error, UserError)
    assert isinstance(error, ValueError)
    assert str(error) == "problems: 'x' is not registered."


def test_numbers_have_their_noun():
    assert [counted(n, "replica") for n in (0, 1, 2, 12345)] == [
        "0 replicas",
        "1 replica",
        "2 replicas",
        "12,345 replicas",
    ]


def test_messages_are_one_line_that_steers_no_terminal():
    assert printable("a\nb\r\nc\u2028d") == "a b c d"
    assert printable("Tür – 戸 \u200c") == "Tür – 戸 \u200c"
    for steering in ("\x1b[31m", "\0", "\x07", "\x9b", "\u202e", "\udcff", "\ud800"):
        line = printable(f"a{steering}b")
        assert line.startswith("a\\") and line.endswith("b") and line.isprintable()
    long = printable("begin " + "x" * 100_000 + " end.")
    assert len(long) < 4000 and long.startswith("begin x") and long.endswith("x end.")


@pytest.mark.parametrize("message", ["num_heads=0: expected a whole number.", "a/hparams.json: num_heads=0."])
def test_a_message_says_once_where_the_mistake_is(message):
    with pytest.raises(UserError) as caught, located("a/hparams.json"):
        raise UserError(message)
    assert str(caught.value) == f"a/hparams.json: {message.removeprefix('a/hparams.json: ')}"


@pytest.mark.parametrize(
    "error, words",
    [(ValueError("one.\ntwo"), "one"), (ValueError("\n"), "ValueError"), (KeyError(), "KeyError"),
     (OSError(28, "No space left on device", "a/b"), "No space left on device"), (ValueError("x" * 999), "x" * 300)],
)  # fmt: skip
def test_the_first_line_of_what_an_error_says(error, words):
    assert first_line(error) == words


def test_a_package_that_is_missing_and_one_that_is_broken():
    with pytest.raises(UserError) as caught, needs("Optuna", "tune", "--hparams_range"):
        import no_such_module  # noqa: F401
    assert str(caught.value) == (
        "--hparams_range needs Optuna, which is not installed. Run: pip install 't2t_lite[tune]'"
    )
    broken = "Optuna, which cannot be imported: libfoo.so is missing. Run: pip install 't2t_lite[tune]', or leave it."
    with pytest.raises(UserError, match=re.escape(broken)), needs("Optuna", "tune", "it", ", or leave it."):
        raise ImportError("libfoo.so is missing.")
