"""Imported models compute what tensor2tensor computes: its forward pass, written out in NumPy from its source."""

# Nearest tests of: extras/tensor2tensor/tensor2tensor_checkpoint.py, extras/tensor2tensor/tensor2tensor_hparams.py

import json

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.extras.tensor2tensor.tensor2tensor_hparams import import_tensor2tensor
from t2t_lite.runs.opening import open_run
from tests.export.old_models import PIECES, OldModel, write_vocabulary

VARIANTS = {
    "base": {},
    "big": {"hidden": 32, "filter": 64, "heads": 8, "layers": 3, "seed": 1},
    "post_norm": {"pre_norm": False},
    "one_shard": {"shards": 1},
    "no_target_space": {"target_space": False},
    "untied": {"tied": False},
    "padded_vocabulary": {"rows": 96},
    "two_vocabularies": {"target_rows": 90},
    "two_vocabularies_untied": {"target_rows": 90, "tied": False, "shards": 1},
    "larger_inputs": {"rows": 96, "target_rows": 92},
    "learned_positions": {"positions": 20},
    "own_head_sizes": {"key_channels": 8, "value_channels": 24},
    "3d_projections": {"is_3d": True, "key_channels": 8, "value_channels": 24},  # of each head not as many as heads
}
_RELATIVE = (
    "transformer/body/encoder/layer_0/self_attention/multihead_attention/dot_product_attention_relative/"
    "relative_positions_keys/embeddings"
)


def imported(tmp_path, old, vocabularies=None, **arguments):
    path = old.write(tmp_path / "old", **arguments.pop("written", {}))
    vocabularies = vocabularies or [str(tmp_path / "old" / "vocab.subwords")]
    settings = {"languages": ("en", "de"), **arguments}
    return import_tensor2tensor(path, vocabularies, str(tmp_path / "new"), **settings)


def compare(old, checkpoint):
    """Asserts that our model gives the same logits."""
    rng = np.random.default_rng(5)
    inputs, targets = rng.integers(2, len(PIECES), (3, 7)), rng.integers(2, len(PIECES), (3, 6))
    inputs[:, -1] = 1
    inputs[1, 4:] = 1, 0, 0
    targets[2, 5:] = 0
    expected = old.logits(inputs, targets)
    run = open_run(checkpoint)
    found = run.model({"inputs": inputs, "targets": targets}, training=False).numpy()
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-4
    assert np.abs(expected).max() > 1
    return run


@pytest.mark.few("no_target_space", "two_vocabularies_untied", "larger_inputs", "learned_positions", "3d_projections")
@pytest.mark.slow
@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_the_same_logits(tmp_path, options):
    old = OldModel(**options)
    vocabularies = [str(tmp_path / "old" / "vocab.subwords")]
    if old.target_rows:
        vocabularies.append(str(write_vocabulary(tmp_path / "de.subwords", [*PIECES, "der_", "Haus", "alt"])))
        if old.rows > old.target_rows:
            vocabularies.reverse()
    checkpoint = imported(tmp_path, old, vocabularies)
    assert checkpoint == str(tmp_path / "new" / "model.ckpt-250000")
    run = compare(old, checkpoint)
    assert run.step == 250_000
    assert run.hparams.layer_prepostprocess_dropout == 0.3 and run.hparams.max_length == 128, "from hparams.json"


@pytest.mark.slow
def test_the_settings_of_training_are_taken_over(tmp_path):
    theirs = {
        "layer_prepostprocess_dropout": 0.21, "attention_dropout": 0.22, "relu_dropout": 0.23, "label_smoothing": 0.24,
        "batch_size": 777, "max_length": 99, "min_length": 3, "norm_epsilon": 1e-5, "multiply_embedding_mode": "none",
    }  # fmt: skip
    hparams = open_run(imported(tmp_path, OldModel(), written=theirs, hparams="relu_dropout=0.25")).hparams
    assert {name: hparams.get(name) for name in theirs} == {**theirs, "relu_dropout": 0.25}
    assert hparams.optimizer == registry.hparams("transformer_base").optimizer


@pytest.mark.slow
def test_without_settings_beside_the_checkpoint(tmp_path):
    old = OldModel(hidden=128, filter=512, heads=4)
    path = old.write(tmp_path / "old", with_hparams=False)
    arguments = path, [str(tmp_path / "old" / "vocab.subwords")], str(tmp_path / "new")
    with pytest.raises(UserError, match=r"number of heads.*--hparams_set=transformer_base"):
        import_tensor2tensor(*arguments, languages=("en", "de"))
    with pytest.raises(UserError, match=r"--hparams_set=transformer_big: hidden_size=1024, but .* hidden_size=128"):
        import_tensor2tensor(*arguments, languages=("en", "de"), hparams_set="transformer_big")
    run = compare(old, import_tensor2tensor(*arguments, languages=("en", "de"), hparams_set="transformer_tiny"))
    assert run.hparams.learning_rate_constant == registry.hparams("transformer_tiny").learning_rate_constant


@pytest.mark.slow
def test_heads_alone_are_enough_for_other_sizes(tmp_path):
    old = OldModel(pre_norm=False)
    run = compare(old, imported(tmp_path, old, written={"with_hparams": False}, hparams="num_heads=4"))
    assert (run.hparams.num_heads, run.hparams.hidden_size, run.model.config["norm"]) == (4, 16, "post")


@pytest.mark.slow
def test_a_scope_of_another_name_or_none(tmp_path):
    old = OldModel()
    for number, scope in enumerate(("", "my_model/")):
        folder = tmp_path / str(number)
        changes = {**dict.fromkeys(old.variables()), **old.variables(scope)}
        run = compare(old, imported(folder, old, written={"changes": changes}))
        assert run.step == 250_000


@pytest.mark.parametrize(
    "settings, changes, words",
    [
        ({"ffn_layer": "sru"}, {}, ["hparams.json", "ffn_layer=sru", "dense_relu_dense"]),
        ({"self_attention_type": "dot_product_relative"}, {}, ["self_attention_type"]),
        ({"layer_postprocess_sequence": "ad"}, {}, ["hparams.json", "layer_postprocess_sequence"]),
        ({"unidirectional_encoder": True}, {}, ["unidirectional_encoder=True"]),
        ({"norm_type": "batch"}, {}, ["norm_type=batch"]),
        ({"proximity_bias": True}, {}, ["proximity_bias=True"]),
        ({"causal_decoder_self_attention": False}, {}, ["causal_decoder_self_attention=False"]),
        ({"prepend_mode": "prepend_inputs_masked_attention"}, {}, ["prepend_mode=prepend_inputs"]),
        ({"hard_attention_k": 2}, {}, ["hard_attention_k=2"]),
        ({"num_area_layers": 1}, {}, ["num_area_layers=1"]),
        ({"hparams": {}}, {}, ["hparams.json", "t2t_lite"]),
        ({"pos": "none"}, {"inputs_positional_embedding": np.zeros((9, 16), "float32")}, ["pos=none", "pos=emb"]),
        ({"weight_dtype": "bfloat16"}, {}, ["weight_dtype=bfloat16"]),
        ({"hidden_size": 64}, {}, ["hparams.json", "hidden_size=64", "hidden_size=16"]),
        ({"hidden_size": "wide"}, {}, ["hparams.json", "hidden_size=wide", "whole number"]),
        ({"num_heads": 3}, {}, ["num_heads=3"]),
        ({}, {"transformer/body/decoder/layer_1/ffn/conv2/bias": None}, ["layer_1/ffn/conv2/bias"]),
        ({}, {"transformer/body/encoder/layer_0/ffn/conv1/bias": np.float32([np.nan] * 32)}, ["NaN"]),
        ({}, {f"transformer/symbol_modality_{len(PIECES)}_16/shared/weights_3": None}, ["shards"]),
        ({}, dict.fromkeys(OldModel().variables()) | {"x": np.float32(1)}, ["not a Transformer of tensor2tensor"]),
        ({}, {_RELATIVE: np.zeros((9, 4), "float32")}, [_RELATIVE, "ordinary attention"]),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, settings, changes, words):
    with pytest.raises(UserError) as error:
        imported(tmp_path, OldModel(), written={"changes": changes, **settings})
    assert all(word in str(error.value) for word in words) and "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["old"], "nothing is left behind"


@pytest.mark.parametrize("setting", ["self_attention_type=dot_product_relative", "ffn_activation=swiglu"])
def test_layers_that_tensor2tensors_weights_do_not_fill_are_refused(tmp_path, setting):
    hparams = f"num_heads=4,max_relative_position=4,pos=none,{setting}"
    with pytest.raises(UserError, match=f"--hparams_set and --hparams: {setting}: only models with "):
        imported(tmp_path, OldModel(), written={"with_hparams": False}, hparams=hparams)


def test_vocabularies_that_do_not_fit(tmp_path):
    larger = write_vocabulary(tmp_path / "larger.subwords", [*PIECES, "more_"])
    with pytest.raises(UserError, match=f"larger.subwords: {len(PIECES) + 1} pieces, but the model has {len(PIECES)}"):
        imported(tmp_path, OldModel(), [str(larger)])
    with pytest.raises(UserError, match=r"--vocab=INPUTS\.subwords,TARGETS\.subwords"):
        imported(tmp_path, OldModel(target_rows=90))
    with pytest.raises(UserError, match="already contains files"):
        import_tensor2tensor(str(tmp_path / "old"), [str(larger)], str(tmp_path), languages=("en", "de"))


@pytest.mark.slow
def test_translates_and_rows_without_pieces_are_no_text(tmp_path):
    translator = Translator.load(imported(tmp_path, OldModel(rows=96)))
    texts = ["the red house is old.", "1_2 \\ \u2603", "Haus", ""]
    first, again = (translator.translate(texts, beam_size=2, extra_length=2) for _ in range(2))
    assert [t.text for t in first] == [t.text for t in again] and first[-1].text == ""
    assert first[0].source_tokens == ["the_", "red_", "house_", "is_", "old_", "._"]
    assert translator.encoders["targets"].decode([90, 2, 95]) == "the"
    config = json.loads((tmp_path / "new" / "problem.json").read_text())
    assert config["languages"] == ["en", "de"]
