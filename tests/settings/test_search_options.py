import numpy as np
import pytest

from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.errors import UserError
from t2t_lite.settings.search_options import SearchOptions


def test_n_best_is_at_most_the_beam():
    with pytest.raises(UserError, match="beam_size=2"):
        SearchOptions(beam_size=2, n_best=3)


def test_the_longest_text_that_may_end_an_output():
    assert SearchOptions(stop=["x" * 100, "y"]).stop == ("x" * 100, "y")


def test_there_may_be_more_samples_than_beams():
    assert SearchOptions(sampling=True, n_best=9).n_best == 9


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("seed", 1.9), ("seed", -1), ("seed", 2**31), ("seed", 2**32 - 1), ("seed", True), ("seed", np.float32(1.5)),
        ("seed", "1.9"), ("seed", np.array([3])), ("seed", b"3"), ("extra_length", 2**40), ("extra_length", [3]),
        ("alpha", float("nan")), ("alpha", 10**400), ("alpha", "much"), ("alpha", np.array([1.0])), ("beam_size", None),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_is_refused_in_python_and_in_a_command(name, wrong):
    """By one declaration: nothing is rounded, cut or wrapped on the way to an export's int32."""
    with pytest.raises(UserError, match=rf"^{name}="):
        SearchOptions(**{name: wrong})
    if isinstance(wrong, int | float) and not isinstance(wrong, bool) and wrong < 10**300:
        flag = {"seed": "sampling_seed"}.get(name, name)
        with pytest.raises(UserError, match=flag):
            DecodeHParams.parse(f"{flag}={wrong},sampling_method=random")


def test_numpys_numbers_and_texts_are_those_of_python():
    options = SearchOptions(seed=np.int64(3), alpha=np.float32(0.5), sampling=np.True_, length_penalty=np.str_("power"))
    assert options == SearchOptions(seed=3, alpha=0.5, sampling=True, length_penalty="power")
