"""ALBERT's vocabulary: its clean-up, its special tokens, and what is refused of it."""

import json
import pathlib

import pytest

from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import SentencePieceEncoder
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.hugging_face.folders import refuses_import
from tests.extras.hugging_face.in_and_out import in_and_out_twice, loaded, refuses_export
from tests.extras.hugging_face.tokenizer_files import changed, refused, unigram, write


@pytest.mark.long
def test_beside_a_mask_of_an_albert_a_new_word_begins_as_in_its_tokenizer(tmp_path):
    folder, _ = write_encoder(tmp_path / "theirs", "AlbertForMaskedLM")
    predictor = loaded(folder, tmp_path / "run")
    encoder = predictor.encoders["inputs"]
    expected = [*encoder.encode("the"), encoder.pieces(range(encoder.vocab_size)).index("[MASK]")]
    assert predictor.read("the [MASK]cafe").rows == [[*expected, *encoder.encode("cafe"), 1]]


@pytest.mark.slow
def test_an_albert_cleans_texts_up(tmp_path):
    """As its tokenizer does: quotation marks, accents, case. The second time the model's own rules do all of it."""
    folder, _ = write_encoder(tmp_path / "theirs", "AlbertForMaskedLM")
    for predictor in in_and_out_twice(folder, tmp_path):
        encoder = predictor.encoders["inputs"]
        text, same = "``Cafe\u0301'' NA\u00cfVE \uff11\u2461\u3000in", '"cafe" naive 12 in'
        assert encoder.tf_encode([text]).to_list() == [encoder.encode(text)] == [encoder.encode(same)]
    config = pathlib.Path(folder, "tokenizer_config.json")
    config.write_text(json.dumps({"do_lower_case": False}))
    encoder = loaded(folder, tmp_path / "cased").encoders["inputs"]
    assert encoder.encode("Caf\u00e9") != encoder.encode("caf\u00e9") == encoder.encode("cafe")


@pytest.mark.slow
def test_a_vocabulary_that_was_learned_here_is_refused(tmp_path):
    folder, _ = write_encoder(tmp_path / "theirs", "AlbertForMaskedLM")
    predictor = loaded(folder, tmp_path / "run")
    train_sentencepiece(["the cafe"] * 9, str(tmp_path / "own"), 280, user_defined_symbols=["[MASK]"])
    predictor.encoders["inputs"] = SentencePieceEncoder(str(tmp_path / "own.model"))
    refuses_export(predictor, tmp_path, "own.model: lacks [CLS]. Expected ", "WordPiece")


def test_added_tokens_of_an_albert_are_refused_by_name(tmp_path):
    folder, _ = write_encoder(tmp_path / "theirs", "AlbertForMaskedLM")
    pathlib.Path(folder, "added_tokens.json").write_text(json.dumps({"covid": 99}))
    refuses_import(folder, tmp_path, "spiece.model: the added token 'covid' is not a piece")


def test_damaged_pieces_of_an_albert(tmp_path):
    folder = tmp_path / "theirs"
    write_encoder(folder, "AlbertForMaskedLM")
    said = unigram(folder)
    vocab = said["model"]["vocab"]
    for pair in (["a", "b"], ["a"], [1, 1.0], ["\ud83d", 1.0]):
        write(folder, changed(said, "model", vocab=[*vocab, pair]))
        refused(folder, f"entry {len(vocab)} of the vocabulary")
    write(folder, changed(said, "model", vocab=[*vocab, ["a", 10**400]]))
    refused(folder, "is too large a number")
    for number in (-1, 2**40):
        write(folder, changed(said, "model", unk_id=number))
        refused(folder, f"unk_id={number}: expected the id of a piece")
