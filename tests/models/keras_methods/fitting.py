"""Training and evaluation: whatever way the data comes, the loss is that of its definition, and weights follow it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers.equations import array
from tests.models.keras_methods.table import SMALLEST, method, same, split

BY_ONE = {"batch_size": 3, "shuffle": False, "verbose": 0}  # three rows are one step
WEIGHTS = np.array([1, 0.5, 2], "float32")


def by_hand(case, steps=1, rate=0.1, x=None, y=None):
    """Returns (losses, weights) of a loop that is written out: gradient descent on the loss of a batch."""
    model, losses = case.fresh(), []
    model.compile(loss=case.loss())
    for _ in range(steps):
        with tf.GradientTape() as tape:
            outputs = model(case.x if x is None else x, training=True)
            loss = model.compute_loss(case.x if x is None else x, case.y if y is None else y, outputs)
        losses.append(float(loss))
        trained = model.trainable_variables
        for weight, gradient in zip(trained, tape.gradient(loss, [w.value for w in trained]), strict=True):
            if gradient is not None:
                weight.assign_sub(rate * tf.convert_to_tensor(gradient))
    return losses, model.get_weights()


def check_is_by_hand(case, losses, model, tolerance=1e-5):
    expected, weights = by_hand(case, len(losses))
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    same(model.get_weights(), weights, tolerance)


@method("fit", "compile", "train_step", "compute_loss", "make_train_function")
def fit(case):
    value = case.value(case.model, training=True)
    model = case.compiled()
    losses = model.fit(case.x, case.y, epochs=2, **BY_ONE).history["loss"]
    assert losses[0] == pytest.approx(value, rel=1e-5)
    check_is_by_hand(case, losses, model)


@method("run_eagerly", models=SMALLEST)
def fit_in_a_graph(case):
    model = case.compiled(run_eagerly=False)
    losses = model.fit(case.x, case.y, epochs=2, **BY_ONE).history["loss"]
    check_is_by_hand(case, losses, model)


@method("jit_compile", models=SMALLEST)
def fit_with_jit_compile(case):
    if not case.model.supports_jit:
        pytest.skip("the number of its logits depends on the values of the targets")
    model = case.compiled(run_eagerly=False, jit_compile=True)
    losses = model.fit(case.x, case.y, epochs=2, **BY_ONE).history["loss"]
    check_is_by_hand(case, losses, model, 1e-4)


@method(models=SMALLEST)
def fit_with_several_steps_per_execution(case):
    model = case.compiled(run_eagerly=False, steps_per_execution=2)
    data = tf.data.Dataset.from_tensors((case.x, case.y)).repeat(4)
    losses = model.fit(data, epochs=1, verbose=0).history["loss"]
    expected, weights = by_hand(case, 4)
    assert losses[0] == pytest.approx(np.mean(expected), rel=1e-4)
    same(model.get_weights(), weights, 1e-5)


class Batches(keras.utils.PyDataset):
    """The same batch, two times."""

    def __init__(self, *batch):
        super().__init__()
        self.batch = batch

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.batch


@method()
def fit_on_any_kind_of_data(case):
    batch = case.x, case.y
    _, weights = by_hand(case, 2)
    for data in (Batches(*batch), (batch for _ in range(2)), tf.data.Dataset.from_tensors(batch).repeat(2)):
        model = case.compiled(model=case.fresh())
        model.fit(data, steps_per_epoch=2, verbose=0, shuffle=False)
        same(model.get_weights(), weights, 1e-5)


@method("evaluate", "test_step", "make_test_function", "compute_metrics", "metrics", "metrics_names", "loss")
def evaluate(case):
    model = case.compiled(weighted_metrics=case.metrics())
    found = model.evaluate(case.x, case.y, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(case.value(model), rel=1e-5)
    assert "loss" in model.metrics_names and len(found) >= 2
    by_rows = model.evaluate(case.x, case.y, batch_size=1, verbose=0, return_dict=True)
    of_rows = [case.value(model, *split((case.x, case.y), slice(i, i + 1))) for i in range(3)]
    assert by_rows["loss"] == pytest.approx(np.mean(of_rows), rel=1e-5)
    for name in found.keys() - {"loss", "targets_loss", "sentence_loss"}:
        assert by_rows[name] == pytest.approx(found[name], rel=1e-5)


@method()
def validation(case):
    model = case.compiled()
    history = model.fit(case.x, case.y, validation_split=0.34, batch_size=2, shuffle=False, verbose=0).history
    first, last = split((case.x, case.y), slice(0, 1)), split((case.x, case.y), slice(1, 3))
    assert history["val_loss"][0] == pytest.approx(case.value(model, *last), rel=1e-5)
    assert history["loss"][0] == pytest.approx(case.value(case.fresh(), *first, training=True), rel=1e-5)
    model = case.compiled()
    history = model.fit(case.x, case.y, validation_data=(case.x, case.y), **BY_ONE).history
    assert history["val_loss"][0] == pytest.approx(case.value(model), rel=1e-5)


@method()
def sample_weight(case):
    model = case.compiled(keras.optimizers.SGD(0.0))
    weights = WEIGHTS if not isinstance(case.y, dict) else dict.fromkeys(case.y, WEIGHTS)
    evaluated, trained = (case.value(model, weights=WEIGHTS, training=training) for training in (False, True))
    assert abs(evaluated - case.value(model)) > 1e-3
    found = [
        model.fit(case.x, case.y, sample_weight=weights, **BY_ONE).history["loss"][0],
        model.train_on_batch(case.x, case.y, sample_weight=weights),
        model.fit(tf.data.Dataset.from_tensors((case.x, case.y, weights)), verbose=0).history["loss"][0],
        model.evaluate(case.x, case.y, sample_weight=weights, verbose=0),
    ]
    np.testing.assert_allclose([np.ravel(each)[0] for each in found], [*[trained] * 3, evaluated], rtol=1e-5)


@method("predict", "predict_step", "make_predict_function")
def predict(case):
    model, expected = case.compiled(), case.logits(case.model)
    same(case.predictions(model.predict(case.x, verbose=0)), expected)
    same(case.predictions(model.predict(case.x, batch_size=2, verbose=0)), expected)
    same(case.predictions(model.predict(tf.data.Dataset.from_tensors(case.x), verbose=0)), expected)


@method("train_on_batch", "test_on_batch", "predict_on_batch", "reset_metrics", "get_metrics_result")
def on_batch(case):
    model = case.compiled()
    value = case.value(model)
    assert model.test_on_batch(case.x, case.y, return_dict=True)["loss"] == pytest.approx(value, rel=1e-5)
    same(case.predictions(model.predict_on_batch(case.x)), case.logits(model))
    model.reset_metrics()
    loss = model.train_on_batch(case.x, case.y, return_dict=True)["loss"]
    assert float(model.get_metrics_result()["loss"]) == pytest.approx(float(loss))
    check_is_by_hand(case, [loss], model)


@method("trainable_weights", "non_trainable_weights", "trainable")
def frozen_layers(case):
    for place in (0, -1):
        model = case.fresh()
        layer = [layer for layer in model.layers if layer.trainable_weights][place]
        layer.trainable = False
        fixed = {id(weight) for weight in layer.weights}
        assert fixed.isdisjoint(map(id, model.trainable_weights))
        case.compiled(model=model).fit(case.x, case.y, **BY_ONE)
        moved = [id(w) for w, old in zip(model.weights, case.start, strict=True) if not np.array_equal(array(w), old)]
        assert moved and fixed.isdisjoint(moved)


@method("non_trainable_variables")
def a_frozen_model(case):
    model = case.fresh()
    model.trainable = False
    assert model.trainable_weights == [] and len(model.non_trainable_weights) == len(model.weights)
    before = model.get_weights()
    case.compiled(model=model).fit(case.x, case.y, **BY_ONE)
    same(model.get_weights(), before, 0)
    model.trainable = True
    assert len(model.trainable_weights) == len(case.model.trainable_weights)
    case.compiled(model=model).fit(case.x, case.y, **BY_ONE)
    assert any(not np.array_equal(one, other) for one, other in zip(model.get_weights(), before, strict=True))


@method()
def gradient_accumulation(case):
    model = case.compiled(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2))
    before = model.get_weights()
    model.train_on_batch(case.x, case.y)
    same(model.get_weights(), before, 0)
    model.train_on_batch(case.x, case.y)
    same(model.get_weights(), by_hand(case, 1)[1], 1e-5)  # the mean of two equal gradients


@method()
def loss_scale(case):
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=64.0)
    model = case.compiled(optimizer)
    loss = model.train_on_batch(case.x, case.y)
    check_is_by_hand(case, [np.ravel(loss)[0]], model)
    of_halves = case.fresh(dtype="mixed_float16")
    case.compiled(auto_scale_loss=True, model=of_halves)
    assert isinstance(of_halves.optimizer, keras.optimizers.LossScaleOptimizer)
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=64.0)
    case.compiled(optimizer, of_halves)
    assert np.ravel(of_halves.train_on_batch(case.x, case.y))[0] == pytest.approx(np.ravel(loss)[0], rel=0.05)
    assert any(not np.array_equal(one, other) for one, other in zip(of_halves.get_weights(), case.start, strict=True))


@method()
def custom_loop(case):
    losses, weights = by_hand(case, 2)
    assert losses[0] == pytest.approx(case.value(case.model, training=True), rel=1e-5)
    model, optimizer = case.fresh(), keras.optimizers.SGD(0.1)
    model.compile(loss=case.loss())
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(case.x, case.y, model(case.x, training=True))
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))
    same(model.get_weights(), weights, 1e-5)
