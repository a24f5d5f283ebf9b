import numpy as np
import pytest

from t2t_lite.decoding.jobs.decode_hparams import DecodeHParams
from t2t_lite.errors import UserError
from t2t_lite.extras.query_client.client import Client, Servable, open_client
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
def test_a_number_that_cannot_be_is_refused_in_python_by_the_client_and_in_a_command(name, wrong):
    """By one declaration: nothing is rounded, cut or wrapped on the way to an export's int32."""
    with pytest.raises(UserError, match=rf"^{name}="):
        SearchOptions(**{name: wrong})
    asked = Client(Transport())
    if name != "beam_size":
        options = {"extra_length": 3, "alpha" if name == "extra_length" else name: 1} | {name: wrong}
        with pytest.raises(UserError, match=rf"^{name}="):
            asked.translate(["a"], **options)
    if isinstance(wrong, int | float) and not isinstance(wrong, bool) and wrong < 10**300:
        flag = {"seed": "sampling_seed"}.get(name, name)
        with pytest.raises(UserError, match=flag):
            DecodeHParams.parse(f"{flag}={wrong},sampling_method=random")


class Transport:
    """Keeps what it is asked, which must be of the types that protocols know."""

    address, servable = "localhost:1", Servable("translate")

    def __init__(self):
        self.asked = []

    def predict(self, signature, inputs):
        assert {type(value) for values in inputs.values() for value in values} <= {str, int, float}
        self.asked.append((signature, inputs))
        count = len(inputs["inputs"])
        return {"outputs": inputs["inputs"], "scores": [0.0] * count, "truncated": [False] * count}


def test_numpys_numbers_and_texts_are_those_of_python():
    options = SearchOptions(seed=np.int64(3), alpha=np.float32(0.5), sampling=np.True_, length_penalty=np.str_("power"))
    assert options == SearchOptions(seed=3, alpha=0.5, sampling=True, length_penalty="power")
    transport = Transport()
    texts = np.array(["a", "bc"])
    found = Client(transport).translate(texts, seed=np.int64(2**31 - 1), extra_length="1e2", batch_size=np.int32(8))
    assert [type(one.text) for one in found] == [str, str]
    assert transport.asked == [
        ("with_options", {"inputs": ["a", "bc"], "seed": [2**31 - 1] * 2, "extra_length": [100] * 2})
    ]
    Client(transport).predict({"inputs": texts})


@pytest.mark.parametrize("wrong", [0, 1.5, True, "many", 2**40, None])
def test_numbers_of_a_client(wrong):
    with pytest.raises(UserError, match="batch_size="):
        Client(Transport()).translate(["a"], batch_size=wrong)
    for argument in ("retries", "timeout"):
        if (argument, wrong) not in (("retries", 0), ("timeout", 1.5)):
            with pytest.raises(UserError, match=f"{argument}="):
                open_client("http://localhost:1", Servable("translate"), **{argument: wrong})
    if wrong not in (0, None, 2**40):
        with pytest.raises(UserError, match="version="):
            Servable("translate", version=wrong)
