"""A setting is declared once: checks, constructors and their help, resumed runs and `save_run` follow."""

# Nearest tests of: t2t_lite/models/transformer_parts.py, t2t_lite/settings/declared_hparams.py

import functools
import pathlib
import re
from typing import ClassVar

import keras
import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.layers import SELF_ATTENTION, AttentionScore, MultiHeadAttention, Pattern
from t2t_lite.layers.attention_scores import RelativeScore
from t2t_lite.layers.key_patterns import WindowPattern
from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from t2t_lite.models.arguments import (
    constructor_arguments,
    differing_settings,
    fixed_arguments,
    hparam_of,
    in_hparams_words,
    model_hparams,
    settings_without_effect,
    shared_options,
)
from t2t_lite.models.transformer_parts import TransformerModel
from t2t_lite.runs.directory import changed_hparams, run_hparams
from t2t_lite.runs.run_config import write_run_config
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import setting
from tests.layers.kinds import MUSIC, RELATIVE, RESTRICTED
from tests.models.own_model import OwnModel

SETTINGS = HParams().settings().values()
SMALL = registry.hparams("transformer_tiny").parse("hidden_size=8,filter_size=12,num_heads=2")
# No two values are alike, nor the defaults: one that is lost on its way, or stands for another, is seen.
DISTINCT = {
    "hidden_size": 12, "filter_size": 20, "num_heads": 3, "num_hidden_layers": 4, "attention_key_channels": 15,
    "attention_value_channels": 21, "layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da",
    "norm_epsilon": 0.003, "attention_bias": True, "ffn_activation": "gelu_tanh",
    "shared_embedding_and_softmax_weights": False, "embedding_size": 10, "multiply_embedding_mode": "none",
    "softmax_bias": True, "pos": "emb", "position_layout": "marian", "max_position": 22, "initializer": "normal",
    "initializer_gain": 0.07, "layer_prepostprocess_dropout": 0.11, "attention_dropout": 0.13, "relu_dropout": 0.17,
    "recompute_grad": True, "dtype_policy": "float16", "self_attention_type": "restricted",
    "attention_neighborhood": 9,
}  # fmt: skip
ARGUMENTS = {
    "hidden_size": 12, "filter_size": 20, "num_heads": 3, "key_dim": 5, "value_dim": 7, "norm": "pre",
    "norm_epsilon": 0.003, "attention_bias": True, "activation": "gelu_tanh", "tie_embeddings": False,
    "embedding_size": 10, "scale_embeddings": False, "softmax_bias": True, "position": "learned",
    "position_layout": "marian", "max_position": 22, "initializer": "normal", "initializer_gain": 0.07, "dropout": 0.11,
    "attention_dropout": 0.13, "relu_dropout": 0.17, "recompute_grad": True, "dtype": "float16",
    "self_attention": {"type": "restricted", "neighborhood": 9},
}  # fmt: skip


@pytest.mark.parametrize(
    "model_class, depth, without",
    [
        (Transformer, {"num_encoder_layers": 2, "num_decoder_layers": 4}, set()),
        (TransformerLM, {"num_layers": 4}, set()),
        (TransformerEncoder, {"num_layers": 4}, {"tie_embeddings", "scale_embeddings"}),
    ],
)
def test_each_hyperparameter_sets_its_argument_and_comes_back(model_class, depth, without):
    hparams = HParams().of_model(model_class).override_from_dict(DISTINCT)
    if model_class is Transformer:
        hparams = hparams.parse("num_encoder_layers=2,use_target_space_embedding=true")
    found = constructor_arguments(hparams, model_class)
    expected = {name: value for name, value in (ARGUMENTS | depth).items() if name not in without}
    assert {name: found[name] for name in expected} == expected and not without & {*found}
    model = model_class(20, **found)
    again = model_hparams(model, HParams())
    assert constructor_arguments(again, model_class) == found
    idle = settings_without_effect(model_class)
    expected = {name: value for name, value in DISTINCT.items() if name not in idle | {"num_hidden_layers"}}
    assert {name: again.get(name) for name in expected} == expected
    assert "tie_embeddings" in found or "shared_embedding_and_softmax_weights" in idle
    assert fixed_arguments(model).keys() >= {"hidden_size", "norm", "self_attention"}
    assert not {"dropout", "recompute_grad", "initializer"} & fixed_arguments(model).keys()


def test_each_option_reaches_the_layers():
    options = {name: value for name, value in ARGUMENTS.items() if name != "dtype"}
    model = TransformerLM(20, num_layers=1, begin="end", **options)
    model.build()
    (layer,) = model.decoder.layers
    attention, network = layer.self_attention.layer, layer.feed_forward.layer
    found = (attention.num_heads, attention.query_size, attention.value_size, attention.use_bias)
    assert found == (3, 5, 7, True) and attention.pattern.neighborhood == 9
    assert (network.filter_size, network.activation) == (20, "gelu_tanh")
    rates = (layer.self_attention.dropout_rate, layer.feed_forward.dropout_rate, model.decoder_dropout.rate)
    assert rates == (0.11,) * 3 and (attention.dropout_rate, network.dropout_rate) == (0.13, 0.17)
    norms = (layer.self_attention.normalization, layer.feed_forward.normalization, model.decoder_norm)
    assert [norm.epsilon for norm in norms] == [0.003] * 3 and layer.self_attention.norm == "pre"
    assert (model.decoder_position.max_length, model.max_length, model.decoder.recompute) == (22, 22, True)
    assert model.target_embedding.embedding_size == 10 and not model.target_embedding.scale
    assert (
        model.softmax is not model.target_embedding and model.softmax.use_bias and not model.target_embedding.use_bias
    )
    for kernel in (network.inner.kernel, attention.query_projection.kernel, model.target_embedding.embeddings):
        assert 0.04 < float(keras.ops.std(kernel)) < 0.1  # N(0, 0.07)


def test_a_dtype_policy_is_keras_global_one_unless_it_was_said():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        assert constructor_arguments(HParams(), Transformer)["dtype"] is None
        assert Transformer.from_hparams(SMALL, 20).dtype_policy.name == "mixed_bfloat16"
        said = SMALL.parse("dtype_policy=float32")
        assert Transformer.from_hparams(said, 20).dtype_policy.name == "float32"
    finally:
        keras.config.set_dtype_policy("float32")


def test_sizes_that_heads_do_not_divide_are_named():
    for name in ("attention_key_channels", "attention_value_channels"):
        with pytest.raises(UserError, match=f"{name}=9: .*num_heads=2"):
            constructor_arguments(SMALL.parse(f"{name}=9"), Transformer)


def test_errors_of_a_constructor_name_hyperparameters():
    error = ValueError("`filter_size` must be 3: received filter_size=2, dropout=1, `key_dim`, key_dim=4, norm=x")
    text = in_hparams_words(error, Transformer)
    assert text == (
        "`filter_size` must be 3: received filter_size=2, layer_prepostprocess_dropout=1, `key_dim`, key_dim=4, norm=x"
    )


@pytest.mark.parametrize("declared", SETTINGS, ids=[s.name for s in SETTINGS])
def test_every_hyperparameter_is_an_argument_or_used_elsewhere(declared):
    assert re.fullmatch(r"[^.].*\.", declared.meaning), "a sentence"
    if declared.argument:
        assert declared.argument in _arguments(Transformer) | _arguments(TransformerLM)
        return
    used = re.compile(rf"""\w\.{declared.name}\b|"{declared.name}\"""")
    assert declared.name in {s.zero for s in SETTINGS} or used.search(_sources())


@functools.cache
def _sources():
    """Returns the text of all modules but those that list hyperparameters."""
    paths = sorted(pathlib.Path(t2t_lite.__file__).parent.rglob("*.py"))
    return "\n".join(path.read_text() for path in paths if path.name not in ("config.py", "tensor2tensor_names.py"))


@functools.cache
def _arguments(model_class):
    hparams = SMALL.parse("self_attention_type=restricted/dot_product_relative/dot_product_relative_v2")
    arguments = constructor_arguments(hparams, model_class)
    model_class(9, **{**arguments, "self_attention": [RESTRICTED, RELATIVE, MUSIC]})  # they all exist
    options = {f"self_attention.{o}" for kind in arguments.pop("self_attention") for o in kind}
    return {*arguments, *options, "self_attention"}


@pytest.mark.slow
def test_a_setting_that_a_model_declares(tmp_path):
    hparams = run_hparams({}, "transformer_tiny", "window=9,note=hello", model="own_model")
    assert (hparams.window, hparams.note) == (9, "hello")
    for mistake, answer in (
        ("window=65", "from 1 to 64"),
        ("window=x", "expected a whole number"),
        ("widnow=9", "window"),
    ):
        with pytest.raises(UserError, match=answer):
            run_hparams({}, "transformer_tiny", mistake, model="own_model")
    with pytest.raises(UserError, match="'window' is not a hyperparameter"):
        run_hparams({}, "transformer_tiny", "window=9", model="transformer")

    model = OwnModel.from_hparams(hparams, 20)
    assert model.config["window"] == 9
    assert OwnModel.from_hparams(SMALL, 20).config["window"] == 8  # a set without it: the default
    assert model_hparams(model, SMALL).window == 9
    assert hparam_of("window", OwnModel) == "window"
    assert differing_settings(model, hparams.parse("window=7"))["window"] == (7, 9)

    config = {
        "problem": "p", "model": "own_model", "hparams_set": "transformer_tiny", "usr_dir": "", "vocab_size": 20,
        "target_vocab_size": None, "vocabulary_sha256": {}, "batches_a_step": 1,
    }  # fmt: skip
    write_run_config(str(tmp_path), {**config, "hparams": hparams.values()})
    other = hparams.parse("window=10")
    with pytest.raises(UserError, match=r"window: 9 -> 10\. window cannot change"):
        changed_hparams(str(tmp_path), {**config, "hparams": other.values()}, allow_change=True)
    other = hparams.parse("note=")
    assert changed_hparams(str(tmp_path), {**config, "hparams": other.values()}, allow_change=True) == {
        "note": ["hello", ""]
    }
    assert run_hparams({**config, "hparams": hparams.values()}, None, "window=9") == hparams
    with pytest.raises(UserError, match="from 1 to 64"):
        run_hparams({**config, "hparams": {**hparams.values(), "window": 0}})


@pytest.mark.parametrize(
    "model, hparams_set, changes, named",
    [
        ("transformer_lm", "transformer_tiny", "num_decoder_layers=3", "num_decoder_layers"),
        ("transformer_encoder", "bert_tiny", "shared_embedding_and_softmax_weights=false", "shared_embedding_and_sof"),
    ],
)
def test_a_setting_of_another_model_is_refused(model, hparams_set, changes, named):
    """It would change nothing. A set may have them, for it serves several models; so do runs that have begun."""
    with pytest.raises(UserError, match=f"--hparams: {named}"):
        run_hparams({}, hparams_set, changes, model=model)
    begun = {"hparams": registry.hparams(hparams_set).values(), "hparams_set": hparams_set, "model": model}
    assert run_hparams(begun, None, "hidden_size=8").hidden_size == 8
    with pytest.raises(UserError, match=named):
        run_hparams(begun, None, changes)


def test_a_setting_that_a_subclass_makes_idle_is_refused():
    class OneDepth(Transformer):
        IDLE = ("num_encoder_layers", "relu_dropout")

    OneDepth.check_has(["num_hidden_layers", "num_decoder_layers", "filter_size"])
    for name in OneDepth.IDLE:
        Transformer.check_has([name])
        with pytest.raises(UserError, match=rf"{name} .*OneDepth"):
            OneDepth.check_has([name])


def test_a_setting_that_another_one_is_divided_by_or_stands_for_has_an_effect():
    """num_heads divides attention_key_channels, and num_encoder_layers=0 means num_hidden_layers."""

    class Keyed(keras.Model):
        def __init__(self, vocab_size, key_dim=None, num_encoder_layers=None):
            super().__init__()

    class Unkeyed(keras.Model):
        def __init__(self, vocab_size, hidden_size=8):
            super().__init__()

    class Idle(Keyed):
        IDLE = ("num_heads", "num_hidden_layers")

    class Undivided(Keyed):
        IDLE = ("attention_key_channels", "num_encoder_layers")

    names = {"attention_key_channels", "num_heads", "num_encoder_layers", "num_hidden_layers"}
    assert not settings_without_effect(Keyed) & names
    assert {"attention_value_channels", "num_decoder_layers", "hidden_size"} <= settings_without_effect(Keyed)
    assert settings_without_effect(Idle) & names == {*Idle.IDLE}
    for without in (Unkeyed, Undivided):
        assert settings_without_effect(without) >= names
    assert constructor_arguments(SMALL.parse("attention_key_channels=6"), Keyed)["key_dim"] == 3


def test_a_models_setting_cannot_have_the_name_of_a_common_one():
    class Twice(OwnModel):
        HPARAMS = OwnModel.HPARAMS | {"num_heads": OwnModel.HPARAMS["window"]}

    with pytest.raises(UserError, match=r"Twice\.HPARAMS: hparam num_heads already exists"):
        HParams().of_model(Twice)


@pytest.mark.slow
@pytest.mark.parametrize(
    "layers", ["restricted/dot_product", "dot_product_relative/restricted/dot_product", "dot_product"]
)
def test_kinds_of_self_attention_take_turns_over_the_layers(layers):
    hparams = SMALL.parse(f"self_attention_type={layers},attention_neighborhood=3,max_relative_position=4")
    model = Transformer.from_hparams(hparams.parse("num_hidden_layers=4"), 20)
    classes = {"restricted": (AttentionScore, WindowPattern), "dot_product_relative": (RelativeScore, Pattern)}
    expected = [classes.get(name, (AttentionScore, Pattern)) for name in (layers.split("/") * 4)[:4]]
    for stack in (model.encoder, model.decoder):
        attentions = [layer.self_attention.layer for layer in stack.layers]
        assert [(type(each.score), type(each.pattern)) for each in attentions] == expected
    assert {type(layer.cross_attention.layer).__name__ for layer in model.decoder.layers} == {"MultiHeadAttention"}
    assert model_hparams(model, HParams()).self_attention_type == layers


def test_two_settings_of_one_argument_must_agree():
    with pytest.raises(
        UserError, match=r"layer_preprocess_sequence=none, layer_postprocess_sequence=da: .* norm .*post and pre"
    ):
        Transformer.from_hparams(HParams(layer_postprocess_sequence="da"), 9)


def test_two_layers_of_one_kind_with_different_options():
    kinds = [RESTRICTED, {**RESTRICTED, "neighborhood": 5}]
    hparams = model_hparams(Transformer(9, self_attention=kinds, num_encoder_layers=2, num_decoder_layers=2), HParams())
    assert hparams.self_attention_type == "restricted/restricted(neighborhood=5)"
    assert constructor_arguments(hparams, Transformer)["self_attention"] == kinds


@pytest.fixture
def no_kind_left():
    yield
    SELF_ATTENTION.remove("scaled")


def test_a_model_that_hyperparameters_cannot_describe(no_kind_left):
    class Scaled(MultiHeadAttention):
        def __init__(self, num_heads, factor=0.5, **kwargs):
            super().__init__(num_heads, **kwargs)

    SELF_ATTENTION["scaled"] = Scaled
    with pytest.raises(UserError, match=r"self_attention=.*scaled.*hyperparameter"):
        model_hparams(Transformer(9, self_attention={"type": "scaled", "factor": 2.0}), HParams())


def test_another_kind_of_attention_with_an_option_of_its_own(no_kind_left):
    @keras.saving.register_keras_serializable("tests")
    class ScaledAttention(MultiHeadAttention):
        def __init__(self, num_heads, factor, **kwargs):
            super().__init__(num_heads, **kwargs)
            self.factor = factor

    class ScaledTransformer(Transformer):
        HPARAMS = {"my_factor": setting(0.5, 0, 1, argument="self_attention.factor")}  # noqa: RUF012

    SELF_ATTENTION["scaled"] = ScaledAttention
    model = ScaledTransformer.from_hparams(SMALL.parse("self_attention_type=scaled/dot_product"), 20)
    assert model.config["self_attention"] == [{"type": "scaled", "factor": 0.5}, "dot_product"]
    assert model.decoder.layers[0].self_attention.layer.factor == 0.5


@pytest.mark.slow
def test_a_subclass_whose_constructor_has_other_arguments_is_made_from_hyperparameters():
    class Windowed(Transformer):
        def __init__(self, vocab_size, window=8, **kwargs):
            super().__init__(vocab_size, **kwargs)
            self.window = window

    model = Windowed.from_hparams(SMALL, 20, 30)
    assert (model.vocab_size, model.target_vocab_size, model.window) == (20, 30, 8)

    class OfOneVocabulary(Windowed):
        def __init__(self, vocab_size, hidden_size, filter_size, num_heads, dtype=None):
            sizes = {"num_encoder_layers": 1, "num_decoder_layers": 1, "dtype": dtype}
            super().__init__(vocab_size, hidden_size=hidden_size, filter_size=filter_size, num_heads=num_heads, **sizes)

    assert OfOneVocabulary.from_hparams(SMALL, 20).vocab_size == 20


def test_a_model_with_an_option_of_its_own():
    class Windowed(TransformerModel):
        """Reads a window.

        Args:
            {options}
        """

        HPARAMS: ClassVar = {
            "window": setting("near", choices=("near", "far"), argument="window", meaning="Which window.")
        }
        OPTIONS: ClassVar = shared_options(hidden_size=8)

        def __init__(self, vocab_size, target_vocab_size=None, **options):
            super().__init__(vocab_size, target_vocab_size, **options)

        def build(self, input_shape=None):
            self.built = True

    model = Windowed.from_hparams(SMALL.of_model(Windowed).parse("window=far"), 20)
    assert (model.config["window"], model.config["hidden_size"]) == ("far", 8)
    assert "window: str. Which window. One of near, far." in Windowed.__doc__
    assert Windowed.from_config(model.get_config()).get_config() == model.get_config()
    with pytest.raises(UserError, match="near, far"):
        SMALL.of_model(Windowed).parse("window=wide")
    with pytest.raises(ValueError, match="`window` must be one of near, far: received window='wide'"):
        Windowed(20, window="wide")


def test_a_whole_number_needs_no_range():
    class OfAnyDepth(TransformerModel):
        HPARAMS: ClassVar = {"depth": setting(3, argument="depth")}
        OPTIONS: ClassVar = shared_options()

        def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
            super().__init__(vocab_size, target_vocab_size, **options)

    assert OfAnyDepth(9).config["depth"] == 3 and OfAnyDepth(9, depth=-4).config["depth"] == -4
