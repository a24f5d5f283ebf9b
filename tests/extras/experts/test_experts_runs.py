"""Whether all experts of a mixture are used; the tables of models have the other promises of training."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.training.training_data import StepBatches
from tests.layers.equations import array
from tests.training.steps import VOCAB, make_step


@pytest.mark.long
def test_no_expert_is_left_out_after_300_steps():
    """Of a task whose ids are clustered; without the cost, and without noise, few would do all the work."""
    hparams = registry.hparams("transformer_moe_tiny").of_model(registry.model("transformer_moe"))
    hparams = hparams.parse(
        "hidden_size=32,filter_size=64,num_heads=2,num_hidden_layers=1,moe_num_experts=8,learning_rate_schedule=constant,"
        "learning_rate_constant=2e-3,layer_prepostprocess_dropout=0,attention_dropout=0,relu_dropout=0,label_smoothing=0"
    )
    step, rng, use, losses = make_step(hparams, model="transformer_moe"), np.random.default_rng(0), [], []
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
