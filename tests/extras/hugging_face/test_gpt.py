"""Folders of GPT and GPT-2 from our side alone: in and out, and what is refused. With Transformers: tests/peers."""

# Nearest tests of: extras/hugging_face/language_models.py, extras/hugging_face/gpt2.py

import json
import os
import pathlib

import numpy as np
import pytest
import safetensors.numpy

from t2t_lite import registry
from t2t_lite.extras.hugging_face.hugging_face import import_hugging_face
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.extras.hugging_face.folders import (
    changed,
    config_of,
    configure,
    json_with,
    refuses_import,
    tensors_of,
    tensors_with,
)
from tests.extras.hugging_face.gpt_folders import write_gpt
from tests.extras.hugging_face.in_and_out import assert_same_tensors, exported, in_and_out_twice, loaded, refuses_export
from tests.text.published_samples import write_byte_level, write_words

KINDS = [
    ("gpt2", "transformer.", write_byte_level),
    ("gpt2", "", write_byte_level),
    ("openai-gpt", "transformer.", write_byte_level),  # of an extra
    ("openai-gpt", "transformer.", write_words),
]


@pytest.mark.slow
@pytest.mark.few("gpt2--write_byte_level", "openai-gpt-transformer.-write_words")
@pytest.mark.parametrize(
    "kind, prefix, write_vocabulary",
    [(kind, prefix, write) for kind, prefix, write in KINDS if kind in registry.list_families()],
)
def test_in_and_out_again(tmp_path, kind, prefix, write_vocabulary):
    """Weights, vocabulary and settings are the same, bit by bit; a second time, too."""
    activation = {"gpt2": {"activation_function": "gelu_pytorch_tanh"}, "openai-gpt": {"afn": "silu"}}[kind]
    rates = {"resid_pdrop": 0.25, "embd_pdrop": 0.25, "attn_pdrop": 0.5}
    folder, tensors = write_gpt(
        tmp_path / "theirs", kind, prefix, write_vocabulary, layer_norm_epsilon=1e-6, **activation, **rates
    )
    in_and_out_twice(folder, tmp_path)
    expected = {f"transformer.{name.removeprefix(prefix)}": array for name, array in tensors.items()}
    assert_same_tensors(tmp_path / "1", expected)
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / "1" / name).read_bytes() == pathlib.Path(folder, name).read_bytes()
    same = {"gelu_pytorch_tanh": "gelu_new"}  # two names of one function
    given = {name: same.get(value, value) for name, value in config_of(folder).items()}
    assert given.items() <= config_of(tmp_path / "1").items()
    assert (tmp_path / "0" / "model.safetensors").read_bytes() == (tmp_path / "1" / "model.safetensors").read_bytes()


def test_buffers_and_tied_copies_are_ignored(tmp_path):
    folder, tensors = write_gpt(tmp_path / "theirs", prefix="")
    more = {"h.0.attn.bias": np.ones((1, 1, 24, 24), bool), "lm_head.weight": tensors["wte.weight"]}
    safetensors.numpy.save_file(tensors | more, f"{folder}/model.safetensors")
    assert import_hugging_face(folder, str(tmp_path / "run"))


def with_tensor(name, tensor):
    return tensors_with(lambda tensors: tensors.update({f"transformer.{name}": np.array(tensor, "float32")}))


REFUSED = [
    ("config.json", json_with(scale_attn_by_inverse_layer_idx=True), "by_inverse_layer_idx=True. Expected False"),
    ("config.json", json_with(scale_attn_weights=False), "scale_attn_weights=False. Expected True"),
    ("config.json", json_with(add_cross_attention=True), "add_cross_attention=True"),
    ("config.json", json_with(tie_word_embeddings=False), "tie_word_embeddings=False"),
    ("config.json", json_with(activation_function="tanh"), "activation_function=tanh. Expected gelu_new or"),
    ("config.json", json_with(n_head=3), "n_head=3. Expected a divisor of n_embd=16"),
    ("config.json", json_with(n_layer=3), "h.2.mlp.c_fc.weight is missing"),
    ("config.json", json_with(n_inner=32), "h.0.mlp.c_fc.weight is float32 16 x 64. Expected float 16 x 32"),
    ("config.json", json_with(n_positions=25), "wpe.weight is float32 24 x 16"),
    ("config.json", json_with(n_embd="16"), "n_embd"),
    ("config.json", json_with(eos_token_id=5), "eos_token_id=5"),
    ("model.safetensors", tensors_with(lambda t: t.pop("transformer.ln_f.bias")), "ln_f.bias is missing"),
    ("model.safetensors", tensors_with(lambda t: t.pop("transformer.wte.weight")), "wte.weight is missing"),
    ("model.safetensors", with_tensor("h.2.ln_1.bias", np.zeros(16)), "h.2.ln_1.bias does not belong"),
    ("model.safetensors", with_tensor("ln_f.bias", np.zeros(15)), "ln_f.bias is float32 15. Expected float 16"),
    ("model.safetensors", with_tensor("ln_f.bias", np.full(16, np.nan)), "NaN or infinite"),
    ("model.safetensors", None, "model.safetensors"),
    ("model.safetensors", lambda data: data[:-5], "model.safetensors: not a complete safetensors file"),
    ("config.json", lambda data: data[:-5], "config.json: not readable as JSON"),
    ("vocab.json", lambda data: data[:-5], "vocab.json: not readable as JSON"),
    ("merges.txt", lambda data: data[:-5], "merges.txt"),
    ("merges.txt", lambda data: data + b"x y\n", "vocab.json has no token 'xy'"),
    ("merges.txt", None, "merges.txt"),
]


@pytest.mark.parametrize("name, change, message", REFUSED, ids=[message[:40] for *_, message in REFUSED])
def test_settings_tensors_and_files_that_do_not_fit_are_named(tmp_path, name, change, message):
    folder = changed(write_gpt(tmp_path / "theirs")[0], tmp_path / "changed", name, change)
    refuses_import(folder, tmp_path, message)


def test_a_file_that_may_run_code_is_not_read(tmp_path):
    folder, _ = write_gpt(tmp_path / "theirs")
    os.rename(f"{folder}/model.safetensors", f"{folder}/pytorch_model.bin")
    refuses_import(folder, tmp_path, "contains pytorch_model.bin, which may run code")


def with_rows(folder, tensors, added, **config):
    """Gives a folder's table of embeddings more rows, or fewer; returns the table."""
    table = tensors["transformer.wte.weight"]
    table = np.concatenate([table, table[:added] + 1]) if added > 0 else table[:added]
    write_tensors(f"{folder}/model.safetensors", tensors | {"transformer.wte.weight": table})
    configure(folder, vocab_size=len(table), **config)
    return table


def test_rows_beyond_the_vocabulary_are_left_out(tmp_path, caplog):
    """GPT-2's 50,257 are often padded to 50,304. Settings of newer versions say the end as a list."""
    folder, tensors = write_gpt(tmp_path / "theirs")
    end = json.loads(pathlib.Path(folder, "vocab.json").read_text())["<|endoftext|>"]
    with_rows(folder, tensors, -1)
    refuses_import(folder, tmp_path, "vocab_size=272. Expected at least 273, the number of tokens in ")
    with_rows(folder, tensors, 7, eos_token_id=[end, 0])
    refuses_import(folder, tmp_path, f"eos_token_id=[{end}, 0]. Expected only {end}, the id of '<|endoftext|>'")
    with_rows(folder, tensors, 7, eos_token_id=[end])
    exported(loaded(folder, tmp_path / "run"), tmp_path / "out")
    assert "vocab_size=280, but only 273 tokens" in caplog.text
    assert_same_tensors(tmp_path / "out", tensors)


@pytest.mark.slow
def test_padding_and_other_tokens_that_were_added(tmp_path):
    folder, tensors = write_gpt(tmp_path / "theirs")
    table = with_rows(folder, tensors, 2)
    added = {str(len(table) - 2): {"content": "[PAD]", "special": True}, str(len(table) - 1): {"content": "covid"}}
    pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    for number, generator in enumerate(in_and_out_twice(folder, tmp_path)):
        encoder = generator.encoders["targets"]
        assert encoder.published_ids[0] == len(table) - 2 and 0 in generator.model.config["unused_ids"]
        assert encoder.pieces(encoder.encode("a covids[PAD]")) == ["a", "Ġ", "covid", "s", "[", "P", "A", "D", "]"]
        assert encoder.decode(encoder.encode("a covids")) == "a covids"
        np.testing.assert_array_equal(tensors_of(tmp_path / str(number))["transformer.wte.weight"], table)
    said = config_of(tmp_path / "1", "tokenizer_config.json")
    assert said["pad_token"] == "[PAD]" and said["added_tokens_decoder"].keys() == added.keys()


def test_options_that_it_does_not_have_are_refused_by_name(tmp_path):
    """All in one message, before anything is written."""
    folder, _ = write_gpt(tmp_path / "theirs")
    generator = loaded(folder, tmp_path / "run")
    options = {"begin": "zero", "position": "sinusoidal", "scale_embeddings": True, "activation": "swiglu"}
    generator.model.config |= options
    words = (f"{name}={value}" for name, value in options.items())
    refuses_export(generator, tmp_path, "GPT2 cannot hold this model", "sinusoidal (hparam pos)", *words)
