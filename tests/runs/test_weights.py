"""Weights under names that do not depend on the process, their values in checkpoints, and their moving averages."""

# Nearest tests of: t2t_lite/runs/checkpoints.py

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.runs.checkpoints import RunCheckpoints
from t2t_lite.runs.weights import (
    Damaged,
    assign_saved,
    averaged_weights,
    averages,
    check_finite,
    check_fits,
    named_weights,
    nested,
    saved_shapes,
    shape_text,
    start_averages,
    trackable,
)
from tests.layers.equations import array
from tests.runs.small_model import optimizer_of, small_model


class Stacked(keras.Model):
    """A stack of two layers, whose names begin with the stack's, and two Dense layers without names."""

    def __init__(self):
        super().__init__()
        self.stack = keras.Sequential(
            [keras.layers.Dense(2, name="encoder_0"), keras.layers.Dense(2, name="encoder_1")], name="encoder"
        )
        self.ends = [keras.layers.Dense(2, use_bias=False), keras.layers.Dense(3)]
        self(np.ones((1, 2), "float32"))

    def call(self, x):
        return self.ends[1](self.ends[0](self.stack(x)))


def test_names_do_not_depend_on_other_models_of_the_process():
    first, second = Stacked(), Stacked()
    names = ["encoder_0/kernel", "encoder_0/bias", "encoder_1/kernel", "encoder_1/bias", "dense_0/kernel"]
    assert [*named_weights(first)] == [*named_weights(second)] == [*names, "dense_1/kernel", "dense_1/bias"]
    assert [*named_weights(small_model()[0])] == ["dense/kernel"], "a single layer has no number"
    assert named_weights(second)["dense_1/kernel"] is second.ends[1].kernel


def test_two_weights_of_one_name_are_refused():
    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.other = self.add_weight(name="same"), self.add_weight(name="same")

    with pytest.raises(ValueError, match="named same"):
        named_weights(Twice())


KERNEL = np.float32([[1 / 3, 2]])  # 1/3 has another value in each dtype


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of two models: `model` has a/kernel, LoRA's matrices and a counter; `model_2` has a/kernel."""
    one = {"a/kernel": KERNEL, "a/lora_kernel_a": [[3.0]], "a/lora_kernel_b": [[5.0, 7.0]], "count": 2**40 + 1}
    models = {"model": one, "model_2": {"a/kernel": [[11.0, 13.0, 17.0]]}}
    models = {name: trackable({n: tf.Variable(v) for n, v in values.items()}) for name, values in models.items()}
    (tmp_path / "[m]").mkdir()
    tf.train.Checkpoint(**models).write(str(tmp_path / "[m]" / "a-3"))
    return str(tmp_path / "[m]" / "a-3")


def test_values_come_back_under_their_names_in_any_dtype_and_with_lora_added(checkpoint):
    assert nested({"a/b": 1, "a/c/d": 2, "e": 3}) == {"a": {"b": 1, "c": {"d": 2}}, "e": 3}
    assert saved_shapes(checkpoint)["a/kernel"] == (1, 2) and saved_shapes(checkpoint)["count"] == ()
    assert saved_shapes(checkpoint, "model_2") == {"a/kernel": (1, 3)}
    kernel, wide = tf.Variable([[0.0, 0.0]]), tf.Variable([[0.0] * 3])
    half = tf.Variable([[0.0, 0.0]], dtype="bfloat16")
    for variable in (kernel, half):
        assign_saved(checkpoint, {"a/kernel": variable})
        expected = KERNEL.astype(variable.dtype.as_numpy_dtype)
        assert variable.numpy().dtype == expected.dtype and variable.numpy().tolist() == expected.tolist()
    assign_saved(checkpoint, {"a/kernel": wide}, "model_2")
    assert array(wide).tolist() == [[11.0, 13.0, 17.0]]
    assign_saved(checkpoint, {"a/kernel": kernel}, added={"a/kernel": ("a/lora_kernel_a", "a/lora_kernel_b", 0.5)})
    assert array(kernel).tolist() == (KERNEL + 0.5 * 3 * np.float32([[5, 7]])).tolist()


def test_what_cannot_be_read_is_damaged(tmp_path, checkpoint):
    with open(f"{checkpoint}.data-00000-of-00001", "r+b") as file:
        file.truncate(40)
    with pytest.raises((tf.errors.OpError, IndexError)):  # its end is read first
        assign_saved(checkpoint, {"a/kernel": tf.Variable([[0.0, 0.0]])})
    with open(f"{checkpoint}.index", "r+b") as file:
        file.truncate(9)
    with pytest.raises(Damaged, match=r"damaged, or a part of it is missing"):
        saved_shapes(checkpoint)
    with pytest.raises(Damaged, match=r"gone: has been deleted since .* Run the command again"):
        saved_shapes(str(tmp_path / "gone"))
    with pytest.raises(Damaged, match=r"variables: damaged, or a part of it is missing: .* Copy it again"):
        saved_shapes(str(tmp_path / "export" / "1" / "variables" / "variables"))


def test_numbers_that_are_not_finite_are_counted():
    check_finite("m", {"seed": np.array([2**62]), "name": np.array([b"nan"]), "empty": np.zeros([0])})
    with pytest.raises(Damaged, match="m: low: 2 of 3 numbers"):
        check_finite("m", {"high": np.ones(5), "low": np.array([1, np.inf, np.nan], tf.bfloat16.as_numpy_dtype)})


def test_a_checkpoint_fits_a_model_with_the_same_names_and_shapes(tmp_path):
    model = small_model()[0]
    tf.train.Checkpoint(model=trackable({"dense/kernel": tf.Variable([[1.0, 2.0]])})).write(str(tmp_path / "same"))
    check_fits(str(tmp_path / "same"), model)
    more = {"dense/kernel": tf.Variable([[1.0], [2.0]]), "dense/bias": tf.Variable(1.0)}
    tf.train.Checkpoint(model=trackable(more), two=trackable({"dense/kernel": tf.Variable([[1.0, 2.0]])})).write(
        str(tmp_path / "other")
    )
    other = str(tmp_path / "other")
    check_fits(other, model, name="two")
    check_fits(other, model, apart=["dense/bias", "dense/kernel"])
    with pytest.raises(UserError, match=r"other: does not match .*: dense/bias is a scalar there, but missing in"):
        check_fits(other, model)
    with pytest.raises(UserError, match=r"dense/kernel is 2 x 1 there, but 1 x 2 in"):
        check_fits(other, model, apart=["dense/bias"])
    assert [shape_text(shape) for shape in (None, (), (7,), (8, 16))] == ["missing", "a scalar", "7", "8 x 16"]


def averaged(decay=0.9, updates=3):
    """Returns a model after updates whose gradients are 1, its optimizer, and its weights after each update."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.BatchNormalization()])
    words = f"optimizer=sgd,learning_rate_schedule=constant,learning_rate_constant=1,ema_decay={decay}"
    optimizer, seen = optimizer_of(model, words), []
    for _ in range(updates):
        optimizer.apply([tf.ones(v.shape) for v in model.trainable_variables], model.trainable_variables)
        seen.append([v.numpy() for v in model.weights])
    return model, optimizer, seen


def test_averages_are_exponential_and_begin_with_the_first_step():
    model, optimizer, (one, two, three) = averaged()
    for i, (weight, average) in enumerate(zip(model.weights, averages(model, optimizer).values(), strict=True)):
        if weight.trainable:
            expected = 0.9 * (0.9 * one[i] + 0.1 * two[i]) + 0.1 * three[i]
            np.testing.assert_allclose(average.numpy(), expected, rtol=1e-5)
        else:
            assert average is weight, "the statistics of a normalization are not averaged"
    model, optimizer, _ = averaged(decay=0)
    assert all(a is weight for a, weight in zip(averages(model, optimizer).values(), model.weights, strict=True))


def test_before_the_first_step_the_averages_are_the_weights():
    model, optimizer, _ = averaged(updates=0)
    model.weights[0].assign(np.full((3, 2), 7.0))
    start_averages(model, optimizer)
    assert array(next(iter(averages(model, optimizer).values()))).tolist() == [[7.0, 7.0]] * 3


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_the_model_has_its_averages_for_a_while_and_is_then_what_it_was(error):
    model, optimizer, (*_, last) = averaged()
    with contextlib.suppress(KeyboardInterrupt), averaged_weights(model, optimizer):
        for weight, average in zip(model.weights, averages(model, optimizer).values(), strict=True):
            np.testing.assert_array_equal(weight.numpy(), average.numpy())
        assert not np.array_equal(model.weights[0].numpy(), last[0])
        if error:
            raise error
    for weight, value in zip(model.weights, last, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


def test_checkpoints_hold_the_averages_as_the_model_and_resume_exactly(tmp_path):
    model, optimizer, _ = averaged()
    path = RunCheckpoints(str(tmp_path), model, optimizer).save(3)
    saved = [v.numpy() for v in (*model.weights, *optimizer.variables)]
    reader = tf.train.load_checkpoint(path)
    for name, average in averages(model, optimizer).items():
        np.testing.assert_array_equal(reader.get_tensor(f"model/{name}/.ATTRIBUTES/VARIABLE_VALUE"), average.numpy())
    other, its_optimizer, _ = averaged(updates=5)
    RunCheckpoints(str(tmp_path), other, its_optimizer).restore_latest()
    for value, variable in zip(saved, (*other.weights, *its_optimizer.variables), strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
