"""Models with mixtures of experts: costs, settings, searches and exports."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.decoding.search.adapters import Ensemble
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.export.formats import obstacles
from t2t_lite.export.saved_model import export_saved_model
from t2t_lite.extras.experts.transformer_moe import TransformerMoe
from t2t_lite.layers import FeedForward, MixtureOfExperts
from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from t2t_lite.models.arguments import model_hparams
from tests.decoding.runs import make_run
from tests.decoding.search.same_results import assert_same_results, searched
from tests.layers.equations import array
from tests.models.every_model import ROWS
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
    kinds = ["dense_relu_dense", EXPERTS]
    return trained(TransformerMoe(12, **SIZES, num_encoder_layers=2, num_decoder_layers=2, feed_forward=kinds))


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
    sizes = "hidden_size=8,filter_size=16,num_heads=2,moe_num_experts=3"
    hparams = registry.hparams("transformer_moe_tiny").parse(sizes)
    made = TransformerMoe.from_hparams(hparams, 12)
    assert made.config["feed_forward"] == {"type": "local_moe", "num_experts": 3, "k": 2, "loss_coef": 1e-2}
    back = model_hparams(made, hparams)
    assert (back.ffn_layer, back.moe_num_experts, back.moe_k, back.moe_loss_coef) == ("local_moe", 3, 2, 1e-2)
    turns = hparams.parse("ffn_layer=dense_relu_dense/local_moe(num_experts=5)")
    config = Transformer.from_hparams(turns, 12).config["feed_forward"]
    assert config == ["dense_relu_dense", {"type": "local_moe", "num_experts": 5, "k": 2, "loss_coef": 1e-2}]


def test_settings_of_experts_come_with_their_kind():
    hparams = registry.hparams("transformer_base")
    assert "moe_k" in hparams.override_from_dict({"ffn_layer": "local_moe"}).of_model(Transformer)
    assert "moe_k" not in hparams.of_model(Transformer)


@pytest.mark.parametrize(
    "changes, message",
    [
        ("moe_num_experts=1", "`moe_num_experts` must be at least `moe_k`.*moe_num_experts=1, moe_k=2"),
        ("ffn_layer=dense_relu_dense", "`ffn_layer`.*local_moe"),
        ("ffn_layer=sru", "`ffn_layer` must be one of .*dense_relu_dense.*local_moe.*: received ffn_layer='sru'"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(UserError, match=message):
        hparams = registry.hparams("transformer_moe_tiny").of_model(TransformerMoe).parse(changes)
        TransformerMoe.from_hparams(hparams, 12)


def test_experts_without_lora_are_named(caplog):
    mixed = "ffn_layer=dense_relu_dense/local_moe"
    model = small("transformer", f",{mixed},lora_rank=2")
    assert "experts (ffn_layer=local_moe)" in caplog.text
    assert not [path for path in names_of_trained(model) if "encoder_1/feed_forward" in path]


def test_other_formats_refuse_them():
    options = {**SIZES, "num_encoder_layers": 1, "num_decoder_layers": 1, "feed_forward": EXPERTS}
    model, with_experts = TransformerMoe(12, **options), Transformer(12, **options)
    for name in ("ctranslate2", "hugging_face"):
        assert "of class TransformerMoe" in obstacles(name, model)[0]
        (reason,) = [reason for reason in obstacles(name, with_experts) if "local_moe" in reason]
        assert "hparam ffn_layer" in reason and reason.endswith("dense_relu_dense")


@pytest.mark.long
def test_searches_and_exports_agree(tmp_path):
    """By the chosen experts, and by all of them, which XLA computes; and in a SavedModel."""
    translator = Translator.load(str(make_run(tmp_path, model="transformer_moe", moe_num_experts=3)))
    trained(translator.model)
    texts = ["the red house.", "a green tree", "old", "was new and old is the tree"]
    options = {"beam_size": 3, "alpha": 0.8, "extra_length": 6}
    plain, compiled = (translator.translate(texts, **options, compile=compile) for compile in (False, True))
    assert [each.tokens for each in plain] == [each.tokens for each in compiled]
    exported = export_saved_model(translator, str(tmp_path / "export"), max_input_length=24, **options)
    served = tf.saved_model.load(exported).signatures["serving_default"](inputs=tf.constant(texts))
    assert [text.decode() for text in served["outputs"].numpy()] == [each.text for each in plain]
    np.testing.assert_allclose(served["scores"], [each.score for each in plain], atol=1e-4)


@pytest.mark.slow
def test_an_ensemble_of_a_model_and_itself_is_that_model(eager):
    """Whatever else the model returns."""
    row = ROWS["transformer_moe"]
    model, batch = row.make(), row.batch()
    assert_same_results(searched(Ensemble([model, model])), searched(model))
    log_probs = tf.nn.log_softmax(Ensemble([model])(batch))
    np.testing.assert_allclose(Ensemble([model, model])(batch), log_probs, atol=1e-5)
