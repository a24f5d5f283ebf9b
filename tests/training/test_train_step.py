"""One step: eight replicas equal one, accumulation equals a larger batch; masks, metrics and skipped steps."""

# Nearest tests of: t2t_lite/training/distribution.py

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.training.cluster import Cluster
from tests.training.steps import (
    SMALL,
    VOCAB,
    by,
    concatenated,
    distance,
    gradient,
    make_step,
    moved_between_devices,
    placed,
    settings,
    step_of,
    stream,
    trained,
    weights,
)


@pytest.fixture(scope="module")
def shared_step():
    """Returns a step for hyperparameters that is traced once for all tests, with all variables as at first."""
    made = {}

    def step_for(hparams):
        key = hparams.to_json()
        if key not in made:
            step = make_step(hparams)
            made[key] = step, [variable.numpy() for variable in step.variables()]
        step, first = made[key]
        for variable, value in zip(step.variables(), first, strict=True):
            variable.assign(value)
        return step

    return step_for


TOLERANCE = {"sgd": 1e-5, "adam": 1e-3}


@pytest.mark.few("language model", "adam", instead="test_accumulation_equals_the_concatenated_batch")
@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer, replicas, more, model",
    [
        ("sgd", 8, "", "transformer"),
        ("sgd", 2, ",recompute_grad=True", "transformer"),
        ("adam", 2, ",ema_decay=0.9", SMALL),
        ("sgd", 2, ",dtype_policy=mixed_bfloat16,clip_grad_norm=0.5", "transformer"),
        ("sgd", 2, ",dtype_policy=mixed_float16", "transformer"),
        ("sgd", 2, ",dtype_policy=float64", "transformer"),
        ("sgd", 2, "", "transformer_lm"),
    ],
    ids=["eight", "recomputed", "adam", "bfloat16", "float16", "float64", "language model"],
)
def test_replicas_train_as_one_that_accumulates(optimizer, replicas, more, model):
    groups = by(replicas)[:3]
    expected = trained(make_step(settings(optimizer, 0.3, replicas, more), 1, model), groups)
    step = make_step(settings(optimizer, 0.3, 1, more), replicas, model)
    assert distance(expected, trained(step, groups)) <= TOLERANCE[optimizer]
    assert step.traces == 1  # whatever the shapes


@pytest.mark.slow
def test_accumulation_equals_the_concatenated_batch(eager, shared_step):
    groups = by(2)[:3]
    expected = trained(make_step(settings("sgd", accumulation=2)), groups)
    assert distance(expected, trained(shared_step(settings("sgd")), [[concatenated(g)] for g in groups])) <= 1e-5


@pytest.mark.slow
def test_gradients_meet_in_one_collective_and_no_tensor_goes_through_one_device():
    step = make_step(settings("adam", 0.3, accumulation=2, more=",ema_decay=0.9,clip_grad_norm=0.5"), replicas=2)
    graph = step.graph()
    kinds = [operation.type for operation in graph.get_operations()]
    assert kinds.count("CollectiveReduceV2") == 2, "one for each replica, whatever the number of variables"
    assert {size for size in moved_between_devices(graph).values() if size != 1} == set()
    nodes = [node for inner in graph.as_graph_def().library.function for node in inner.node_def]
    compared = {tf.dtypes.as_dtype(node.attr["T"].type) for node in nodes if node.op in ("Equal", "NotEqual", "Less")}
    assert tf.int64 in compared and tf.int32 not in compared, "TensorFlow compares int32 ids on the host"
    trained(step, by(4) * 3)  # 18 steps
    for weight in (*step.model.weights, *step.optimizer.variables):
        first, second = (copy.numpy() for copy in weight.value.values)
        np.testing.assert_array_equal(first, second)


class Rooted(keras.Model):
    """A model whose gradient is not finite at 0, where its loss is: that of a square root; at infinity neither is."""

    def __init__(self):
        super().__init__()
        self.root = self.add_weight(shape=(VOCAB,), initializer="zeros")

    def call(self, features, training=False):
        return keras.ops.zeros((*keras.ops.shape(features["targets"]), VOCAB)) + keras.ops.sqrt(self.root)


@pytest.mark.slow
@pytest.mark.parametrize("xla_compile", [False, True])
@pytest.mark.parametrize("more", ["", ",clip_grad_norm=1"])
def test_a_gradient_or_a_loss_that_is_not_finite_changes_nothing(more, xla_compile):
    hparams = settings("adam", more=f"{more},max_skipped_steps=2,ema_decay=0.9")
    step = step_of(Rooted, hparams, xla_compile=xla_compile)
    model, optimizer = step.model, step.optimizer

    def taken(root):
        """Whether a step from weights of this size was skipped, and whether it changed anything."""
        model.root.assign(np.full(VOCAB, root))
        before = [variable.numpy() for variable in (model.root, *optimizer.variables)]
        metrics = step(placed(step, stream()[:1]))
        assert np.isfinite(float(metrics["objective"]["targets"])) == (root < np.inf)
        assert np.isfinite(float(metrics["gradient_norm"])) == (root == 1)
        after = [variable.numpy() for variable in (model.root, *optimizer.variables)]
        return float(metrics["skipped"]) == 1, not all(map(np.array_equal, before, after))

    assert taken(0.0) == (True, False)
    assert taken(1.0) == (False, True)
    assert [taken(0.0), taken(np.inf)] == [(True, False)] * 2
    assert taken(1.0) == (False, False), "after too many in a row nothing changes"


@pytest.mark.slow
def test_masks_follow_from_the_seed_and_the_batchs_place_in_the_stream(eager):
    def at(step, place):
        return gradient(step, stream()[:1] * step.accumulation, place)

    step, other, accumulating = (
        make_step(settings(dropout=0.3, accumulation=accumulation, more=f",random_seed={seed}"))
        for seed, accumulation in ((1, 1), (2, 1), (1, 2))
    )
    first, second = at(step, 0), at(step, 1)
    np.testing.assert_array_equal(at(step, 0), first)
    assert not np.allclose(second, first) and not np.allclose(at(other, 0), first)
    # Two batches of a step are two places: half of each, as the sum is divided by the tokens of both.
    np.testing.assert_allclose(at(accumulating, 0), (first + second) / 2, atol=1e-6)


@pytest.mark.slow
def test_whether_a_machine_wants_to_stop_is_told(eager, shared_step):
    step = shared_step(settings())
    assert [float(step(placed(step, stream()[:1]), stop)["stops"]) > 0 for stop in (False, True)] == [False, True]


@pytest.mark.slow
def test_clipping_bounds_the_global_gradient(eager, shared_step):
    batches = stream()[:1]
    free, clipped = shared_step(settings()), make_step(settings(more=",clip_grad_norm=0.01"))
    before = weights(clipped)
    norm = float(clipped(placed(clipped, batches))["gradient_norm"])
    # SGD at rate 1: the step is the gradient.
    assert np.linalg.norm(weights(clipped) - before) == pytest.approx(0.01, rel=1e-3)
    before, after = trained(free, [batches])
    assert np.linalg.norm(after - before) > 0.1
    assert norm == pytest.approx(np.linalg.norm(after - before), rel=1e-3)  # that before clipping


@pytest.mark.slow
def test_metrics_are_sums_over_real_tokens(eager, shared_step):
    step, batch = shared_step(settings()), stream()[0]
    arguments = placed(step, [batch])
    metrics, tokens = step(arguments), np.count_nonzero(batch["targets"])
    assert float(arguments.counts["targets"]) == tokens
    assert float(metrics["objective"]["targets"]) == pytest.approx(float(metrics["nats"]["targets"]), rel=1e-5)
    assert float(metrics["nats"]["targets"]) / tokens == pytest.approx(np.log(VOCAB), rel=0.3)
    smoothed = make_step(settings().parse("label_smoothing=0.5"))(arguments)
    assert float(smoothed["nats"]["targets"]) == pytest.approx(float(metrics["nats"]["targets"]), rel=1e-5)
    assert float(smoothed["objective"]["targets"]) < 0.9 * float(metrics["objective"]["targets"])


def test_each_batch_lies_on_the_device_of_the_replica_that_takes_it():
    step = make_step(settings(accumulation=2), replicas=2)
    batches = stream()[:4]
    arguments = placed(step, batches, 7)
    for batch, source, device in zip(arguments.batches, batches, (0, 0, 1, 1), strict=True):
        for side in ("inputs", "targets"):
            assert batch[side].device.endswith(f"CPU:{device}")
            assert batch[side].dtype == tf.int64, "which TensorFlow leaves in a GPU's memory"
            np.testing.assert_array_equal(batch[side], source[side])
    assert int(arguments.first) == 7


def test_of_several_machines_each_takes_its_own_batches():
    step = make_step(settings(accumulation=2))
    for index in (0, 1):
        step.replicas = dataclasses.replace(step.replicas, count=2, cluster=Cluster(("a:1", "b:1"), index))
        arguments = placed(step, stream()[:4])
        for batch, source in zip(arguments.batches, stream()[2 * index : 2 * index + 2], strict=True):
            np.testing.assert_array_equal(batch["targets"], source["targets"])
        assert float(arguments.counts["targets"]) == sum(np.count_nonzero(batch["targets"]) for batch in stream()[:4])
