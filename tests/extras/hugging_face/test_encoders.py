"""BERT and its relatives in Hugging Face's folders: the same weights after a round trip, and clear refusals."""

# Nearest tests of: extras/hugging_face/named_weights.py, extras/hugging_face/hugging_face_folder.py
# Nearest tests of: extras/hugging_face/bert.py, extras/hugging_face/roberta.py

import json
import logging
import os
import pathlib
import re

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.extras.hugging_face.encoder_folders import CLASSES, LABELS, POSITIONS, write_encoder
from tests.extras.hugging_face.folders import config_of, configure, refuses_import, tensors_of
from tests.extras.hugging_face.in_and_out import assert_same_tensors, exported, in_and_out_twice, loaded, refuses_export
from tests.text.published_samples import PIECES

OLD = {".weight": ".gamma", ".bias": ".beta"}


@pytest.fixture
def bert(tmp_path):
    """The folder of a model that fills masks."""
    return write_encoder(tmp_path / "theirs", "BertForMaskedLM")[0]


@pytest.mark.slow
@pytest.mark.few(
    "BertForPreTraining", "RobertaForMaskedLM", "AlbertForMaskedLM", "DistilBertForSequenceClassification",
    "ElectraForMaskedLM",
)  # fmt: skip
@pytest.mark.parametrize("class_name", CLASSES)
def test_in_and_out_again(tmp_path, class_name):
    """Weights, vocabulary and settings are the same, bit by bit; a second time, too."""
    source = {"layer_norm_eps": 1e-6, "hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3}
    if class_name.startswith("DistilBert"):
        del source["layer_norm_eps"]
    folder, tensors = write_encoder(tmp_path / "theirs", class_name, **source)
    in_and_out_twice(folder, tmp_path)
    assert_same_tensors(tmp_path / "1", tensors)
    for name in {"vocab.txt", "vocab.json", "merges.txt"} & set(os.listdir(folder)):
        assert (tmp_path / "1" / name).read_bytes() == pathlib.Path(folder, name).read_bytes()
    assert config_of(folder).items() <= config_of(tmp_path / "1").items()
    assert config_of(tmp_path / "1", "tokenizer_config.json")["model_max_length"] == POSITIONS
    vocabulary = {"spiece.model", "sentencepiece.bpe.model"} & set(os.listdir(folder))
    for name in ("model.safetensors", "config.json", "tokenizer_config.json", *vocabulary):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "rename, more",
    [
        (lambda name: name.removeprefix("bert."), {}),
        (lambda name: re.sub("(?<=Norm)[.](weight|bias)", lambda found: OLD[found[0]], name), {}),
        (str, {"bert.embeddings.position_ids": (1, POSITIONS), "cls.predictions.decoder.weight": (len(PIECES), 16)}),
    ],
    ids=["without prefix", "gamma and beta", "buffers and tied copies"],
)  # fmt: skip
def test_other_names_of_the_same_weights(tmp_path, rename, more):
    folder, tensors = write_encoder(tmp_path / "theirs", "BertForMaskedLM")
    named = {rename(name): array for name, array in tensors.items()}
    named |= {name: np.zeros(shape, "float32") for name, shape in more.items()}
    write_tensors(f"{folder}/model.safetensors", named)
    exported(loaded(folder, tmp_path / "run"), tmp_path / "out")
    assert_same_tensors(tmp_path / "out", tensors)


@pytest.mark.long
def test_what_a_run_of_it_answers(tmp_path):
    """Classes have the model's names in its order; masks are filled; the first token and the length are the model's."""
    folder, _ = write_encoder(tmp_path / "classes", "BertForSequenceClassification")
    predictor = loaded(folder, tmp_path / "run")
    assert predictor.labels == LABELS and predictor.problem.name == "classify_own"
    assert sum(predictor.predict(["the cafe"])[0].probabilities.values()) == pytest.approx(1)
    assert predictor.model.config["first_id"] == predictor.encoders["inputs"].special_id("[CLS]")
    assert predictor.max_input_length == POSITIONS - 1
    folder, _ = write_encoder(tmp_path / "masks", "RobertaForMaskedLM")
    predictor = loaded(folder, tmp_path / "masks_run")
    assert len(predictor.fill_mask(["the <mask> in"], top=3)[0][0]) == 3
    assert predictor.max_input_length == POSITIONS - 1


@pytest.mark.slow
def test_the_head_of_sentences_is_found_by_its_weights(tmp_path):
    """bert-base-uncased says that it is a BertForMaskedLM, and has the other head, too; it may be left out."""
    folder, _ = write_encoder(tmp_path / "theirs", "BertForPreTraining")
    configure(folder, architectures=["BertForMaskedLM"])
    for problem, count in (("", 2), ("masked_lm_own", 0)):
        predictor = loaded(folder, tmp_path / f"run{count}", problem=problem)
        assert predictor.problem.name == (problem or "next_sentence_own")
        assert predictor.model.config["sentence_classes"] == count
        assert len(predictor.fill_mask(["the [MASK]"], top=3)[0][0]) == 3


@pytest.mark.slow
def test_one_label_is_a_number(tmp_path):
    """What the model says, in and out, also that of a model which has learned numbers of another range."""
    folder, tensors = write_encoder(tmp_path / "theirs", "BertForSequenceClassification", id2label={"0": "LABEL_0"})
    for number, problem in enumerate(("", "regress_pair_own")):
        predictor = loaded(folder, tmp_path / f"run{number}", problem=problem)
        assert predictor.problem.name == (problem or "regress_own")
        exported(predictor, tmp_path / str(number))
        assert_same_tensors(tmp_path / str(number), tensors)
    before = predictor.predict([("the cafe", "un")])[0].value
    predictor.encoders["targets"].lowest, predictor.encoders["targets"].highest = 2.0, 5.0
    again = loaded(exported(predictor, tmp_path / "wide"), tmp_path / "again", problem="regress_pair_own")
    after = again.predict([("the cafe", "un")])[0].value
    assert after == pytest.approx(2 + 3 * before, abs=1e-5)


@pytest.mark.slow
def test_problems_of_pairs(tmp_path):
    folder, _ = write_encoder(tmp_path / "theirs", "BertForSequenceClassification")
    predictor = loaded(folder, tmp_path / "run", problem="classify_pair_own")
    assert predictor.predict([("the", "cafe")])[0].label in LABELS
    folder, _ = write_encoder(tmp_path / "more", "RobertaForSequenceClassification")
    refuses_import(folder, tmp_path / "no", "two end tokens", problem="classify_pair_own")
    predictor = loaded(folder, tmp_path / "roberta")
    predictor.problem = registry.problem("classify_pair_own")  # as of a model that was trained here
    refuses_export(predictor, tmp_path, "two end tokens")


@pytest.mark.slow
def test_a_body_alone_gives_features(tmp_path, caplog):
    folder, tensors = write_encoder(tmp_path / "theirs", "BertModel", prefix=False)
    with caplog.at_level(logging.WARNING):
        predictor = loaded(folder, tmp_path / "run")
    assert "has no head" in caplog.text
    assert predictor.features(["the cafe"], pooling="mean")[0].shape == (16,)
    np.testing.assert_array_equal(predictor.model.embedding_norm.gamma, tensors["embeddings.LayerNorm.weight"])


@pytest.mark.slow
@pytest.mark.parametrize("lower", [True, False])
def test_case_is_as_the_tokenizer_says(bert, tmp_path, lower):
    """Also where the pieces say otherwise, in the run, in what is made from its vocabulary, and in exports."""
    pathlib.Path(bert, "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
    predictor = loaded(bert, tmp_path / "run")
    encoder = predictor.encoders["inputs"]
    assert encoder.encode("THE") == (encoder.encode("the") if lower else [encoder.unknown_id])
    out = exported(predictor, tmp_path / "out")
    assert config_of(out, "tokenizer_config.json")["do_lower_case"] is lower
    problem = registry.problem("classify_own")
    (tmp_path / "data").mkdir()
    problem.hold_vocabulary(str(tmp_path / "data"), encoder.path, class_labels=["a", "b"])
    again = registry.problem("classify_own").get_feature_encoders(str(tmp_path / "data"))["inputs"]
    assert (again.lower, again.fingerprint) == (encoder.lower, encoder.fingerprint)


@pytest.mark.slow
def test_a_vector_of_zeros_before_the_text(bert, tmp_path):
    """A model of here, which reads nothing first, goes out with a token there whose embedding is zero."""
    predictor = loaded(bert, tmp_path / "run")
    predictor.model.config["first_id"] = 0
    expected = predictor.features(["the cafe"])[0]
    again = loaded(exported(predictor, tmp_path / "out"), tmp_path / "again")
    assert again.model.config["first_id"] > 0
    np.testing.assert_allclose(again.features(["the cafe"])[0], expected, atol=1e-6)
    assert again.fill_mask(["the [MASK]"], top=len(PIECES))[0][0][-1].token == "[CLS]"


CONFIGS = [
    ({"architectures": ["BertLMHeadModel"]}, "architectures=BertLMHeadModel. Expected BertForPreTraining, "),
    ({"architectures": []}, "architectures="),
    ({"hidden_act": "tanh"}, "hidden_act=tanh. Expected gelu or "),
    ({"position_embedding_type": "relative_key"}, "position_embedding_type=relative_key. Expected absolute"),
    ({"tie_word_embeddings": False}, "tie_word_embeddings=False"),
    ({"is_decoder": True}, "is_decoder=True"),
    ({"pruned_heads": {"0": [1]}}, "pruned_heads="),
    ({"num_attention_heads": 3}, "num_attention_heads=3. Expected a divisor of hidden_size=16"),
    ({"num_hidden_layers": 3}, "encoder.layer.2.intermediate.dense.weight is missing"),
    ({"max_position_embeddings": 25}, "embeddings.position_embeddings.weight is float32 24 x 16"),
    ({"vocab_size": 5}, "word_embeddings.weight is"),
    ({"layer_norm_eps": 0}, "layer_norm_eps=0"),
]


@pytest.mark.parametrize("config, message", CONFIGS, ids=[message for _, message in CONFIGS])
def test_settings_that_do_not_fit_are_named(bert, tmp_path, config, message):
    configure(bert, **config)
    refuses_import(bert, tmp_path, message)


def test_a_bert_does_not_read_the_id_of_padding(tmp_path):
    """Published models with the vocabulary of another family, such as multilingual MiniLM, have a wrong one."""
    folder, _ = write_encoder(tmp_path / "theirs", "BertForMaskedLM")
    configure(folder, pad_token_id=1)
    loaded(folder, tmp_path / "bert")
    folder, _ = write_encoder(tmp_path / "roberta", "RobertaForMaskedLM")  # whose positions begin after it
    configure(folder, pad_token_id=0)
    refuses_import(folder, tmp_path, "pad_token_id=0. Expected …, the id of padding")


@pytest.mark.parametrize("file", ["tokenizer_config.json", "special_tokens_map.json"])
def test_special_tokens_with_other_roles_are_refused(bert, tmp_path, file):
    for role, token in (("cls_token", "[CLS]"), ("sep_token", "[SEP]"), ("unk_token", "[UNK]")):
        configure(bert, file, **{role: {"content": "[MASK]"}})
        refuses_import(bert, tmp_path, f"{file}: {role}=[MASK]. Expected {token}")
        configure(bert, file, **{role: token})
    loaded(bert, tmp_path / "run")


def test_other_files_that_do_not_fit_are_named(bert, tmp_path):
    config = pathlib.Path(bert, "tokenizer_config.json")
    config.write_text(json.dumps({"do_lower_case": True, "strip_accents": False}))
    refuses_import(bert, tmp_path, "strip_accents=False with do_lower_case=True")
    config.write_text(json.dumps({"do_basic_tokenize": False}))
    refuses_import(bert, tmp_path, "do_basic_tokenize=False")
    config.unlink()
    with open(f"{bert}/vocab.txt", "a") as file:
        file.write("more\n")
    refuses_import(bert, tmp_path, f"vocab_size={len(PIECES)}. Expected at least {len(PIECES) + 1}")


@pytest.mark.parametrize("name", ["tokenizer_config.json", "config.json"])
def test_a_class_that_splits_texts_in_another_way_is_refused(bert, tmp_path, name):
    """Such as that of Japanese models, whose words MeCab finds."""
    configure(bert, tokenizer_class="BertTokenizerFast")
    configure(bert, name, tokenizer_class="BertJapaneseTokenizer")
    refuses_import(bert, tmp_path, f"{name}: tokenizer_class=BertJapaneseTokenizer. Expected BertTokenizer or ")


@pytest.mark.slow
def test_ids_beyond_the_tokens_are_left_out(tmp_path, caplog):
    """As ERNIE 1.0 has them."""
    size = len(PIECES) + 3
    folder, tensors = write_encoder(tmp_path / "theirs", "BertForMaskedLM", vocab_size=size)
    with caplog.at_level(logging.WARNING):
        predictor = loaded(folder, tmp_path / "run")
    assert f"vocab_size={size}, but only {len(PIECES)} tokens" in caplog.text
    name = "bert.embeddings.word_embeddings.weight"
    found = tensors_of(exported(predictor, tmp_path / "out"))[name]
    np.testing.assert_array_equal(found, tensors[name][: len(PIECES)])


@pytest.mark.slow
def test_options_that_it_does_not_have_are_refused_by_name(bert, tmp_path):
    """All in one message, before anything is written."""
    predictor = loaded(bert, tmp_path / "run")
    predictor.model.config |= {"norm": "pre", "position": "sinusoidal", "num_segments": 0, "embedding_norm": False}
    words = "norm=pre", "position=sinusoidal (hparam pos)", "num_segments=0", "embedding_norm=False"
    refuses_export(predictor, tmp_path, "Bert cannot hold this model", *words)


@pytest.mark.slow
def test_shards_are_found_by_their_index(tmp_path):
    folder, tensors = write_encoder(tmp_path / "theirs", "BertForMaskedLM")
    os.remove(f"{folder}/model.safetensors")
    shards = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    names = sorted(tensors)
    index = {name: shards[n % 2] for n, name in enumerate(names)}
    path = pathlib.Path(folder, "model.safetensors.index.json")
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": index}))
    write_tensors(f"{folder}/{shards[0]}", {name: tensors[name] for name in names[::2]})
    refuses_import(folder, tmp_path, f"{shards[1]}: no such file")
    write_tensors(f"{folder}/{shards[1]}", {name: tensors[name] for name in names[3::2]})
    refuses_import(folder, tmp_path, f"{names[1]} is not in {shards[1]}. Copy all files")
    write_tensors(f"{folder}/{shards[1]}", {name: tensors[name] for name in names[1::2]})
    assert_same_tensors(exported(loaded(folder, tmp_path / "run"), tmp_path / "out"), tensors)
    path.write_text(json.dumps({"weight_map": index | {names[0]: "../model.safetensors"}}))
    message = "the shard is '../model.safetensors'. Expected the name of a .safetensors file"
    refuses_import(folder, tmp_path / "again", message)


@pytest.mark.slow
def test_a_byte_order_mark_is_no_part_of_the_first_piece(bert, tmp_path):
    path = pathlib.Path(bert, "vocab.txt")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    encoder = loaded(bert, tmp_path / "run").encoders["targets"]
    assert encoder.published_ids[0] == 0 and encoder.pieces([0]) == ["[PAD]"]


def added_to(folder, tensors, *tokens):
    """Gives a BERT's folder more rows, for tokens that were added; returns the tensors and {id: facts}."""
    name = "bert.embeddings.word_embeddings.weight"
    count = len(PIECES)
    tensors = tensors | {name: np.concatenate([tensors[name], tensors[name][: len(tokens)] + 1])}
    write_tensors(f"{folder}/model.safetensors", tensors)
    configure(folder, vocab_size=count + len(tokens))
    return tensors, {str(count + n): {"content": token, "special": "[" in token} for n, token in enumerate(tokens)}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["tokenizer_config.json", "tokenizer.json", "added_tokens.json"])
def test_tokens_that_were_added(tmp_path, file):
    """Each is one id with its own embedding, wherever it stands, as in Transformers; in and out again."""
    folder, tensors = write_encoder(tmp_path / "theirs", "BertForSequenceClassification")
    tensors, added = added_to(folder, tensors, "COVID", "[E1]")
    listed = [{"id": int(i), **facts} for i, facts in added.items()]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {piece: i for i, piece in enumerate(PIECES)}}
    words = {"normalizer": {"type": "BertNormalizer", "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"}}
    content = {
        "tokenizer_config.json": {"added_tokens_decoder": added},
        "tokenizer.json": {"model": model, "added_tokens": listed, **words},
        "added_tokens.json": {facts["content"]: int(i) for i, facts in added.items()},
    }[file]
    pathlib.Path(folder, file).write_text(json.dumps(content))
    if file == "added_tokens.json":
        special = {"additional_special_tokens": ["[E1]"], "pad_token": "[PAD]"}
        pathlib.Path(folder, "special_tokens_map.json").write_text(json.dumps(special))
    for predictor in in_and_out_twice(folder, tmp_path):
        encoder = predictor.encoders["inputs"]
        ids = encoder.encode("the [E1]cafe Covids")
        assert encoder.pieces(ids) == ["the", "[E1]", "cafe", "COVID", "s"]
        assert encoder.tf_encode(["the [E1]cafe Covids"]).to_list() == [ids]
        rows = predictor.model.embedding.embeddings.numpy()
        expected = tensors["bert.embeddings.word_embeddings.weight"]
        np.testing.assert_array_equal(rows[ids], expected[[encoder.published_ids[i] for i in ids]])
    assert_same_tensors(tmp_path / "1", tensors)
    assert config_of(tmp_path / "1", "tokenizer_config.json")["added_tokens_decoder"].keys() == added.keys()
