"""What Keras' own models can do, every model here can do: the table of `tests.models.keras_methods`."""

import keras
import pytest

from t2t_lite.layers import dropout_seed
from tests.models.every_model import CORE, ROWS
from tests.models.keras_methods import callbacks, describing, files, fitting, places  # noqa: F401  (its rows)
from tests.models.keras_methods.left_out import LEFT_OUT
from tests.models.keras_methods.plain import PLAIN
from tests.models.keras_methods.table import METHODS, Case, without_dropout

MODELS = ROWS | PLAIN
CASES = [
    pytest.param(row, name, id=f"{row}-{name}", marks=pytest.mark.few(*method.models, *PLAIN))
    for row in MODELS
    for name, method in METHODS.items()
    if row in CORE or (method.of_kinds and row in ROWS) or (row in PLAIN and not method.beyond)
]


@pytest.fixture(scope="module")
def row(request):
    """A row of models, its model, and the weights that each method begins with."""
    made = MODELS[request.param].make(**without_dropout(MODELS[request.param]))
    return MODELS[request.param], made, made.get_weights()


@pytest.mark.slow
@pytest.mark.parametrize("row, name", CASES, indirect=["row"])
def test_every_model_can_do_what_keras_own_can(row, name, tmp_path):
    kind, model, weights = row
    model.set_weights(weights)
    with dropout_seed(0, 0):  # what is drawn in training, such as the noise of experts, is the same each time
        METHODS[name].check(Case(kind, model, tmp_path))


def test_every_public_method_of_keras_is_in_the_table_or_left_out():
    covered = {name for method in METHODS.values() for name in method.covers}
    public = {name for kind in (keras.Model, keras.callbacks) for name in dir(kind) if not name.startswith("_")}
    assert public - covered == LEFT_OUT.keys() & public and not covered & LEFT_OUT.keys()
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("name", [name for name, (_, attempt) in LEFT_OUT.items() if attempt])
def test_what_is_left_out_a_plain_model_cannot_do_either(name):
    (row,) = PLAIN.values()
    model = row.make()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
    with pytest.raises(Exception):  # noqa: B017  (of each its own)
        LEFT_OUT[name][1](model, row.batch())
