"""Layers of users that add losses and draw random numbers: the trainer counts the former and saves states of these."""

# Nearest tests of: t2t_lite/training/objectives.py

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_lite import registry
from t2t_lite.training.objectives import objective_sums
from t2t_lite.training.run_context import generator_states, unsaved_state
from tests.training.runs import Small, log, small_trainer
from tests.training.steps import by, gradients, make_step, placed, settings


@keras.saving.register_keras_serializable("tests")
class Adding(keras.layers.Layer):
    """Adds the mean square of what it sees to the loss."""

    def call(self, inputs):
        self.add_loss(ops.mean(ops.square(inputs)))
        return inputs


@registry.register_model("runs_adding")
class RegisteredAdding(Small):
    """A regularizer, an activity regularizer and a layer that calls add_loss."""

    def __init__(self, vocab_size):
        super().__init__(vocab_size)
        self.adding = Adding()
        self.logits = keras.layers.Dense(vocab_size, kernel_regularizer="l2", activity_regularizer="l1")
        self({"targets": np.ones((1, 1), "int32")})  # has weights now

    def call(self, features, training=False):
        return self.logits(self.adding(self.embedding(features["targets"])))


@registry.register_model("runs_tensorflow_noise")
class RegisteredTensorFlowNoise(Small):
    """It draws by an operation whose state is TensorFlow's own, and by a generator that is hidden from Keras."""

    def __init__(self, vocab_size):
        super().__init__(vocab_size)
        self.hidden = SimpleNamespace(generator=keras.random.SeedGenerator(3, name="hidden"))
        self({"targets": np.ones((1, 1), "int32")})

    def call(self, features, training=False):
        x = self.embedding(features["targets"])
        x = x + keras.random.normal(ops.shape(x), seed=self.hidden.generator)
        return self.logits(x + tf.random.normal(tf.shape(x)))


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_added_losses_count_once_a_step_as_in_fit(replicas):
    """With accumulated batches, or replicas, it is their mean."""
    step = make_step(settings(accumulation=2 // replicas), replicas, "runs_adding")
    batches, model = by(2)[0], step.model
    count = sum(np.count_nonzero(batch["targets"]) for batch in batches)
    with tf.GradientTape() as tape:
        total, added = 0.0, []
        for batch in batches:
            total += objective_sums(model(batch, training=True), batch, 0.0).objective["targets"] / count
            added.append(tf.add_n(model.losses))
        loss = total + tf.add_n(added) / 2
    expected = tape.gradient(loss, [weight.value for weight in model.trainable_variables])
    found = gradients(step, placed(step, batches))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, tf.convert_to_tensor(other), rtol=1e-4, atol=1e-6)
    metrics = step(placed(step, batches))
    assert float(metrics["added"]["layers"]) == pytest.approx(float(tf.add_n(added)) / 2, rel=1e-5)


@pytest.mark.slow
def test_a_model_that_adds_nothing_has_no_further_number(eager):
    step = make_step(settings())
    assert step(placed(step, by(1)[0]))["added"] == {}


@pytest.mark.slow
def test_added_losses_are_shown(data_dir, tmp_path):
    small_trainer(data_dir, tmp_path, model="runs_adding").train(2)
    assert log(tmp_path, "progress")[0]["layer_losses"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_state_that_is_not_saved_is_said(replicas):
    step = make_step(
        settings("adam", more=",ema_decay=0.9,dtype_policy=mixed_float16"), replicas, "runs_tensorflow_noise"
    )
    draw, *hidden = unsaved_state(step)
    assert draw.startswith("RandomStandardNormal in ")
    assert hidden and all("hidden/seed_generator_state" in each for each in hidden)


@pytest.mark.slow
def test_a_run_says_what_of_it_is_not_saved(data_dir, tmp_path, caplog):
    small_trainer(data_dir, tmp_path, model="runs_tensorflow_noise").train(1)
    assert "reproducible, except for: RandomStandardNormal in " in caplog.text
    assert "state is not saved" in caplog.text


def test_known_layers_are_not_looked_into(monkeypatch):
    step = make_step(settings(dropout=0.1))
    monkeypatch.setattr(step, "graph", lambda: pytest.fail("it was traced"))
    assert generator_states(step.model) == {} and unsaved_state(step) == []
