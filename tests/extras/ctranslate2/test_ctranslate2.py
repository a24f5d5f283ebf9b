"""What fills CTranslate2's specification, in a double of it, and what is refused. Its translations: tests/peers."""

# Nearest tests of: extras/ctranslate2/in_t2t_exporter.py, extras/ctranslate2/quantizations.py

import os
import sys
import types

import numpy as np
import pytest

from t2t_lite.decoding.search.adapters import Ensemble
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.export import export_ctranslate2
from t2t_lite.export.formats import destinations_text
from t2t_lite.extras.ctranslate2.ctranslate2 import model_spec
from t2t_lite.extras.ctranslate2.quantizations import QUANTIZATIONS
from t2t_lite.extras.hugging_face.marian_vocabulary import unique_pieces
from t2t_lite.models import Transformer
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.decoding.runs import make_language_model_run
from tests.export.models import translator_of
from tests.layers.equations import array
from tests.layers.kinds import RELATIVE, RELATIVE_VALUES, RESTRICTED


class Double(types.SimpleNamespace):
    """Stands for a part of CTranslate2's specification: an attribute that is not there is another part."""

    def __getattr__(self, name):
        if name.startswith("__") or name in ("linear_0_noact", "relative_position_keys"):
            raise AttributeError(name)
        setattr(self, name, [Double() for _ in range(3)] if name == "linear" else Double())
        return getattr(self, name)


class Spec(Double):
    """The specification of a Transformer, which keeps its vocabularies."""

    def register_source_vocabulary(self, tokens):
        self.tokens = {"inputs": tokens}

    def register_target_vocabulary(self, tokens):
        self.tokens |= {"targets": tokens}


def side(num_layers, embeddings=None, **options):
    """An encoder's or a decoder's specification."""
    layers = [Double(ffn=Double(), self_attention=Double()) for _ in range(num_layers)]
    for layer in layers:
        if options["ffn_glu"]:
            layer.ffn.linear_0_noact = Double()
        if options["relative_position"]:
            layer.self_attention.relative_position_keys = None
    return Double(options=options, layer=layers, **({"embeddings": embeddings} if embeddings else {}))


@pytest.fixture
def double(monkeypatch):
    """CTranslate2 without its library."""
    modules = {
        "": {},
        ".specs": {},
        ".specs.common_spec": {"Activation": types.SimpleNamespace(RELU="relu", GELU="gelu", SWISH="swish")},
        ".specs.transformer_spec": {
            "TransformerEncoderSpec": lambda *sizes, **options: side(*sizes, **options, embeddings=[Double()]),
            "TransformerDecoderSpec": side,
            "TransformerSpec": lambda encoder, decoder: Spec(encoder=encoder, decoder=decoder),
        },
    }
    for name, content in modules.items():
        module = types.ModuleType(f"ctranslate2{name}")
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)


TOKENS = {"inputs": [f"i{n}" for n in range(258)], "targets": [f"t{n}" for n in range(258)]}


def model_of(**options):
    """A Transformer of 2 and 1 layers whose biases and gains are not those of the beginning."""
    model = translator_of(num_encoder_layers=2, num_decoder_layers=1, attention_bias=True, **options).model
    rng = np.random.default_rng(2)
    for weight in model.trainable_weights:
        weight.assign(weight + rng.normal(scale=0.1, size=weight.shape))
    return model


def assert_dense(theirs, *layers):
    """[outputs, inputs], the outputs of several projections one after the other."""
    np.testing.assert_array_equal(theirs.weight, np.concatenate([array(layer.kernel).T for layer in layers]))
    np.testing.assert_array_equal(theirs.bias, np.concatenate([array(layer.bias) for layer in layers]))


@pytest.mark.parametrize("norm, activation", [("pre", "swiglu"), ("post", "gelu")])
def test_each_weight_has_its_place(double, norm, activation):
    more = {"softmax_bias": True, "target_space_embedding": True, "norm_epsilon": 1e-4}
    model = model_of(norm=norm, activation=activation, **more)
    spec = model_spec(model, TOKENS)
    options = {
        "num_heads": model.config["num_heads"], "pre_norm": norm == "pre", "ffn_glu": activation == "swiglu",
        "activation": {"swiglu": "swish"}.get(activation, activation), "relative_position": False, "head_dim": None,
    }  # fmt: skip
    assert spec.encoder.options == spec.decoder.options == options
    for theirs, ours in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        assert len(theirs.layer) == len(ours.layers) and theirs.scale_embeddings is True
        for part, layer in zip(theirs.layer, ours.layers, strict=True):
            own = layer.self_attention.layer
            assert_dense(part.self_attention.linear[0], own.query_projection, own.key_projection, own.value_projection)
            assert_dense(part.self_attention.linear[1], own.output_projection)
            assert_dense(part.ffn.linear_0, layer.feed_forward.layer.inner)
            assert_dense(part.ffn.linear_1, layer.feed_forward.layer.outer)
            if activation == "swiglu":
                assert_dense(part.ffn.linear_0_noact, layer.feed_forward.layer.gate)
            np.testing.assert_array_equal(part.ffn.layer_norm.gamma, array(layer.feed_forward.normalization.gamma))
            beta = array(layer.self_attention.normalization.beta)
            np.testing.assert_array_equal(part.self_attention.layer_norm.beta, beta)
    cross, ours = spec.decoder.layer[0].attention, model.decoder.layers[0].cross_attention
    assert_dense(cross.linear[0], ours.layer.query_projection)
    assert_dense(cross.linear[1], ours.layer.key_projection, ours.layer.value_projection)
    assert_dense(cross.linear[2], ours.layer.output_projection)
    np.testing.assert_array_equal(cross.layer_norm.gamma, array(ours.normalization.gamma))
    if norm == "pre":
        np.testing.assert_array_equal(spec.encoder.layer_norm.gamma, array(model.encoder_norm.gamma))
        np.testing.assert_array_equal(spec.decoder.layer_norm.beta, array(model.decoder_norm.beta))
    np.testing.assert_array_equal(spec.encoder.embeddings[0].weight, array(model.input_embedding.embeddings))
    np.testing.assert_array_equal(spec.decoder.projection.bias, array(model.softmax.bias))
    sinusoids = array(model.decoder_position.encode(np.arange(2048)))
    np.testing.assert_array_equal(spec.decoder.position_encodings.encodings, sinusoids)
    with_space = sinusoids + array(model.target_space)
    np.testing.assert_allclose(spec.encoder.position_encodings.encodings, with_space, atol=1e-6)
    assert spec.tokens == TOKENS and spec.decoder.start_from_zero_embedding is True
    assert vars(spec.config) == {
        "unk_token": "t2", "bos_token": "t0", "eos_token": "t1", "decoder_start_token": "t1", "add_source_bos": False,
        "add_source_eos": True, "layer_norm_epsilon": 1e-4,
    }  # fmt: skip


@pytest.mark.parametrize("position", ["learned", "none", "relative"])
def test_other_positions(double, position):
    relative = {"position": "none", "self_attention": RELATIVE_VALUES}
    model = model_of(norm="pre", **relative if position == "relative" else {"position": position})
    spec = model_spec(model, TOKENS)
    if position == "relative":
        own, theirs = model.encoder.layers[1].self_attention.layer, spec.encoder.layer[1].self_attention
        np.testing.assert_array_equal(theirs.relative_position_keys, array(own.key_table))
        np.testing.assert_array_equal(theirs.relative_position_values, array(own.value_table))
        assert "position_encodings" not in vars(spec.encoder)
    else:
        found = spec.encoder.position_encodings.encodings
        expected = array(model.encoder_position.table) if position == "learned" else np.zeros((2048, found.shape[1]))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "option, expected",
    [
        ({"self_attention": RESTRICTED}, r"self_attention=restricted\(neighborhood=3\) \(hparam self_attention_type\)"),
        ({"self_attention": [RESTRICTED, "dot_product"]}, "self_attention=restricted.*/dot_product"),
        ({"value_dim": 6, "key_dim": 4}, "value_dim=6"),
        ({"self_attention": RELATIVE, "position": "none"}, "add_relative_to_values=False"),
        ({"self_attention": RELATIVE_VALUES, "position": "sinusoidal"}, "position=sinusoidal"),
    ],
    ids=str,
)
def test_an_option_that_it_does_not_have_is_refused_by_name(option, expected, tmp_path):
    with pytest.raises(UserError, match=expected):
        export_ctranslate2(translator_of(**option), str(tmp_path / "ct2"))
    assert os.listdir(tmp_path) == []


def test_other_models_are_refused(tmp_path):
    class Changed(Transformer):
        pass

    one = translator_of()
    for model, words in ((Ensemble([one.model, one.model]), "ensemble"), (Changed(**one.model.config), "Changed")):
        with pytest.raises(UserError, match=words):
            export_ctranslate2(Translator(model, one.encoders, one.hparams), str(tmp_path / "ct2"))
    assert os.listdir(tmp_path) == []


def test_mistakes(tmp_path, monkeypatch):
    translator = translator_of()
    with pytest.raises(UserError, match=r"--quantization=int4.*int8"):
        export_ctranslate2(translator, str(tmp_path / "ct2"), "int4")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    with pytest.raises(UserError, match="full: "):
        export_ctranslate2(translator, str(tmp_path / "full"))
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError, match=r"pip install 't2t_lite\[ctranslate2\]'"):
        export_ctranslate2(translator, str(tmp_path / "ct2"))
    assert os.listdir(tmp_path) == ["full"]


def test_pieces_are_all_different():
    class Odd(ByteTextEncoder):
        def pieces(self, ids):
            return ["</s>" if i == 7 else piece for i, piece in zip(ids, super().pieces(ids), strict=True)]

    pieces = unique_pieces(Odd())
    assert len(set(pieces)) == len(pieces) == 258
    assert pieces[:2] == ["<pad>", "<</s>>"] and pieces[7] == "</s>"


@pytest.mark.slow
def test_a_language_model_is_refused(call_command, assert_user_error, tmp_path):
    run = make_language_model_run(tmp_path / "lm")
    result = call_command("t2t-exporter", f"--output_dir={run}", "--format=ctranslate2")
    assert_user_error(result, "CTranslate2", "TransformerLM")


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--quantization=int8"], ["--quantization", "--format=saved_model", "--format=ctranslate2"]),
        (["--format=ctranslate2", "--quantization=int4"], ["--quantization", "int8, int16"]),
    ],
)
def test_mistakes_of_flags(call_command, assert_user_error, flags, words):
    assert_user_error(call_command("t2t-exporter", "--output_dir=run", *flags), *words)


def test_it_is_among_the_destinations():
    lines = {line.split()[0]: line for line in destinations_text(translator_of(activation="swiglu").model).splitlines()}
    assert lines["ctranslate2"].endswith("yes")


def test_quantizations_are_those_of_ctranslate2():
    assert QUANTIZATIONS == ("int8", "int16", "float16", "bfloat16", "float32")
