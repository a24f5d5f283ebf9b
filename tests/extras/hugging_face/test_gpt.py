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
from tests.extras.hugging_face.folders import config_of, configure, refuses_import, tensors_of
from tests.extras.hugging_face.gpt_folders import write_gpt
from tests.extras.hugging_face.in_and_out import (
    assert_same_tensors,
    exported,
    in_and_out_twice,
    loaded,
    refuses_export,
)
from tests.text.published_samples import write_byte_level, write_words


@pytest.mark.slow
@pytest.mark.few("gpt2--write_byte_level", "openai-gpt-transformer.-write_words")
@pytest.mark.parametrize(
    "kind, prefix, write_vocabulary",
    [
        ("gpt2", "transformer.", write_byte_level),
        ("gpt2", "", write_byte_level),
        *(
            (kind, "transformer.", write)
            for kind in registry.list_families("openai")  # of an extra
            for write in (write_byte_level, write_words)
        ),
    ],
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


def _configured(**config):
    return lambda folder: configure(folder, **config)


def _tensors(change):
    return lambda folder: write_tensors(f"{folder}/model.safetensors", change(tensors_of(folder)))


def _without(name):
    return _tensors(lambda tensors: {n: t for n, t in tensors.items() if n != name})


def _with(name, tensor):
    return _tensors(lambda tensors: tensors | {name: np.array(tensor, "float32")})


def _rename(folder):
    os.rename(f"{folder}/model.safetensors", f"{folder}/pytorch_model.bin")


def _cut(name):
    def cut(folder):
        path = pathlib.Path(folder, name)
        path.write_bytes(path.read_bytes()[:-5])

    return cut


def _append(folder):
    with open(f"{folder}/merges.txt", "a") as file:
        file.write("x y\n")


REFUSED = [
    (_configured(scale_attn_by_inverse_layer_idx=True), "scale_attn_by_inverse_layer_idx=True. Expected False"),
    (_configured(scale_attn_weights=False), "scale_attn_weights=False"),
    (_configured(add_cross_attention=True), "add_cross_attention=True"),
    (_configured(tie_word_embeddings=False), "tie_word_embeddings=False"),
    (_configured(activation_function="tanh"), "activation_function=tanh. Expected gelu_new or"),
    (_configured(n_head=3), "n_head=3. Expected a divisor of n_embd=16"),
    (_configured(n_layer=3), "h.2.mlp.c_fc.weight is missing"),
    (_configured(n_inner=32), "h.0.mlp.c_fc.weight is float32 16 x 64. Expected float 16 x 32"),
    (_configured(n_positions=25), "wpe.weight is float32 24 x 16"),
    (_configured(n_embd="16"), "n_embd"),
    (_configured(eos_token_id=5), "eos_token_id=5"),
    (_without("transformer.ln_f.bias"), "ln_f.bias is missing"),
    (_without("transformer.wte.weight"), "wte.weight is missing"),
    (_with("transformer.h.2.ln_1.bias", np.zeros(16)), "h.2.ln_1.bias does not belong"),
    (_with("transformer.ln_f.bias", np.zeros(15)), "ln_f.bias is float32 15. Expected float 16"),
    (_with("transformer.ln_f.bias", np.full(16, np.nan)), "NaN or infinite"),
    (_rename, "contains pytorch_model.bin"),
    (lambda folder: os.remove(f"{folder}/model.safetensors"), "model.safetensors"),
    (_cut("model.safetensors"), "model.safetensors: not a complete safetensors file"),
    (_cut("config.json"), "config.json: not readable as JSON"),
    (_cut("vocab.json"), "vocab.json: not readable as JSON"),
    (_cut("merges.txt"), "merges.txt"),
    (_append, "vocab.json has no token 'xy'"),
    (lambda folder: os.remove(f"{folder}/merges.txt"), "merges.txt"),
]


@pytest.mark.parametrize("change, message", REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_settings_tensors_and_files_that_do_not_fit_are_named(tmp_path, change, message):
    folder, _ = write_gpt(tmp_path / "theirs")
    change(folder)
    refuses_import(folder, tmp_path, message)


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
