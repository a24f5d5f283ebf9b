"""Warnings of hyperparameters that are not read, because of the values of other ones."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.models.transformer import Transformer
from t2t_lite.models.unread_settings import describe_unused_kinds, warn_of_unread
from t2t_lite.runs.directory import run_hparams
from t2t_lite.settings.config import HParams
from t2t_lite.settings.tensor2tensor_names import without_multistep
from t2t_lite.training.optimization.optimizers import OPTIMIZERS, make_optimizer
from t2t_lite.training.optimization.schedules import FACTORS, ProductSchedule
from tests.models.own_model import OwnPlainModel

# Values that differ from the base below in each setting of the schedules and optimizers.
RATES = {
    "learning_rate_constant": 3.0,
    "learning_rate_warmup_steps": 11,
    "learning_rate_decay_steps": 17,
    "learning_rate_decay_rate": 0.7,
    "learning_rate_decay_staircase": True,
}
UPDATES = {
    "optimizer_adam_beta1": 0.5,
    "optimizer_adam_beta2": 0.5,
    "optimizer_adam_epsilon": 0.1,
    "optimizer_adafactor_beta1": 0.5,
    "optimizer_adafactor_beta2": 0.5,
    "optimizer_adafactor_factored": False,
    "optimizer_adafactor_decay_type": "adam",
    "optimizer_adafactor_memory_exponent": 0.3,
    "optimizer_adafactor_clipping_threshold": 0.1,
    "optimizer_adafactor_multiply_by_parameter_scale": False,
    "optimizer_multistep_accumulate_steps": 2,
}


@pytest.fixture
def warned(caplog):
    """Returns a function of (names, hparams, model) that returns the names of which a warning is logged."""

    def names_of(names, hparams, model="transformer", varied=()):
        caplog.clear()
        hparams = hparams.of_model(registry.model(model))
        warn_of_unread(names, hparams, registry.model(model), "--hparams", varied)
        return [re.fullmatch(r"--hparams: (\w+) has no effect with .*", line)[1] for line in caplog.messages]

    return names_of


@pytest.mark.parametrize("factor", FACTORS)
def test_a_factor_of_the_schedule_reads_what_changes_its_rates(factor, warned):
    base = HParams(
        learning_rate_schedule=factor, learning_rate_constant=2.0, learning_rate_warmup_steps=7,
        learning_rate_decay_steps=20, learning_rate_decay_rate=0.5,
    )  # fmt: skip

    def rates(hparams):
        schedule = ProductSchedule(hparams, 60)
        return [float(schedule(step)) for step in range(60)]

    unread = [name for name, value in RATES.items() if rates(base.override_from_dict({name: value})) == rates(base)]
    assert warned(RATES, base) == unread


@pytest.mark.parametrize("decay_type", ["pow", "adam"])
@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, "multistep_adam"])
def test_an_optimizer_reads_what_changes_its_updates(optimizer, decay_type, warned):
    base = HParams(
        optimizer=optimizer, optimizer_adafactor_decay_type=decay_type, learning_rate_schedule="constant",
        learning_rate_constant=0.1,
    )  # fmt: skip

    def updated(hparams):
        plain, draw = without_multistep(hparams), np.random.default_rng(3)
        weight, made = keras.Variable(draw.normal(size=(3, 4)).astype("float32")), make_optimizer(plain, 10)
        for _ in range(3):
            made.apply([tf.constant(draw.normal(size=(3, 4)).astype("float32"))], [weight])
        return plain.gradient_accumulation_steps, weight.numpy().tolist()

    changed = UPDATES | {"optimizer_adafactor_decay_type": {"pow": "adam", "adam": "pow"}[decay_type]}
    unread = [n for n, value in changed.items() if updated(base.override_from_dict({n: value})) == updated(base)]
    assert warned(changed, base) == unread


@pytest.mark.parametrize(
    "names, changes, unread",
    [
        ("max_position", "", "max_position"),
        ("max_position position_layout", "pos=emb", "position_layout"),
        ("max_relative_position attention_neighborhood", "", "max_relative_position attention_neighborhood"),
        ("max_relative_position", "self_attention_type=dot_product_relative", ""),
        ("max_relative_position attention_neighborhood", "self_attention_type=full:restricted",
         "max_relative_position"),
        ("add_relative_to_values", "self_attention_type=dot_product/dot_product_relative", ""),
        ("heads_share_relative_embedding", "self_attention_type=dot_product_relative",
         "heads_share_relative_embedding"),
        ("loss_scale_growth_steps", "dtype_policy=mixed_bfloat16", "loss_scale_growth_steps"),
        ("loss_scale_growth_steps", "dtype_policy=mixed_float16", ""),
        ("hidden_size label_smoothing num_heads position_layout", "", ""),
    ],
)  # fmt: skip
def test_settings_of_the_model(names, changes, unread, warned):
    options = "max_relative_position=4,attention_neighborhood=3,"
    assert warned(names.split(), HParams().parse(options + changes)) == unread.split()


def test_a_setting_is_read_if_the_model_lacks_the_other_setting(warned):
    assert warned(["max_position"], HParams(), "conv_seq2seq") == []


def test_of_a_model_that_may_read_anything_only_settings_of_training_are_named(caplog):
    class Anything(Transformer):
        @classmethod
        def from_hparams(cls, hparams, vocab_size, target_vocab_size=None):
            return None

    for model_class in (Anything, OwnPlainModel):
        caplog.clear()
        warn_of_unread(["max_position", "max_relative_position", "loss_scale_growth_steps"], HParams(), model_class, "")
        assert [line.split()[1] for line in caplog.messages] == ["loss_scale_growth_steps"]


def test_a_search_may_vary_the_other_setting(warned):
    names = ["learning_rate_decay_steps", "max_relative_position", "max_position"]
    assert warned(names, HParams()) == names
    assert warned(names, HParams(), varied=["learning_rate_schedule", "self_attention_type", "pos"]) == []


@pytest.mark.parametrize(
    "model, changes, depth",
    [
        ("transformer", "num_hidden_layers=1", "1 layer"),
        ("transformer", "num_encoder_layers=1,num_decoder_layers=2", None),
        ("transformer_encoder", "num_hidden_layers=4,num_hidden_groups=1", "1 layer"),
    ],
)
def test_kinds_for_which_there_are_too_few_layers_are_named(model, changes, depth):
    kinds = "self_attention_type=dot_product/restricted(neighborhood=3),ffn_layer=dense_relu_dense/dense_relu_dense"
    hparams = HParams().parse(f"{kinds},hidden_size=8,filter_size=8,num_heads=2").of_model(registry.model(model))
    hparams = hparams.parse(changes)
    lines = describe_unused_kinds(registry.model(model).from_hparams(hparams, 9), hparams)
    assert [line.partition("=")[0] for line in lines] == (["self_attention_type"] if depth else [])
    assert all(f"has {depth} " in line for line in lines)


def test_what_a_user_sets_in_vain_is_named_with_the_setting_that_ignores_it(caplog):
    run_hparams({}, "transformer_tiny", "learning_rate_decay_steps=9000,optimizer_adam_beta1=0.8,max_position=1024")
    (line,) = caplog.messages
    assert line.startswith("--hparams: learning_rate_decay_steps has no effect with learning_rate_schedule=constant*")
    assert "Expected learning_rate_schedule with linear_decay" in line


def test_a_run_of_multistep_adam_may_be_resumed_with_the_same_command(caplog):
    changes = "optimizer=multistep_adam,optimizer_multistep_accumulate_steps=4"
    begun = without_multistep(run_hparams({}, "transformer_tiny", changes))
    earlier = {"hparams": begun.values(), "hparams_set": "transformer_tiny", "model": "transformer"}
    assert run_hparams(earlier, None, changes).gradient_accumulation_steps == 4
    assert not caplog.messages
