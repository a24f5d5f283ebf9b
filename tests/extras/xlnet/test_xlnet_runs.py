"""Runs of XLNet: orders on two replicas, an exact resume, and what is learned from scratch."""

# Nearest tests of: extras/xlnet/permutation_lm_own.py, extras/xlnet/permutation_language_model.py
# Nearest tests of: extras/xlnet/permutation_settings.py

import functools
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.models import XLNet
from tests.extras.xlnet.xlnet_folders import WARM_AND_COLD
from tests.training.runs import assert_replicas_and_parts_give_one_run, trainer

pytestmark = pytest.mark.slow

SIZES = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=128,learning_rate_schedule=constant,"
    "attention_dropout=0.1,layer_prepostprocess_dropout=0.1,relu_dropout=0.1"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with sentences of two kinds of words."""
    folder = tmp_path_factory.mktemp("xlnet")
    draw = random.Random(1)
    kinds = [WARM_AND_COLD[kind] for kind in [*WARM_AND_COLD] * 150]
    lines = [f"{draw.choice(words)} in {draw.choice(words)}" for words in kinds]
    (folder / "a.txt").write_text("\n".join(lines))
    text = registry.problem("permutation_lm_own")
    text.configure([str(folder / "a.txt")], [str(folder / "a.txt")], sequence_length=31, vocab_size=300)
    text.generate_data(str(folder / "text"), str(folder))
    return folder


def permuted(data, output_dir, hparams="", rate=0.001, **settings):
    named = {"problem": "permutation_lm_own", "hparams_set": "xlnet_tiny", "model": "transformer"}
    sizes = f"{SIZES},learning_rate_constant={rate}{hparams}"
    return trainer(str(data / "text"), output_dir, sizes, **named, **settings)


def test_its_settings_and_features(data):
    problem = registry.problem("permutation_lm_own")
    assert problem.settings["sequence_length"].default == 511 and problem.settings["vocab_type"].default == "subwords"
    assert problem.features == {"inputs": 2, "targets": 2, "order": 2} and problem.task == "permutation_language_model"
    encoders = problem.get_feature_encoders(str(data / "text"))
    assert encoders["inputs"] is encoders["targets"]
    ids = tf.constant([[9, 12, 40, 1]])
    batch = problem.corrupt({"targets": ids}, tf.constant([[3, 5]]))
    assert set(batch) == {"inputs", "targets", "order"} and batch["inputs"] is ids
    targets, order = batch["targets"].numpy()[0], batch["order"].numpy()[0]
    assert ((targets > 0) == (order > 0)).all() and targets.any() and order[3] == 0
    task = registry.task("permutation_language_model")
    labels = task.fit_labels({"targets": tf.constant([[0, 7], [8, 0]])}, None)
    assert labels.numpy().tolist() == [7, 8] and (task.model, task.needed_features) == ("xlnet", ("order",))


def test_a_model_that_would_see_what_it_predicts_is_refused(data, tmp_path):
    with pytest.raises(UserError, match=r"'order'.*--model=xlnet"):
        trainer(
            str(data / "text"), tmp_path / "x", "num_hidden_layers=1,hidden_size=8,filter_size=8,num_heads=1",
            problem="permutation_lm_own", hparams_set="bert_tiny", model="transformer_encoder",
        ).train(1)  # fmt: skip


@pytest.mark.long
def test_two_replicas_are_two_batches_of_one_and_a_run_in_parts_is_that_in_one(data, tmp_path):
    assert_replicas_and_parts_give_one_run(functools.partial(permuted, data), tmp_path, 2)


SYMBOLS, FIRST, HALF = 8, 5, 6


def copies(draw, rows):
    """A batch of texts of 6 symbols, each twice; half of the ids are predicted, in any order, and one at least."""
    half = draw.integers(FIRST, FIRST + SYMBOLS, (rows, HALF))
    is_predicted = draw.random((rows, 2 * HALF)) < 0.5
    is_predicted[:, 0] = True
    order = np.where(is_predicted, 1 + draw.permuted(np.tile(np.arange(2 * HALF), (rows, 1)), axis=1), 0)
    ids, order = np.hstack([half, half, np.ones((rows, 1))]).astype("int32"), np.pad(order, ((0, 0), (0, 1)))
    return {"inputs": ids, "targets": np.where(order > 0, ids, 0), "order": order.astype("int32")}


def entropy(batch):
    """Nats per prediction that are left to one who knows the rule: those of symbols whose copy comes later."""
    order = batch["order"][:, :-1]
    copy = np.roll(order, HALF, axis=1)
    return np.log(SYMBOLS) * np.mean((copy > order)[order > 0])


@pytest.mark.long
def test_from_scratch_as_much_is_learned_as_the_orders_show():
    """A copy that is seen is found, by its distance; less than the entropy of those that are not would be a leak."""
    sizes = {"hidden_size": 32, "filter_size": 64, "num_heads": 4, "num_layers": 2, "last_id": 4, "dropout": 0.0}
    model, draw = XLNet(vocab_size=FIRST + SYMBOLS, head="masked_lm", **sizes), np.random.default_rng(0)
    model.build()
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 300))

    def loss_of(batch, training):
        labels = tf.boolean_mask(batch["targets"], batch["targets"] > 0)
        logits = model(batch, training=training)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            loss = loss_of(batch, True)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), model.trainable_weights, strict=True))

    weights = [weight.value for weight in model.trainable_weights]
    for _ in range(300):
        step({feature: tf.constant(ids) for feature, ids in copies(draw, 64).items()})
    held_out = copies(draw, 512)
    assert entropy(held_out) - 0.05 < float(loss_of(held_out, False)) < entropy(held_out) + 0.2
