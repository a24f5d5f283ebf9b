"""Mixtures of experts in steps of training: on replicas, recomputed, compiled, and whether all experts are used."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.training.distribution import choose_replicas
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import StepBatches
from tests.layers.equations import array
from tests.training.runs import assert_same, killed_after, state, trainer
from tests.training.steps import VOCAB, by, distance, make_step, placed, settings, trained

EXPERTS = ",ffn_layer=local_moe,moe_num_experts=4,moe_k=2,moe_loss_coef=0.1"


def experts(more="", **options):
    model = registry.model("transformer_moe")
    hparams = settings(**options)
    return hparams.of_model(model).parse(f"batch_size=64{EXPERTS}{more}")


def step_of(hparams, **options):
    return make_step(hparams, model="transformer_moe", **options)


@pytest.mark.long
def test_eight_replicas_train_as_one_that_accumulates():
    """With noise and dropout: each batch has its own, and its own cost."""
    groups = by(8)[:2]
    one = trained(step_of(experts(dropout=0.1, accumulation=8)), groups)
    many = trained(step_of(experts(dropout=0.1), replicas=8), groups)
    assert distance(one, many) <= 1e-5


@pytest.mark.long
def test_a_run_in_parts_is_bit_for_bit_the_run_in_one(data_dir, tmp_path):
    """The gates' noise comes from the step's seed."""

    def run(folder):
        name, model = "transformer_moe_tiny", registry.model("transformer_moe")
        made = trainer(data_dir, tmp_path / folder, "", hparams_set=name, model="transformer_moe")
        sizes = "hidden_size=16,filter_size=24,num_heads=2,num_hidden_layers=1,batch_size=128"
        rates = "layer_prepostprocess_dropout=0.2,learning_rate_schedule=constant,learning_rate_constant=0.001"
        made.hparams = registry.hparams(name).of_model(model).parse(f"{sizes},{rates}")
        made.train(6)
        return tmp_path / folder

    one = run("one")
    killed_after(one, 3, tmp_path / "parts")
    assert_same(state(run("parts"), 6), state(one, 6))


@pytest.mark.long
def test_recomputed_activations_have_the_same_gradient_and_costs():
    groups = by(1)[:1]
    found = []
    for more in ("", ",recompute_grad=true"):
        step = step_of(experts(more, dropout=0.1))
        metrics = step(placed(step, groups[0]))
        found.append([step, {name: float(cost) for name, cost in metrics["cost"].items()}])
    (kept, costs), (again, recomputed) = found
    assert costs == pytest.approx(recomputed, rel=1e-5) and set(costs) == {"inputs", "targets"}
    for one, other in zip(kept.model.trainable_variables, again.model.trainable_variables, strict=True):
        np.testing.assert_allclose(array(one), array(other), atol=1e-5, err_msg=one.path)


@pytest.mark.long
def test_a_compiled_step_is_the_step_of_a_graph():
    batch, made = by(1)[:1], []
    for xla in (False, True):
        keras.utils.set_random_seed(1)
        hparams = experts(dropout=0.1)
        model = registry.model("transformer_moe").from_hparams(hparams, VOCAB)
        optimizer = make_optimizer(hparams, 100)
        optimizer.build(model.trainable_variables)
        made.append(trained(TrainStep(model, optimizer, choose_replicas(0, 1), hparams, xla_compile=xla), batch))
    assert distance(*made) <= 1e-4


@pytest.mark.long
def test_no_expert_is_left_out_after_300_steps():
    """Of a task whose ids are clustered; without the cost, and without noise, few would do all the work."""
    hparams = registry.hparams("transformer_moe_tiny").of_model(registry.model("transformer_moe"))
    hparams = hparams.parse(
        "hidden_size=32,filter_size=64,num_heads=2,num_hidden_layers=1,moe_num_experts=8,learning_rate_schedule=constant,"
        "learning_rate_constant=2e-3,layer_prepostprocess_dropout=0,attention_dropout=0,relu_dropout=0,label_smoothing=0"
    )
    step, rng, use, losses = step_of(hparams), np.random.default_rng(0), [], []
    for i in range(300):
        rows = rng.integers(3, VOCAB, (16, 8)).astype("int32")
        metrics = step(step.place(StepBatches([{"inputs": rows, "targets": rows[:, ::-1].copy()}], i)))
        use.append([array(layer) for layer in tf.nest.flatten(metrics["shares"])])
        losses.append(float(metrics["nats"]["targets"]) / rows.size)
    shares = np.sum(use[-50:], axis=0)
    shares = shares / shares.sum(axis=1, keepdims=True)
    print(shares.round(3), losses[0], np.mean(losses[-20:]))
    assert shares.min() > 0.5 / 8 and shares.max() < 2 / 8
    assert np.mean(losses[-20:]) < 0.7 * losses[0]
