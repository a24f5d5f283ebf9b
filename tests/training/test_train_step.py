"""One step: eight replicas equal one, accumulation equals a larger batch; masks, metrics and skipped steps."""

import dataclasses
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.training.cluster import Cluster
from t2t_lite.training.distribution import choose_replicas
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import StepBatches

VOCAB = 30
BATCHES = 24


def stream(seed=0):
    """Batches whose numbers of rows and of target tokens differ a lot."""
    rng, batches = np.random.default_rng(seed), []
    for i in range(BATCHES):
        rows = rng.integers(1, 7)
        inputs = rng.integers(3, VOCAB, (rows, rng.integers(3, 9)))
        targets = rng.integers(3, VOCAB, (rows, rng.integers(2, 12)))
        targets[0, 1 + i % 2 :] = 0
        batches.append({"inputs": inputs.astype("int32"), "targets": targets.astype("int32")})
    return batches


def concatenated(batches):
    """The same examples as one batch."""
    joined = {}
    for side in ("inputs", "targets"):
        width = max(batch[side].shape[1] for batch in batches)
        padded = [np.pad(batch[side], ((0, 0), (0, width - batch[side].shape[1]))) for batch in batches]
        joined[side] = np.concatenate(padded)
    return joined


def settings(optimizer="sgd", dropout=0.0, accumulation=1, more=""):
    # GELU has no kink. With ReLU an activation within rounding of 0 may fall on either side, and change the gradient.
    rate = {"sgd": 1.0, "adam": 1e-3}[optimizer]
    return registry.hparams("transformer_tiny").parse(
        f"num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,ffn_activation=gelu,attention_dropout={dropout},"
        f"relu_dropout={dropout},layer_prepostprocess_dropout={dropout},optimizer={optimizer},label_smoothing=0,"
        f"learning_rate_schedule=constant,learning_rate_constant={rate},gradient_accumulation_steps={accumulation}{more}"
    )


def make_step(hparams, replicas=1, model="transformer"):
    chosen = choose_replicas(0, replicas)
    keras.utils.set_random_seed(1)
    with chosen.scope():
        model = registry.model(model).from_hparams(hparams, VOCAB)
        optimizer = make_optimizer(hparams, 100)
        optimizer.build(model.trainable_variables)
    return TrainStep(model, optimizer, chosen, hparams)


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


def weights(step):
    """All weights; followed by their moving averages where there are any."""
    averages = step.optimizer._model_variables_moving_average if step.optimizer.use_ema else []
    return np.concatenate([w.numpy().ravel() for w in (*step.model.trainable_variables, *averages)])


def placed(step, batches, first=0):
    return step.place(StepBatches(batches, first))


def trained(step, groups):
    """Returns (weights before, weights after) one step a group of batches."""
    before, read = weights(step), 0
    for batches in groups:
        metrics = step(placed(step, batches, read))
        assert float(metrics["skipped"]) == 0
        read += len(batches)
    return before, weights(step)


def by(count):
    batches = stream()
    return [batches[i : i + count] for i in range(0, BATCHES, count)]


def distance(one, other):
    """How far the weights are apart, over how far the first have moved."""
    np.testing.assert_array_equal(one[0], other[0])
    return np.linalg.norm(one[1] - other[1]) / np.linalg.norm(one[1] - one[0])


TOLERANCE = {"sgd": 1e-5, "adam": 1e-3}


@pytest.mark.few("language model")
@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer, replicas, more, model",
    [
        ("sgd", 8, "", "transformer"),
        ("adam", 2, ",ema_decay=0.9", "transformer"),
        ("sgd", 2, ",dtype_policy=mixed_bfloat16,clip_grad_norm=0.5", "transformer"),
        ("sgd", 2, ",dtype_policy=mixed_float16", "transformer"),
        ("sgd", 2, ",dtype_policy=float64", "transformer"),
        ("sgd", 2, "", "transformer_lm"),
    ],
    ids=["eight", "adam", "bfloat16", "float16", "float64", "language model"],
)
def test_replicas_train_as_one_that_accumulates(optimizer, replicas, more, model):
    groups = by(replicas)[:3]
    expected = trained(make_step(settings(optimizer, 0.3, replicas, more), 1, model), groups)
    step = make_step(settings(optimizer, 0.3, 1, more), replicas, model)
    assert distance(expected, trained(step, groups)) <= TOLERANCE[optimizer]
    assert step.traces == 1  # whatever the shapes


@pytest.mark.long
def test_two_replicas_that_accumulate_train_as_one():
    expected = trained(make_step(settings("sgd", 0.3, accumulation=4)), by(4)[:3])
    step = make_step(settings("sgd", 0.3, accumulation=2), replicas=2)
    assert distance(expected, trained(step, by(4)[:3])) <= TOLERANCE["sgd"]


@pytest.mark.slow
def test_accumulation_equals_the_concatenated_batch(eager, shared_step):
    groups = by(2)[:3]
    expected = trained(make_step(settings("sgd", accumulation=2)), groups)
    assert distance(expected, trained(shared_step(settings("sgd")), [[concatenated(g)] for g in groups])) <= 1e-5


@pytest.mark.long
def test_recomputed_activations_give_the_same_step():
    groups = by(2)[:3]
    expected = trained(make_step(settings("sgd", 0.3, accumulation=2)), groups)  # with the same masks
    recomputed = trained(make_step(settings("sgd", 0.3, accumulation=2, more=",recompute_grad=True")), groups)
    assert distance(expected, recomputed) <= TOLERANCE["sgd"]


def moved_between_devices(graph):
    """Returns {operation: numbers} that pass from one device to an operation on another, in no collective.

    Arguments are not counted, whose devices are known only in a call (test_loop.py has a trace of one); a variable is
    read on its own device.
    """
    graph = graph.as_graph_def(add_shapes=True)
    moved = {}
    for nodes in (graph.node, *(inner.node_def for inner in graph.library.function)):
        known = {node.name: node for node in nodes}
        for node in nodes:
            for source in (known.get(name.partition(":")[0]) for name in node.input):
                if not node.device or source is None or source.device == node.device:
                    continue
                if source.op in ("Placeholder", "ReadVariableOp"):
                    continue
                shapes = source.attr["_output_shapes"].list.shape
                sizes = [math.prod(dim.size for dim in shape.dim) for shape in shapes if not shape.unknown_rank]
                moved[f"{node.name} ({node.device[-5:]})"] = max(sizes, default=-1)
    return moved


@pytest.mark.few("sgd")
@pytest.mark.slow
@pytest.mark.parametrize("optimizer, more", [("adam", ",ema_decay=0.9,clip_grad_norm=0.5"), ("sgd", "")])
def test_gradients_meet_in_one_collective_and_no_tensor_goes_through_one_device(optimizer, more):
    step = make_step(settings(optimizer, 0.3, accumulation=2, more=more), replicas=2)
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


def gradient(step, batches, first=0):
    found = step.gradients(placed(step, batches, first))
    return np.concatenate([tf.convert_to_tensor(one).numpy().ravel() for one in found])


@pytest.mark.long
def test_the_gradient_of_replicas_is_that_by_the_tokens_of_all():
    """No mean of their means, no average, and not the same masks: each of these mistakes would be far off."""
    batches, one = stream()[:2], make_step(settings(dropout=0.3))
    tokens = np.array([np.count_nonzero(batch["targets"]) for batch in batches])
    alone = np.array([gradient(one, [batch], place) for place, batch in enumerate(batches)])
    same_masks = np.array([gradient(one, [batch], 0) for batch in batches])
    shares = tokens / tokens.sum()
    expected, found = shares @ alone, gradient(make_step(settings(dropout=0.3), replicas=2), batches)

    def off(wrong):
        return np.linalg.norm(wrong - expected) / np.linalg.norm(expected)

    assert off(found) <= 1e-5
    assert min(off(alone.mean(0)), off(expected / 2), off(shares @ same_masks)) > 1e-2


@pytest.mark.slow
def test_a_step_that_is_not_finite_changes_nothing(eager, shared_step):
    step = shared_step(settings("adam", more=",max_skipped_steps=2"))
    step.model.target_embedding.embeddings.assign(step.model.target_embedding.embeddings * np.inf)
    before = weights(step)
    metrics = step(placed(step, stream()[:1]))
    assert float(metrics["skipped"]) == 1
    np.testing.assert_array_equal(weights(step), before)
    assert int(step.optimizer.iterations.numpy()) == 0


class Rooted(keras.Model):
    """A model whose loss is finite and whose gradient is not: that of a square root at 0."""

    def __init__(self):
        super().__init__()
        self.root = self.add_weight(shape=(VOCAB,), initializer="zeros")

    def call(self, features, training=False):
        return keras.ops.zeros((*keras.ops.shape(features["targets"]), VOCAB)) + keras.ops.sqrt(self.root)


@pytest.mark.slow
@pytest.mark.parametrize("xla_compile", [False, True])
@pytest.mark.parametrize("more", ["", ",clip_grad_norm=1"])
def test_a_gradient_that_is_not_finite_changes_nothing(more, xla_compile):
    hparams = settings("adam", more=f"{more},max_skipped_steps=2,ema_decay=0.9")
    model, optimizer = Rooted(), make_optimizer(hparams, 100)
    optimizer.build(model.trainable_variables)
    step = TrainStep(model, optimizer, choose_replicas(0), hparams, xla_compile)

    def taken(root):
        """Whether a step from weights of this size was skipped, and whether it changed anything."""
        model.root.assign(np.full(VOCAB, root))
        before = [variable.numpy() for variable in (model.root, *optimizer.variables)]
        metrics = step(placed(step, stream()[:1]))
        assert np.isfinite(float(metrics["objective"]["targets"]))
        assert np.isfinite(float(metrics["gradient_norm"])) == (root > 0)
        after = [variable.numpy() for variable in (model.root, *optimizer.variables)]
        return float(metrics["skipped"]) == 1, not all(map(np.array_equal, before, after))

    assert taken(0.0) == (True, False)
    assert taken(1.0) == (False, True)
    assert [taken(0.0), taken(0.0)] == [(True, False)] * 2
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


@pytest.mark.slow
def test_after_too_many_skipped_steps_nothing_changes_until_they_are_noticed(shared_step):
    step = shared_step(settings("adam", more=",max_skipped_steps=2"))
    embeddings, batches = step.model.target_embedding.embeddings, stream()[:1]
    good = embeddings.numpy()

    def skips(is_finite):
        embeddings.assign(good if is_finite else good * np.inf)
        before = weights(step)
        assert float(step(placed(step, batches))["skipped"]) == (not is_finite)
        return bool((weights(step) == before).all())

    assert [skips(is_finite) for is_finite in (False, True, False, False, True)] == [True, False, True, True, True]


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
