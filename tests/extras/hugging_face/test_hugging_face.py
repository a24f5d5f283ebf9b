"""Hugging Face's folders from our side alone: what is refused, and out and in again. With Transformers: tests/peers."""

# Nearest tests of: extras/hugging_face/translation_models.py, extras/hugging_face/marian_vocabulary.py
# Nearest tests of: extras/hugging_face/marian.py, extras/hugging_face/config_file.py
# Nearest tests of: extras/hugging_face/hugging_face_folder.py

import json
import os
import pathlib
import pickle
import tracemalloc

import numpy as np
import pytest
import sentencepiece

from t2t_lite import registry
from t2t_lite.decoding.translator import Translator
from t2t_lite.extras.hugging_face.family import family_of
from t2t_lite.extras.hugging_face.hugging_face import export_hugging_face, import_hugging_face
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from t2t_lite.extras.hugging_face.marian_vocabulary import sentencepiece_models
from t2t_lite.extras.hugging_face.translation_models import translation_tensors
from t2t_lite.runs.run_config import read_run_config
from t2t_lite.text.sentencepiece_model import ModelProto
from t2t_lite.text.vocabulary import SentencePieceEncoder
from tests.decoding.runs import SENTENCES
from tests.export.models import translator_of
from tests.extras.hugging_face.folders import (
    changed,
    config_of,
    configure,
    json_with,
    refuses_import,
    spoil,
    tensors_of,
    tensors_with,
)
from tests.extras.hugging_face.in_and_out import loaded, refuses_export
from tests.layers.kinds import RELATIVE, RESTRICTED


@pytest.fixture(scope="module")
def exported(encoders, tmp_path_factory):
    """(Translator, the folder it was exported to): one vocabulary, the paper's positions."""
    translator = translator_of({"inputs": encoders["inputs"], "targets": encoders["inputs"]})
    return translator, export_hugging_face(translator, str(tmp_path_factory.mktemp("hf") / "model"))


PRE_NORM = {"activation": "swiglu", "tie_embeddings": False, "target_vocab_size": 310, "norm_epsilon": 1e-13}


@pytest.mark.slow
@pytest.mark.parametrize(
    "option",
    [
        {"norm_epsilon": 1e-6}, {"position": "learned"}, {"position": "none"}, {"position_layout": "tensor2tensor"},
        {"activation": "swiglu"}, {"key_dim": 3}, {"value_dim": 5}, {"target_space_embedding": True},
        {"self_attention": RELATIVE}, {"self_attention": RESTRICTED},
        *(
            {name: value, "norm": "pre"} for name, value in PRE_NORM.items() if "blenderbot" in registry.list_families()
        ),
    ],
    ids=str,
)  # fmt: skip
def test_an_option_that_it_does_not_have_is_refused_by_name(encoders, tmp_path, option):
    (name, value), one = next(iter(option.items())), encoders["inputs"]
    value = "" if name == "self_attention" else value
    refuses_export(translator_of({"inputs": one, "targets": one}, **option), tmp_path, f"{name}={value}")


def test_a_vocabulary_that_it_does_not_have_is_refused_by_name(tmp_path):
    refuses_export(translator_of(), tmp_path, "ByteTextEncoder")


@pytest.mark.few(
    "{}",
    "{'target_vocab_size': 310, 'tie_embeddings': False, 'softmax_bias': True}",
    "{'position_layout': 'marian', 'activation': 'swish', 'attention_bias': True, 'softmax_bias': True}",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"position_layout": "marian", "activation": "swish", "attention_bias": True, "softmax_bias": True},
        {"target_vocab_size": 310},
        {"target_vocab_size": 310, "tie_embeddings": False, "softmax_bias": True},
        {"tie_embeddings": False, "num_encoder_layers": 1, "num_decoder_layers": 3},
    ],
    ids=str,
)
def test_out_and_in_again(eager, encoders, tmp_path, options):
    """All weights are the same, those of the permuted hidden features included, and so are ids and texts."""
    side = "targets" if "target_vocab_size" in options else "inputs"
    translator = translator_of({"inputs": encoders["inputs"], "targets": encoders[side]}, **options)
    folder = export_hugging_face(translator, str(tmp_path / "hf"))
    assert import_hugging_face(folder, str(tmp_path / "run"), languages=("en", "de")) == str(
        tmp_path / "run" / "model.ckpt-0"
    )
    again = Translator.load(str(tmp_path / "run"))
    before, after = (translation_tensors(family_of(t.model), t.model) for t in (translator, again))
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)
    for side, encoder in translator.encoders.items():
        assert again.encoders[side].encode("der rote 😀 Haus.") == encoder.encode("der rote 😀 Haus.")
        assert again.encoders[side].pieces(range(encoder.vocab_size)) == encoder.pieces(range(encoder.vocab_size))
    if options:  # once is enough for several shapes of the same thing
        return
    search = {"alpha": 0.0, "beam_size": 2, "extra_length": 0}
    found = [t.text for t in again.translate(SENTENCES[:6], **search)]
    assert found == [t.text for t in translator.translate(SENTENCES[:6], **search)]


def test_stray_characters_get_the_same_ids_elsewhere(exported, tmp_path):
    """Other programs run the exported SentencePiece model, so it replaces what this package replaces in inputs."""
    translator, folder = exported
    text = "der\u00a0ro\u00adte\u200b Haus.\ufeff"
    source = sentencepiece.SentencePieceProcessor(f"{folder}/source.spm")
    assert source.encode(text) == translator.encoders["inputs"].encode(text) == source.encode("der rote Haus.")
    import_hugging_face(folder, str(tmp_path / "run"), languages=("en", "de"))
    again = Translator.load(str(tmp_path / "run"))
    assert again.model.config["tie_embeddings"]
    assert sentencepiece_models(again.encoders) == sentencepiece_models(translator.encoders)


@pytest.mark.parametrize("symbol", [">>de<<", "<2de>"])
def test_a_language_code_that_transformers_encodes_differently_is_a_warning(encoders, tmp_path, caplog, symbol):
    proto = ModelProto.FromString(encoders["inputs"].model)
    piece = proto.pieces[-1]
    piece.piece, piece.type = symbol, piece.USER_DEFINED
    (tmp_path / "v.model").write_bytes(proto.SerializeToString())
    encoder = SentencePieceEncoder(str(tmp_path / "v.model"))
    export_hugging_face(translator_of({"inputs": encoder, "targets": encoder}), str(tmp_path / "hf"))
    warnings = [message for message in caplog.messages if "language code" in message]
    assert len(warnings) == (symbol == ">>de<<") and all(message.startswith(symbol) for message in warnings)


def test_lengths_that_transformers_is_told(exported):
    """An input may have 1,024 pieces, an output 512."""
    assert config_of(exported[1], "tokenizer_config.json")["model_max_length"] == 1024
    assert config_of(exported[1], "generation_config.json")["max_length"] == 512


def test_the_search_of_generate_is_that_of_translate(exported, monkeypatch, tmp_path):
    """A problem may have defaults of its own; an argument comes before them."""
    translator, problem = exported[0], registry.problem("translate_own")
    problem.decode_defaults = {"beam_size": 21, "alpha": 0.3}
    monkeypatch.setattr(translator, "problem", problem)
    search = config_of(export_hugging_face(translator, str(tmp_path / "hf"), beam_size=5), "generation_config.json")
    assert (search["num_beams"], search["length_penalty"]) == (5, 0.3)


@pytest.mark.slow
def test_entries_and_pieces_that_only_one_file_has(exported, tmp_path):
    """A language code and two entries beyond the pieces; a piece that vocab.json lacks; a bias that forbids an id."""
    listed = config_of(exported[1], "vocab.json")
    lacking = next(piece for piece, i in listed.items() if i == 300)
    listed = {">>fr<<" if piece == lacking else piece: i for piece, i in listed.items()} | {"extra": 320, "other": 321}
    tensors = tensors_of(exported[1])
    shared = np.concatenate([tensors["model.shared.weight"], np.full((2, 8), [[0.25], [0.5]], "float32")])
    bias = np.linspace(-1, 1, 322, dtype="float32")[None]
    bias[0, 321] = -1e9
    folder = changed(exported[1], tmp_path / "hf", "vocab.json", lambda _: json.dumps(listed).encode())
    configure(folder, vocab_size=322, decoder_vocab_size=322)
    write_tensors(f"{folder}/model.safetensors", tensors | {"model.shared.weight": shared, "final_logits_bias": bias})
    found = loaded(folder, tmp_path / "run", languages=("en", "de"))
    sides = {side: encoder.pieces(range(encoder.vocab_size)) for side, encoder in found.encoders.items()}
    assert {"\u2581>>fr<<", "extra", "other", lacking} <= {*sides["targets"]} and "extra" not in sides["inputs"]
    at = {piece: i for i, piece in enumerate(sides["targets"])}
    embeddings, biases = (x.numpy() for x in (found.model.target_embedding.embeddings, found.model.softmax.bias))
    unknown = shared[listed["<unk>"]]
    expected = {"extra": shared[320], "\u2581>>fr<<": shared[300], lacking: unknown, "other": shared[321]}
    for piece, row in expected.items():
        np.testing.assert_array_equal(embeddings[at[piece]], row, err_msg=piece)
    assert biases[at["other"]] == biases[at[lacking]] == -100 and biases[at["extra"]] == bias[0, 320]
    inputs = found.model.input_embedding.embeddings.numpy()
    np.testing.assert_array_equal(inputs[sides["inputs"].index(lacking)], unknown)
    assert found.encoders["inputs"].pieces(found.encoders["inputs"].encode(">>fr<<"))[0] == "\u2581>>fr<<"


@pytest.mark.slow
def test_one_vocabulary_with_two_tables(exported, tmp_path):
    """Embeddings that the sides do not share, although they share a vocabulary; the softmax is the targets'."""
    tensors = tensors_of(exported[1])
    shared = tensors.pop("model.shared.weight")
    tables = {f"model.{side}.embed_tokens.weight": shared * n for n, side in enumerate(("decoder", "encoder"), 1)}
    folder = changed(exported[1], tmp_path / "hf", "config.json", json_with(share_encoder_decoder_embeddings=False))
    write_tensors(f"{folder}/model.safetensors", tensors | tables)
    model = loaded(folder, tmp_path / "run", languages=("en", "de")).model
    assert model.config["tie_embeddings"] is False
    halves = [layer.embeddings.numpy() for layer in (model.input_embedding, model.target_embedding, model.softmax)]
    np.testing.assert_array_equal(halves[0], 2 * halves[1])
    np.testing.assert_array_equal(halves[1], halves[2])


@pytest.mark.slow
def test_each_rate_of_dropout_is_taken_over(exported, tmp_path):
    theirs = {"dropout": 0.1, "attention_dropout": 0.2, "activation_dropout": 0.3}
    folder = changed(exported[1], tmp_path / "hf", "config.json", json_with(**theirs))
    import_hugging_face(folder, str(tmp_path / "run"), languages=("en", "de"))
    hparams = read_run_config(str(tmp_path / "run"))["hparams"]
    ours = ("layer_prepostprocess_dropout", "attention_dropout", "relu_dropout")
    assert [hparams[name] for name in ours] == [*theirs.values()]


def piece_named(name):
    """Returns a function that names a piece otherwise in the bytes of a vocab.json."""
    return lambda data: json.dumps({name if i == 5 else piece: i for piece, i in json.loads(data).items()}).encode()


def without(name):
    return lambda data: json.dumps({k: v for k, v in json.loads(data).items() if k != name}).encode()


def header_with(change):
    def rewrite(data):
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        change(header)
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + data[8 + length :]

    return rewrite


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, change, words",
    [
        ("config.json", json_with(model_type=["marian"]), "model_type is ['marian']"),
        ("config.json", json_with(scale_embedding=False), "scale_embedding=False"),
        ("config.json", json_with(activation_function="gelu_new"), "activation_function=gelu_new"),
        ("config.json", json_with(normalize_before=True), "normalize_before=True"),
        ("config.json", json_with(add_final_layer_norm=True), "add_final_layer_norm=True"),
        ("config.json", json_with(decoder_start_token_id=5), "decoder_start_token_id=5"),
        ("config.json", json_with(decoder_start_token_id=False), "decoder_start_token_id=False"),
        ("config.json", json_with(decoder_ffn_dim=24), "decoder_ffn_dim=24"),
        ("config.json", json_with(d_model=10**12), "d_model=1000000000000"),
        ("config.json", json_with(d_model=16), "model.shared.weight is float32 320 x 8. Expected float 320 x 16"),
        ("config.json", json_with(encoder_layers=500), "model.encoder.layers.2.fc1.weight is missing"),
        ("config.json", json_with(encoder_layers=1), "model.encoder.layers.1.…does not belong"),
        ("config.json", json_with(decoder_layers=0), "decoder_layers=0"),
        ("config.json", json_with(encoder_ffn_dim=13, decoder_ffn_dim=13), "layers.0.fc1.weight is float32 12 x 8"),
        ("config.json", json_with(vocab_size=10_000_000, decoder_vocab_size=10_000_000), "float32 320 x 8"),
        ("config.json", without("vocab_size"), "vocab_size"),
        ("config.json", json_with(eos_token_id=0), "Expected distinct ids"),
        ("config.json", json_with(eos_token_id=-3), "eos_token_id=-3"),
        ("config.json", json_with(eos_token_id=[1]), "eos_token_id…a whole number"),
        ("config.json", json_with(pad_token_id=320), "pad_token_id=320"),
        ("config.json", json_with(dropout="much"), "dropout…a number, found 'much'"),
        ("config.json", json_with(dropout=-0.1), "dropout=-0.1"),
        ("config.json", json_with(attention_dropout=1), "attention_dropout=1"),
        ("config.json", json_with(encoder_attention_heads=3, decoder_attention_heads=3), "encoder_attention_heads=3"),
        ("vocab.json", lambda data: b"[1, 2]", "expected an object"),
        ("vocab.json", json_with(x=5), "a different id"),
        ("vocab.json", json_with(x=10**9), "a different id"),
        ("vocab.json", json_with(x=-3), "a different id"),
        ("vocab.json", without("<unk>"), "'<unk>'"),
        ("vocab.json", piece_named("a\0b"), "not a valid piece"),
        ("vocab.json", piece_named("\ud800"), "not a valid piece"),
        ("vocab.json", piece_named("x" * 100_000), "not a valid piece"),
        ("source.spm", lambda data: data[:1000], "not a SentencePiece model"),
        ("tokenizer_config.json", lambda data: b"{}", "--languages"),
        ("tokenizer_config.json", json_with(unk_token={"content": ["x"]}), "unk_token"),
        ("tokenizer_config.json", json_with(separate_vocabs="yes"), "separate_vocabs"),
        ("tokenizer_config.json", json_with(source_lang=5), "source_lang"),
        ("model.safetensors", lambda data: (2**60).to_bytes(8, "little") + data[8:], "header too large"),
        ("model.safetensors", header_with(lambda h: h.update(x=dict(dtype="I8", shape=[0], data_offsets=[0, 0]))),
         "type I8"),
        ("model.safetensors", header_with(lambda h: h["final_logits_bias"].update(dtype="F" * 10**6)), "FFF"),
        ("model.safetensors", header_with(lambda h: h["final_logits_bias"].update(shape=[0, 2**70])), "not a complete"),
        ("model.safetensors", header_with(lambda h: h.update({f"x{i}": h["model.shared.weight"] for i in range(9)})),
         "invalid offset"),
        ("model.safetensors", tensors_with(lambda t: t.pop("final_logits_bias")), "final_logits_bias is missing"),
        ("model.safetensors", tensors_with(lambda t: spoil(t, "model.shared.weight", np.inf)), "NaN or infinite"),
        ("model.safetensors", tensors_with(lambda t: spoil(t, "final_logits_bias", np.nan)), "NaN or infinite"),
        ("model.safetensors", tensors_with(lambda t: spoil(t, "model.shared.weight", 1)), "embedding of padding"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_refused_on_the_way_in(exported, tmp_path, name, change, words):
    folder = changed(exported[1], tmp_path / "hf", name, change)
    languages = () if name == "tokenizer_config.json" else ("en", "de")
    tracemalloc.start()
    refuses_import(folder, tmp_path, words, languages=languages)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**29, "refused before memory is taken"


def test_no_code_is_run(exported, tmp_path):
    """A pickle in the place of weights: PyTorch is not there, or reads tensors alone."""

    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    folder = changed(exported[1], tmp_path / "hf", "model.safetensors", None)
    pathlib.Path(folder, "pytorch_model.bin").write_bytes(pickle.dumps(Harm()))
    refuses_import(folder, tmp_path, "pytorch_model.bin: ", languages=("en", "de"))


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.json", "source.spm", "config.json"])
def test_a_file_that_is_missing(exported, tmp_path, name):
    folder = changed(exported[1], tmp_path / "hf", name, None)
    refuses_import(folder, tmp_path, name, languages=("en", "de"))


@pytest.mark.parametrize("name", ["nowhere", "Helsinki-NLP/opus-mt-en-de", "bert-base-uncased"])
def test_a_name_on_the_hub_is_no_folder(name, tmp_path):
    refuses_import(name, tmp_path, f"{name}: no such folder…hf download {name} --local-dir={name.split('/')[-1]}")
