"""What Keras' own models can do, every model here can do: the table of `tests.models.keras_methods`."""

import pytest

from tests.models.every_model import ROWS
from tests.models.keras_methods import callbacks, describing, files, fitting, places  # noqa: F401  (parts of the table)
from tests.models.keras_methods.plain import PLAIN
from tests.models.keras_methods.table import METHODS, Case, without_dropout

MODELS = ROWS | PLAIN


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """A row's name and its model, with the weights that each method begins with."""
    made = MODELS[request.param].make(**without_dropout(MODELS[request.param]))
    return request.param, made, made.get_weights()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.few(*found.models, *PLAIN)) for name, found in METHODS.items()]
)
def test_every_model_can_do_what_keras_own_can(model, name, tmp_path):
    row, made, weights = model
    found = METHODS[name]
    if row in PLAIN and found.beyond:
        pytest.skip(found.beyond)
    made.set_weights(weights)
    found.check(Case(MODELS[row], made, tmp_path))
