"""Models with mixtures of experts: costs, settings, and what a run makes of them."""

import keras
import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.experts.transformer_moe import TransformerMoe
from t2t_lite.layers import FeedForward, MixtureOfExperts
from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from t2t_lite.models.arguments import model_hparams
from tests.layers.equations import array
from tests.models.fine_tuned import made as small
from tests.models.fine_tuned import trained as names_of_trained

SIZES = {"hidden_size": 8, "filter_size": 16, "num_heads": 2, "dropout": 0.0}
EXPERTS = {"type": "local_moe", "num_experts": 4, "k": 2, "loss_coef": 0.1}
INPUTS = np.array([[3, 4, 1, 0, 0], [5, 6, 7, 8, 1]])
TARGETS = np.array([[5, 1, 0, 0], [7, 8, 9, 1]])
BATCH = {"inputs": INPUTS, "targets": TARGETS}


def trained(model):
    """Gives the gates other values than zeros, by which all positions would go to the same experts."""
    model.build()
    rng = np.random.default_rng(3)
    for layer in model._flatten_layers():
        if isinstance(layer, MixtureOfExperts):
            layer.gate_kernel.assign(rng.normal(size=layer.gate_kernel.shape))
    return model


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(1)
    return trained(
        TransformerMoe(
            12, **SIZES, num_encoder_layers=2, num_decoder_layers=2, feed_forward=["dense_relu_dense", EXPERTS]
        )
    )


def networks(stack):
    return [type(layer.feed_forward.layer) for layer in stack.layers]


def test_kinds_take_turns_over_the_layers(model):
    assert networks(model.encoder) == networks(model.decoder) == [FeedForward, MixtureOfExperts]


@pytest.mark.slow
def test_costs_do_not_depend_on_padding_and_use_is_counted_in_training(model):
    costs = model(BATCH)["costs"]
    wider = {feature: np.pad(ids, ((0, 0), (0, 3))) for feature, ids in BATCH.items()}
    for feature, cost in model(wider)["costs"].items():
        np.testing.assert_allclose(array(cost)[:, :-3], array(costs[feature]), rtol=1e-6)
    use = model(BATCH, training=True)["shares"]["expert_use"]
    assert [array(each).sum() for each in use["inputs"]] == [2 * 8] and array(use["targets"][0]).sum() == 2 * 6


def test_other_models_have_experts_too():
    for model_class, stack in ((TransformerLM, "decoder"), (TransformerEncoder, "encoder")):
        made = model_class(12, **SIZES, num_layers=2, feed_forward=EXPERTS)
        assert made.has_costs and networks(getattr(made, stack)) == [MixtureOfExperts] * 2


@pytest.mark.slow
def test_hyperparameters_make_the_model_and_come_back():
    hparams = registry.hparams("transformer_moe_tiny").parse(
        "hidden_size=8,filter_size=16,num_heads=2,moe_num_experts=3"
    )
    made = TransformerMoe.from_hparams(hparams, 12)
    assert made.config["feed_forward"] == {"type": "local_moe", "num_experts": 3, "k": 2, "loss_coef": 1e-2}
    back = model_hparams(made, hparams)
    assert (back.ffn_layer, back.moe_num_experts, back.moe_k, back.moe_loss_coef) == ("local_moe", 3, 2, 1e-2)
    turns = hparams.parse("ffn_layer=dense_relu_dense/local_moe(num_experts=5)")
    config = Transformer.from_hparams(turns, 12).config["feed_forward"]
    assert config == ["dense_relu_dense", {"type": "local_moe", "num_experts": 5, "k": 2, "loss_coef": 1e-2}]


def test_settings_of_experts_come_with_their_kind():
    assert "moe_k" in registry.hparams("transformer_base").override_from_dict({"ffn_layer": "local_moe"}).of_model(
        Transformer
    )
    assert "moe_k" not in registry.hparams("transformer_base").of_model(Transformer)


@pytest.mark.parametrize(
    "changes, message",
    [
        ("moe_num_experts=1", "`moe_num_experts` must be at least `moe_k`.*moe_num_experts=1, moe_k=2"),
        ("ffn_layer=dense_relu_dense", "`ffn_layer` must give some layers experts, such as local_moe"),
        ("ffn_layer=sru", "`ffn_layer` must be one of .*dense_relu_dense.*local_moe.*: received ffn_layer='sru'"),
        ("moe_k=0", "moe_k=0: expected a whole number from 1"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(UserError, match=message):
        TransformerMoe.from_hparams(
            registry.hparams("transformer_moe_tiny").of_model(TransformerMoe).parse(changes), 12
        )


def test_experts_without_lora_are_named(caplog):
    mixed = "ffn_layer=dense_relu_dense/local_moe"
    model = small("transformer", f",{mixed},lora_rank=2")
    assert "LoRA: experts (ffn_layer=local_moe) get none" in caplog.text
    assert not [path for path in names_of_trained(model) if "encoder_1/feed_forward" in path]
