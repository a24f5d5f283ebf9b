"""Steps of training of every model: compiled, with recomputed activations, and on replicas."""

# Nearest tests of: t2t_lite/training/train_step.py, t2t_lite/training/objectives.py

import keras
import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.models.arguments import constructor_parameters
from t2t_lite.training.training_data import StepBatches
from tests.models.every_model import ROWS
from tests.training.steps import assert_same_gradients, row_gradients, step_of

RECOMPUTED = [
    name for name, row in ROWS.items() if "recompute_grad" in constructor_parameters(registry.model(row.name))
]


@pytest.mark.slow
@pytest.mark.few("transformer_moe")
@pytest.mark.parametrize("name", RECOMPUTED)
def test_recomputed_activations_have_the_same_gradient(name):
    """With dropout, whose masks must be the same when a layer is computed again."""
    row = ROWS[name]
    model, again = (row.make(dropout=0.3, recompute_grad=recompute) for recompute in (False, True))
    assert_same_gradients(row_gradients(row, again, row.batch()), row_gradients(row, model, row.batch()), model, 1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_a_step_that_xla_compiles_has_the_same_gradient(name):
    row = ROWS[name]
    model, batch = row.make(dropout=0.3), row.batch()
    assert_same_gradients(row_gradients(row, model, batch, in_xla=True), row_gradients(row, model, batch), model, 1e-5)


def trained(row, replicas, accumulation):
    """Returns (weights before, after) two steps by SGD of eight batches each, of unequal numbers of rows and ids."""
    hparams = registry.hparams("transformer_tiny").parse(
        "optimizer=sgd,learning_rate_schedule=constant,learning_rate_constant=0.1,label_smoothing=0,"
        f"gradient_accumulation_steps={accumulation}"
    )
    batch = row.batch()
    features = {feature: ids.ndim for feature, ids in batch.items()}
    step = step_of(lambda: row.make(dropout=0.3), hparams, replicas, features=features)
    before = [weight.numpy() for weight in step.model.trainable_weights]
    for first in (0, 8):
        step(step.place(StepBatches([batch, *(row.alone(batch, (first + n) % 3) for n in range(7))], first)))
    return before, [weight.numpy() for weight in step.model.trainable_weights]


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_eight_replicas_train_as_one_that_accumulates(name, eager):
    (before, one), (same, eight) = (trained(ROWS[name], *each) for each in ((1, 8), (8, 1)))
    for each, other in zip(before, same, strict=True):
        np.testing.assert_array_equal(each, other)
    moved, apart = (keras.ops.norm(np.concatenate([np.ravel(a - b) for a, b in zip(one, each, strict=True)]))
                    for each in (before, eight))  # fmt: skip
    assert apart <= 1e-5 * moved
