"""Steps of small models on batches of unequal sizes, and what passes between their devices."""

import math

import keras
import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.layers import dropout_seed
from t2t_lite.training.distribution import choose_replicas
from t2t_lite.training.objectives import mean_loss, objective_sums
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import StepBatches
from tests.training.runs import RegisteredSmall

VOCAB = 30
BATCHES = 24
SMALL = RegisteredSmall.REGISTERED_NAME  # it is traced four times as fast as the Transformer


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


def step_of(make, hparams, replicas=1, **more):
    """Returns the step of the model that `make` returns, with its weights."""
    chosen = choose_replicas(0, replicas)
    keras.utils.set_random_seed(1)
    with chosen.scope():
        model, optimizer = make(), make_optimizer(hparams, 100)
        optimizer.build(model.trainable_variables)
    return TrainStep(model, optimizer, chosen, hparams, **more)


def make_step(hparams, replicas=1, model="transformer", xla_compile=False):
    def make():
        made = registry.model(model).from_hparams(hparams, VOCAB)
        if not made.weights:
            made({"targets": np.ones((1, 1), "int32")})
        return made

    return step_of(make, hparams, replicas, xla_compile=xla_compile)


def placed(step, batches, first=0):
    return step.place(StepBatches(batches, first))


def by(count):
    batches = stream()
    return [batches[i : i + count] for i in range(0, BATCHES, count)]


def gradients(step, batches):
    """Returns the global gradient of a step on `PlacedBatches`, in the order of the trainable variables."""
    sums = tf.function(step._global_sums, autograph=False)
    (found, *_), _ = sums(*batches, step._scale(), tf.constant(0.0), step._states())
    return [step.replicas.first(one) / step._scale() for one in found]


def gradient(step, batches, first=0):
    found = gradients(step, placed(step, batches, first))
    return np.concatenate([tf.convert_to_tensor(one).numpy().ravel() for one in found])


def moved_between_devices(graph):
    """Returns {operation: numbers} that pass from one device to an operation on another, in no collective.

    Arguments are not counted, whose devices are known only in a call (see test_loop_trace.py); a variable is read on
    its own device.
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


def weights(step):
    """All weights; followed by their moving averages where there are any."""
    averages = step.optimizer._model_variables_moving_average if step.optimizer.use_ema else []
    return np.concatenate([w.numpy().ravel() for w in (*step.model.trainable_variables, *averages)])


def trained(step, groups):
    """Returns (weights before, weights after) one step a group of batches."""
    before, read = weights(step), 0
    for batches in groups:
        metrics = step(placed(step, batches, read))
        assert float(metrics["skipped"]) == 0
        read += len(batches)
    return before, weights(step)


def distance(one, other):
    """How far the weights are apart, over how far the first have moved."""
    np.testing.assert_array_equal(one[0], other[0])
    return np.linalg.norm(one[1] - other[1]) / np.linalg.norm(one[1] - one[0])


def _counts_of(batch):
    return {feature: tf.constant(float(np.count_nonzero(ids))) for feature, ids in batch.items()}


def row_gradients(row, model, batch, in_xla=False):
    """Gradients of a step, in XLA of shapes that are unknown where it is traced, as the trainer has them."""

    def gradient(batch):
        with dropout_seed(3, 1, in_xla):
            with tf.GradientTape() as tape:
                loss = mean_loss(objective_sums(model(batch, training=True), batch, row.smoothing), counts)
            weights = [weight.value for weight in model.trainable_weights]
            return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, weights, unconnected_gradients="zero"))]

    counts = _counts_of(batch)
    if in_xla:
        signature = [{feature: tf.TensorSpec([None] * ids.ndim, tf.int32) for feature, ids in batch.items()}]
        gradient = tf.function(gradient, input_signature=signature, jit_compile=True, autograph=False)
    return [each.numpy() for each in gradient({feature: tf.constant(ids) for feature, ids in batch.items()})]


def assert_same_gradients(found, expected, model, tolerance):
    for one, other, path in zip(found, expected, ["loss", *(w.path for w in model.trainable_weights)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=tolerance * max(1.0, np.abs(other).max()), err_msg=path)
