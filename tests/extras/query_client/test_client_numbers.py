"""Numbers of a client of servers are checked as those of a search here: nothing is rounded, cut or wrapped."""

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.query_client.client import Client, Servable, open_client


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


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("seed", 1.9), ("seed", 2**31), ("seed", True), ("extra_length", 2**40), ("alpha", float("nan"))],
)
def test_a_number_that_cannot_be_is_refused(name, wrong):
    options = {"extra_length": 3, "alpha" if name == "extra_length" else name: 1} | {name: wrong}
    with pytest.raises(UserError, match=rf"^{name}="):
        Client(Transport()).translate(["a"], **options)


def test_numpys_numbers_and_texts_are_those_of_python():
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
