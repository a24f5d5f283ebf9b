"""The size of a vocabulary that the text determines."""

import itertools
import logging

import pytest

from t2t_lite.errors import UserError
from t2t_lite.text import vocabulary, vocabulary_files
from t2t_lite.text.published.byte_level_bpe import learn_byte_level_bpe
from t2t_lite.text.sentencepiece_model import choose_size, sensible_size
from t2t_lite.text.subwords import train_sentencepiece

WORDS = ["".join(letters) for letters in itertools.product("abcde", repeat=4)]  # 625 distinct words, 5 characters
LINES = [" ".join(WORDS[i : i + 5]) for i in range(0, 625, 5)]


def test_bytes_special_pieces_characters_and_a_merge_for_every_four_words():
    assert sensible_size(num_words=4_000, num_others=60) == 256 + 3 + 60 + 1_000
    assert sensible_size(num_words=3) == 259


def test_a_limit_is_a_limit_and_the_choice_is_logged(caplog):
    caplog.set_level(logging.INFO)
    assert choose_size(1_000, 400_000) == 1_000
    assert choose_size(32_000, 4_000, 60) == 1_319
    assert "1,319 pieces for 4,000 distinct words" in caplog.messages[-1]
    assert "--vocab_size" in caplog.messages[-1]


def test_of_a_learned_vocabulary_at_most_a_quarter_of_the_words_are_one_piece(tmp_path):
    train_sentencepiece(LINES, str(tmp_path / "v"), 9_000, at_most=True, user_defined_symbols=["<2de>"])
    encoder = vocabulary.SentencePieceEncoder(str(tmp_path / "v.model"))
    assert encoder.vocab_size == 256 + 3 + 1 + 6 + 625 // 4  # six characters: five letters, and the space
    whole = [word for word in WORDS if len(encoder.encode(word)) == 1]
    assert len(whole) <= len(WORDS) / 4


def test_of_byte_level_bpe_likewise(tmp_path):
    path = str(tmp_path / "v.vocab.json")
    learn_byte_level_bpe(LINES, path, 9_000, at_most=True)
    # With a space before it and without one, a word is another word here.
    assert vocabulary_files.open_encoder(path).vocab_size == 256 + 3 + 625 // 4


@pytest.mark.parametrize("learn", [train_sentencepiece, learn_byte_level_bpe])
def test_too_large_a_size_is_answered_with_one_that_fits(tmp_path, learn):
    path = str(tmp_path / "v.vocab.json")
    with pytest.raises(UserError, match="Set vocab_size=") as caught:
        learn(LINES, path, 9_000)
    possible = caught.value.possible
    assert f"vocab_size={possible}, " in str(caught.value)
    assert possible <= 256 + 3 + 6 + 625 // 4
    learn(LINES, path, possible)
