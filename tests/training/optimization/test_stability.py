"""Steps that were skipped: counted in a row, and too many end the run with what they met."""

# Nearest tests of: t2t_lite/training/train_step.py

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_lite.errors import Failure
from t2t_lite.runs.log import RunLog
from t2t_lite.settings.config import HParams
from t2t_lite.training.optimization.stability import LossScale, SkippedSteps, make_loss_scale
from t2t_lite.training.training_data import StepBatches
from tests.training.steps import gradients, placed, step_of


def batches():
    return StepBatches([{"inputs": np.array([[n, 1]]), "targets": np.array([[n, n, 1]])} for n in (5, 6)], 0)


def result(is_skipped):
    return {"skipped": float(is_skipped), "objective": {"targets": np.inf if is_skipped else 2.0}}


def watcher(folder, most=3, save=None):
    return SkippedSteps(str(folder), RunLog(str(folder)), most, save)


def test_a_good_step_begins_the_count_anew(tmp_path):
    watched, counts = watcher(tmp_path), []
    for step, is_skipped in enumerate([0, 1, 1, 0, 1, 1, 0], 1):
        watched.watch(step, batches(), result(is_skipped))
        counts.append(watched.in_a_row)
    assert counts == [0, 1, 2, 0, 1, 2, 0]
    assert [line["step"] for line in RunLog(str(tmp_path)).read() if line["event"] == "skipped"] == [2, 3, 5, 6]


def test_steps_skipped_for_their_loss_scale_do_not_count_until_it_is_at_its_least(tmp_path):
    watched = watcher(tmp_path, 2)
    scales = (8.0, 4.0, 2.0, 1.0)
    for step, scale in enumerate(scales, 1):
        watched.watch(step, batches(), result(True) | {"loss_scale": scale})
    assert watched.in_a_row == 1
    with pytest.raises(Failure, match=r"for 2 consecutive steps, up to step 5.*mixed_bfloat16"):
        watched.watch(5, batches(), result(True) | {"loss_scale": 1.0})
    assert [line["loss_scale"] for line in RunLog(str(tmp_path)).read()] == [*scales, 1.0]


@pytest.mark.parametrize("most", [1, 3])
def test_so_many_in_a_row_end_the_run_and_leave_their_batches_and_state(tmp_path, most):
    saved = []
    watched = watcher(tmp_path, most, lambda *arguments: saved.append(arguments))
    for step in range(1, most):
        watched.watch(step, batches(), result(True))
    last = batches()
    with pytest.raises(Failure, match=f"for {most} consecutive steps, up to step {most}"):
        watched.watch(most, last, result(True))
    folder = tmp_path / f"not-finite-step-{most}"
    assert saved == [(most, last, str(folder / f"model.ckpt-{most}"))]
    kept = np.load(folder / "batches.npz")
    assert {name: kept[name].tolist() for name in kept} == {
        "inputs_0": [[5, 1]], "targets_0": [[5, 5, 1]], "inputs_1": [[6, 1]], "targets_1": [[6, 6, 1]],
    }  # fmt: skip


def test_a_machine_that_saves_nothing_leaves_nothing(tmp_path):
    with pytest.raises(Failure):
        watcher(tmp_path, 1).watch(1, batches(), result(True))
    assert [path.name for path in tmp_path.iterdir()] == ["train.log"]


VOCAB = 5


@pytest.mark.parametrize(
    "initial, skipped, expected",
    [
        (8, [0, 0, 0, 0, 0, 0, 0], [8, 8, 16, 16, 16, 32, 32]),
        (8, [0, 0, 1, 0, 0, 0], [8, 8, 4, 4, 4, 8]),  # a step that is skipped begins the count anew
        (8, [1, 1, 1, 1, 1], [4, 2, 1, 1, 1]),
        (2**24, [0, 0, 0, 1], [2**24, 2**24, 2**24, 2**23]),
        (3, [1, 1, 0, 0, 0], [1.5, 1, 1, 1, 2]),
    ],
)
def test_three_good_steps_double_it_and_one_that_is_skipped_halves_it(initial, skipped, expected):
    scale, found = LossScale(initial, growth_steps=3), []
    for is_skipped in skipped:
        scale.update(tf.constant(bool(is_skipped)))
        found.append(float(scale.value))
    assert found == expected


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "bfloat16", "float64"])
def test_only_float16_has_one(policy):
    assert make_loss_scale(HParams(dtype_policy=policy)) is None


def test_a_run_has_the_fields_defaults():
    scale = make_loss_scale(HParams(dtype_policy="mixed_float16"))
    keras_own = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    assert float(scale.value) == keras_own.initial_scale
    assert scale.growth_steps == keras_own.dynamic_growth_steps


LOUD, QUIET, PLAIN = 3, -12, 0


class Amplifier(keras.Model):
    """Logits are one vector of weights, in float16 times 2^n and again 2^n; n + 16 is a batch's first input."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.vector = self.add_weight(shape=(VOCAB,), initializer="zeros", autocast=False)

    def call(self, features, training=False):
        gain = ops.cast(ops.power(2.0, ops.cast(features["inputs"][0, 0] - 16, "float32")), self.compute_dtype)
        logits = ops.cast(self.vector, self.compute_dtype) * gain * gain
        return ops.zeros((*ops.shape(features["targets"]), VOCAB)) + ops.cast(logits, "float32")


def batch(power, targets=((1, 2, 3, 1),)):
    return {"inputs": np.array([[16 + power]], "int32"), "targets": np.array(targets, "int32")}


def make_step(replicas=1, changes="", accumulation=1, policy="mixed_float16"):
    hparams = HParams(dtype_policy=policy).parse(
        "optimizer=sgd,learning_rate_schedule=constant,label_smoothing=0,max_skipped_steps=1,"
        f"gradient_accumulation_steps={accumulation}{changes}"
    )
    return step_of(lambda: Amplifier(dtype=hparams.dtype_policy), hparams, replicas)


def gradient(step, power):
    return np.array(gradients(step, placed(step, [batch(power)]))[0])


@pytest.mark.parametrize("skipped", [True, False])
def test_a_frozen_one_stays(skipped):
    scale = LossScale(1024.0, 1)
    scale.update(tf.constant(skipped), tf.constant(True))
    assert (float(scale.value), int(scale.good_steps)) == (1024, 0)


@pytest.mark.slow
def test_small_gradients_survive_with_the_scale_and_vanish_without():
    """Of 1e-8 and less, which are 0 in float16."""
    exact = gradient(make_step(policy="float32"), QUIET)
    assert 0 < np.abs(exact).max() < 2e-8
    np.testing.assert_allclose(gradient(make_step(), QUIET), exact, rtol=2e-3)
    unscaled = gradient(make_step(changes=",mixed_precision_optimizer_init_loss_scale=1"), QUIET)
    np.testing.assert_array_equal(unscaled, np.zeros(VOCAB))


def copies(step):
    """The vector on each replica."""
    value = step.model.vector.value
    return [copy.numpy() for copy in getattr(value, "values", [value])]


@pytest.mark.slow
@pytest.mark.parametrize("replicas, accumulation", [(2, 1), (1, 2)])
def test_an_overflow_anywhere_is_a_step_skipped_by_all_with_half_the_scale(replicas, accumulation):
    """One of the step's two batches overflows, until the scale is low enough; then both count."""
    step, scales, skipped = make_step(replicas, accumulation=accumulation), [], []
    batches = [batch(PLAIN), batch(LOUD)]
    for _ in range(9):
        metrics = step(placed(step, batches))
        scales.append(float(metrics["loss_scale"]))
        skipped.append(bool(metrics["skipped"]))
        assert np.isfinite(float(metrics["objective"]["targets"]))
        if skipped[-1]:
            assert not np.any(copies(step)) and int(step.optimizer.iterations.numpy()) == 0
        else:
            break
    assert skipped[:-1] == [True] * (len(skipped) - 1) and len(skipped) > 2
    assert scales == [2.0 ** (15 - i) for i in range(len(scales))]
    assert int(step.optimizer.iterations.numpy()) == 1 and np.all(copies(step)[0][1:4])
    for copy in copies(step):
        np.testing.assert_array_equal(copy, copies(step)[0])
    exact = make_step(replicas, accumulation=accumulation, policy="float32")
    exact(placed(exact, batches))
    np.testing.assert_allclose(copies(step)[0], copies(exact)[0], rtol=2e-3)


def test_clipping_is_by_the_norm_without_the_scale():
    step = make_step(changes=",clip_grad_norm=0.01,learning_rate_constant=1")
    norm = float(step(placed(step, [batch(PLAIN)]))["gradient_norm"])
    assert norm == pytest.approx(np.linalg.norm(gradient(make_step(), PLAIN)), rel=1e-3) and norm > 0.01
    assert np.linalg.norm(copies(step)[0]) == pytest.approx(0.01, rel=1e-3)
