"""What is DistilBERT's, ELECTRA's and XLM-RoBERTa's alone, in and out; the rest is in test_encoders.py."""

import base64
import json
import logging
import pathlib

import numpy as np
import pytest
import sentencepiece

from t2t_lite.export.formats import obstacles
from t2t_lite.extras.hugging_face.family import family_of
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from t2t_lite.extras.hugging_face.published_vocabulary import published, vocabulary_of
from t2t_lite.text.sentencepiece_model import ModelProto
from t2t_lite.text.vocabulary_files import open_encoder
from tests.extras.hugging_face.encoder_folders import FAIRSEQ, POSITIONS, write_encoder
from tests.extras.hugging_face.folders import config_of, configure, refuses_import, tensors_of
from tests.extras.hugging_face.in_and_out import exported, loaded, refuses_export
from tests.text.published_samples import write_byte_level

TEXTS = ["the cafe", "  un\u3000naive  12 ", "\uff11\u2461 red", "東 Ⅷ xyz", "Cafe\u0301", ""]


@pytest.mark.slow
def test_a_distilbert_of_sines_has_a_table_of_them(tmp_path):
    """Which is stored like a learned one, and goes out as such."""
    folder, tensors = write_encoder(tmp_path / "theirs", "DistilBertForMaskedLM", sinusoidal_pos_embds=True)
    table = np.zeros((POSITIONS, 16), "float32")
    rates = np.arange(POSITIONS)[:, None] / 10000 ** (2 * np.arange(8) / 16)
    table[:, 0::2], table[:, 1::2] = np.sin(rates), np.cos(rates)
    name = "distilbert.embeddings.position_embeddings.weight"
    write_tensors(f"{folder}/model.safetensors", tensors | {name: table})
    predictor = loaded(folder, tmp_path / "run")
    exported(predictor, tmp_path / "out")
    np.testing.assert_array_equal(tensors_of(tmp_path / "out")[name], table)
    assert config_of(tmp_path / "out")["sinusoidal_pos_embds"] is False


@pytest.mark.slow
def test_a_distilbert_goes_out_with_its_own_tokenizer(tmp_path):
    """BERT's makes ids of segments, which the model does not take."""
    folder, _ = write_encoder(tmp_path / "theirs", "DistilBertForSequenceClassification")
    predictor = loaded(folder, tmp_path / "run")
    exported(predictor, tmp_path / "out")
    assert config_of(tmp_path / "out", "tokenizer_config.json")["tokenizer_class"] == "DistilBertTokenizer"
    predictor.model.config |= {"num_segments": 2, "norm_epsilon": 1e-5}
    words = "num_segments=2, expected 0", "norm_epsilon=1e-05, expected 1e-12"
    refuses_export(predictor, tmp_path, "DistilBert cannot hold this model: ", *words)


@pytest.mark.slow
def test_an_electra_that_tells_replaced_words_is_a_body(tmp_path, caplog):
    folder, tensors = write_encoder(tmp_path / "theirs", "ElectraModel")
    more = {"dense.weight": (16, 16), "dense.bias": (16,), "dense_prediction.weight": (1, 16)}
    more = {f"discriminator_predictions.{name}": np.ones(shape, "float32") for name, shape in more.items()}
    write_tensors(f"{folder}/model.safetensors", tensors | more)
    configure(folder, architectures=["ElectraForPreTraining"])
    with caplog.at_level(logging.WARNING):
        predictor = loaded(folder, tmp_path / "body")
    assert "has no head" in caplog.text and predictor.features(["the cafe"], pooling="first")[0].shape == (16,)
    assert predictor.model.config["pooler_activation"] == "gelu"  # of the class head of a run that begins with it
    config = config_of(folder)
    for settings, message in (
        ({"summary_type": "mean"}, "summary_type=mean. Expected first"),
        ({"summary_activation": "tanh"}, "summary_activation=tanh. Expected gelu"),
        ({"architectures": ["ElectraForMultipleChoice"]}, "architectures=ElectraForMultipleChoice. Expected Electra"),
    ):
        pathlib.Path(folder, "config.json").write_text(json.dumps(config | settings))
        refuses_import(folder, tmp_path, message)


@pytest.mark.slow
def test_an_electra_projects_only_embeddings_of_another_size(tmp_path):
    folder, tensors = write_encoder(tmp_path / "theirs", "ElectraForTokenClassification", embedding_size=16)
    assert not any("embeddings_project" in name for name in tensors)
    predictor = loaded(folder, tmp_path / "run")
    assert predictor.model.config["embedding_size"] is None and predictor.model.projection is None
    exported(predictor, tmp_path / "out")
    assert config_of(tmp_path / "out")["embedding_size"] == 16
    predictor.model.config["embedding_size"] = 16
    refuses_export(predictor, tmp_path, "embedding_size=16, expected other than hidden_size")


@pytest.fixture
def xlm_roberta(tmp_path):
    """(folder of an XLM-RoBERTa, fairseq's SentencePiece of it)."""
    folder, _ = write_encoder(tmp_path / "theirs", "XLMRobertaForMaskedLM")
    return pathlib.Path(folder), sentencepiece.SentencePieceProcessor(model_file=f"{folder}/{FAIRSEQ}")


@pytest.mark.slow
def test_ids_of_an_xlm_roberta_are_one_more_than_in_its_file(tmp_path, xlm_roberta):
    """But for the unknown piece's, 3 there; in the graph, too. The file goes out with the same pieces and ids."""
    folder, processor = xlm_roberta
    predictor = loaded(folder, tmp_path / "run")
    encoder, theirs = predictor.encoders["inputs"], published(predictor.encoders["inputs"])
    for text in TEXTS:
        expected = [i + 1 if i else 3 for i in processor.encode(text)]
        assert [theirs.ids[i] for i in encoder.encode(text)] == expected, text
        assert encoder.tf_encode([text]).to_list() == [encoder.encode(text)]
    assert [theirs.ids[i] for i in (0, 1, 2, theirs.special_ids["<mask>"])] == [1, 2, 3, len(processor) + 1]
    assert predictor.fill_mask(["the <mask>"], top=2)[0][0]
    row, mask = predictor.read("the <mask>cafe").rows[0], theirs.special_ids["<mask>"]
    assert row == [*encoder.encode("the"), mask, *encoder.encode("cafe"), 1]
    exported(predictor, tmp_path / "out")
    again = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / FAIRSEQ))
    both = ([(p.id_to_piece(i), p.get_score(i)) for i in range(len(p))] for p in (processor, again))
    assert next(both) == next(both) and (again.unk_id(), again.bos_id(), again.eos_id()) == (0, 1, 2)
    tokenizer = config_of(tmp_path / "out", "tokenizer_config.json")
    assert (tokenizer["tokenizer_class"], tokenizer["mask_token"]) == ("XLMRobertaTokenizer", "<mask>")


def whole(folder):
    """Returns the contents of a `tokenizer.json` of the same vocabulary, as on the Hub."""
    proto = ModelProto.FromString((folder / FAIRSEQ).read_bytes())
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocab = [[token, 0.0] for token in special] + [[piece.piece, piece.score] for piece in proto.pieces[3:]]
    vocab.append(["<mask>", 0.0])
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    numbers = [*range(4), len(vocab) - 1]
    split = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}
    return {
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab},
        "added_tokens": [{"id": i, "content": vocab[i][0], "special": True, "lstrip": i > 3} for i in numbers],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, split]},
    }


def test_an_xlm_roberta_may_have_its_tokenizer_json_alone(tmp_path, xlm_roberta):
    folder, _ = xlm_roberta
    with vocabulary_of(str(folder)) as vocabulary:
        encoder, ids = open_encoder(vocabulary.path), vocabulary.ids
    document = whole(folder)
    (folder / "tokenizer.json").write_text(json.dumps(document))
    with vocabulary_of(str(folder)) as vocabulary:
        assert vocabulary.ids == ids
    other = [*document["model"]["vocab"][:-1], ["more", -9.0], ["<mask>", 0.0]]
    (folder / "tokenizer.json").write_text(json.dumps(document | {"model": document["model"] | {"vocab": other}}))
    refuses_import(folder, tmp_path, f"{FAIRSEQ}: the pieces differ from those in {folder}/tokenizer.json")
    (folder / FAIRSEQ).unlink()
    blanks = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}
    later = {"normalizer": {"type": "Sequence", "normalizers": [document["normalizer"], {"type": "Strip"}, blanks]}}
    later["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    for more in ({}, later):
        (folder / "tokenizer.json").write_text(json.dumps(document | more))
        with vocabulary_of(str(folder)) as vocabulary:
            found = open_encoder(vocabulary.path)
        assert vocabulary.ids == ids
        for text in TEXTS:
            assert found.encode(text) == encoder.encode(text), text
    (folder / "tokenizer.json").write_text(json.dumps(document | {"normalizer": {"type": "Lowercase"}}))
    refuses_import(folder, tmp_path, "normalizer: type='Lowercase'. Expected 'Precompiled'")


def test_files_of_an_xlm_roberta_that_do_not_fit_are_named(tmp_path, xlm_roberta):
    folder, _ = xlm_roberta
    refuses_import(folder, tmp_path, "masked_lm_own", problem="next_sentence_own")
    (folder / "tokenizer_config.json").write_text(json.dumps({"add_prefix_space": False}))
    refuses_import(folder, tmp_path, f"{FAIRSEQ}: add_prefix_space=false. Expected true")
    (folder / "tokenizer_config.json").unlink()
    configure(folder, pad_token_id=0)
    refuses_import(folder, tmp_path, "pad_token_id=0. Expected 1, the id of padding")
    configure(folder, pad_token_id=1)
    model = (folder / FAIRSEQ).read_bytes()
    proto = ModelProto.FromString(model)
    proto.pieces[9].piece = "<mask>"
    (folder / FAIRSEQ).write_bytes(proto.SerializeToString())
    refuses_import(folder, tmp_path, "Expected <unk> <s> </s>, and no other")
    (folder / FAIRSEQ).write_bytes(b"no model")
    refuses_import(folder, tmp_path, f"{FAIRSEQ}: not a SentencePiece model")


@pytest.mark.slow
def test_the_vocabulary_says_which_family_a_roberta_is(tmp_path, xlm_roberta):
    """One segment and byte-level BPE: RoBERTa; with an XLM-RoBERTa's pieces that; with two segments neither."""
    predictor = loaded(xlm_roberta[0], tmp_path / "run")
    model, encoders = predictor.model, predictor.encoders
    byte_level = open_encoder(write_byte_level(tmp_path, special=["<s>", "<pad>", "</s>", "<unk>", "<mask>"]))
    assert family_of(model).model_type == family_of(model, {"inputs": byte_level}).model_type == "roberta"
    assert family_of(model, encoders).model_type == "xlm-roberta"
    assert obstacles("hugging_face", model, encoders) == []
    model.config["num_segments"] = 2
    reasons = obstacles("hugging_face", model, encoders)
    assert reasons == ["its vocabulary is a SentencePieceEncoder, expected WordPiece or ALBERT"]
