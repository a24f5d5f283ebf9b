"""The Universal Transformer: shared layers, the costs of halting, its sets, and what its settings refuse."""

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.models import Transformer, UniversalTransformer
from t2t_lite.models.shapes_only import shapes_only
from tests.layers.equations import array
from tests.models.fine_tuned import check_parts

VOCAB = 20
SMALL = {
    "vocab_size": VOCAB, "hidden_size": 16, "filter_size": 24, "num_heads": 2, "norm": "pre", "num_rec_steps": 3,
    "act_max_steps": 4,
}  # fmt: skip


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def example(rng):
    inputs, targets = (rng.integers(3, VOCAB, (3, length)).astype("int32") for length in (7, 6))
    inputs[1, 4:] = 0
    return inputs, targets


def logits_of(model, inputs, targets):
    outputs = model({"inputs": inputs, "targets": targets}, training=False)
    return array(outputs["targets"] if isinstance(outputs, dict) else outputs)


@pytest.mark.slow
def test_without_signals_and_halting_it_is_a_transformer_whose_layers_are_one(rng):
    options = {"add_step_timing_signal": False, "add_position_timing_signal": False, "position": "sinusoidal"}
    universal = UniversalTransformer(**SMALL, **options)
    universal.build()
    sizes = {name: value for name, value in SMALL.items() if name in Transformer.OPTIONS or name == "vocab_size"}
    plain = Transformer(**sizes, num_encoder_layers=3, num_decoder_layers=3)
    plain.build()
    for ours, theirs in zip(universal.stacks().values(), plain.stacks().values(), strict=True):
        for layer in theirs.layers:
            layer.set_weights(ours.layers[0].get_weights())
    plain.input_embedding.set_weights(universal.input_embedding.get_weights())
    np.testing.assert_array_equal(
        logits_of(universal, *example(rng)), logits_of(plain, *example(np.random.default_rng(1)))
    )


@pytest.mark.slow
def test_costs_are_those_of_tensor2tensor_at_what_is_not_padding(rng):
    """act_loss_weight · (steps + remainder), of encoder and decoder, whatever the batch's width."""
    model = UniversalTransformer(**SMALL, recurrence_type="act", act_loss_weight=0.5)
    inputs, targets = example(rng)
    targets[2, 3:] = 0
    batch = {"inputs": inputs, "targets": targets}
    wide = {feature: np.pad(ids, ((0, 0), (0, 3))) for feature, ids in batch.items()}
    costs, wider = model(batch)["costs"], model(wide)["costs"]
    for feature, ids in batch.items():
        found = array(costs[feature])
        assert ((found > 0.5) == (ids != 0)).all() and found.max() <= 0.5 * 5
        np.testing.assert_allclose(array(wider[feature])[:, : ids.shape[1]], found, atol=1e-6)
        assert not array(wider[feature])[:, ids.shape[1] :].any()
    steps = model.ponder_steps(batch)
    for feature, ids in batch.items():
        number = array(steps[feature])
        assert set(np.unique(number)) <= {0, 1, 2, 3, 4} and ((number > 0) == (ids != 0)).all()
        remainder = array(costs[feature]) / 0.5 - number
        assert (remainder > -1e-6).all() and (remainder < 1 + 1e-6).all()
    assert not UniversalTransformer(**SMALL, recurrence_type="act", act_loss_weight=0.0).has_costs
    assert not UniversalTransformer(**SMALL).has_costs


def test_settings_have_the_defaults_of_tensor2tensor():
    """`update_hparams_for_universal_transformer` on `transformer_base`."""
    assert {name: field.default for name, field in UniversalTransformer.HPARAMS.items()} == {
        "recurrence_type": "basic", "num_rec_steps": 6, "num_inrecurrence_layers": 1, "position_start_index": "none",
        "step_timing_signal_type": "learned", "act_type": "basic", "act_max_steps": 12, "act_halting_bias_init": 1.0,
        "act_epsilon": 0.01, "act_loss_weight": 0.01, "add_position_timing_signal": True,
        "add_step_timing_signal": True,
    }  # fmt: skip


@pytest.mark.parametrize("kind, steps", [("basic", 8), ("act", 4)])
def test_one_layer_runs_as_often_as_the_kind_of_recurrence_says(kind, steps):
    hparams = registry.hparams("universal_transformer_tiny").of_model(UniversalTransformer)
    model = shapes_only(UniversalTransformer, hparams.parse(f"recurrence_type={kind},num_inrecurrence_layers=2"), 100)
    for stack in (model.encoder, model.decoder):
        assert (len(stack.layers), len({*stack.layers}), stack.num_steps) == (2 * steps, 2, steps)
        assert (stack.halting is not None) == (kind == "act")


def test_a_description_says_what_each_weight_belongs_to():
    describe = pytest.importorskip("t2t_lite.extras.describe.describe")
    hparams = registry.hparams("adaptive_universal_transformer_tiny")
    text = describe.Description(shapes_only(UniversalTransformer, hparams, 100), hparams).text()
    for line in ("encoder_signals", "encoder_halting", "encoder_0, run 4 times"):
        assert line in text, text


def test_settings_without_meaning_are_refused():
    for name in ("num_hidden_layers", "num_encoder_layers", "num_decoder_layers"):
        with pytest.raises(UserError, match=f"{name}.*UniversalTransformer.*num_rec_steps"):
            UniversalTransformer.check_has([name])
    UniversalTransformer.check_has(["num_rec_steps", "act_epsilon", "hidden_size"])
    for name, kind in (("num_rec_steps", "act"), ("act_max_steps", "basic"), ("act_loss_weight", "basic")):
        hparams = registry.hparams("universal_transformer_tiny").of_model(UniversalTransformer)
        hparams.recurrence_type = kind
        with pytest.raises(UserError, match=f"{name}.*recurrence_type={kind}"):
            UniversalTransformer.check_has(["hidden_size", name], hparams)
        hparams.recurrence_type = {"act": "basic", "basic": "act"}[kind]
        UniversalTransformer.check_has(["hidden_size", name], hparams)
    with pytest.raises(UserError, match=r"`position`.*add_position_timing_signal.*sinusoidal"):
        UniversalTransformer.from_hparams(registry.hparams("transformer_tiny"), VOCAB)


def test_each_weight_is_of_one_part():
    expected = {"encoder": {"encoder_0", "encoder", "encoder_norm"}}
    check_parts("universal_transformer", (20,), ",recurrence_type=act,pos=none", expected)
