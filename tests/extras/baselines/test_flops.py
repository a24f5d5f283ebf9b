"""What --describe says of a model without stacks, beside the products of a pass that TensorFlow ran."""

import keras
import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.runs.run_config import build_model
from tests.models.products import products_run

cost = pytest.importorskip("t2t_lite.extras.describe.cost")

ROWS, LENGTHS, VOCAB = 2, {"inputs": 6, "targets": 4}, 11
MODELS = {
    **{name: (name, f"{name}_tiny", "") for name in (
        "bytenet", "conv_seq2seq", "neural_gpu", "extended_neural_gpu", "kermit")},
    "additive": ("lstm_seq2seq_attention", "lstm_attention_tiny", ""),
    "multiplicative": ("lstm_seq2seq_attention", "lstm_attention_tiny",
                       "attention_mechanism=luong,num_hidden_layers=3"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_flops_are_those_of_the_products_that_run(name, eager):
    model_name, hparams_set, changes = MODELS[name]
    hparams = registry.hparams(hparams_set).of_model(registry.model(model_name))
    hparams = hparams.parse(f"hidden_size=8,{changes}".rstrip(","))
    config = {"model": model_name, "vocab_size": VOCAB, "target_vocab_size": VOCAB, "hparams": hparams.values()}
    model = build_model(config)
    draw = np.random.default_rng(0)
    batch = {feature: draw.integers(2, VOCAB, (ROWS, length)) for feature, length in LENGTHS.items()}
    batch["canvas"] = batch["targets"]
    features = {feature: batch[feature] for feature in {**LENGTHS, **model.needed_features}}
    model(features, training=False)  # builds it
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.RNN):
            layer.unroll = True  # else Keras runs the first step twice, once for its shapes
    counted = cost.forward_flops(model, LENGTHS, ROWS).per_token
    expected = sum(ROWS * LENGTHS[feature] * flops for feature, flops in counted.items())
    assert expected == pytest.approx(products_run(lambda: model(features, training=False)), rel=1e-9)
