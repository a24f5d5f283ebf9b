"""SentencePiece's model file, and the size of a vocabulary that the text determines."""

import itertools
import logging

import pytest

from t2t_lite.errors import UserError
from t2t_lite.text import sentencepiece_model, vocabulary, vocabulary_files
from t2t_lite.text.published.byte_level_bpe import learn_byte_level_bpe
from t2t_lite.text.sentencepiece_model import choose_size, sensible_size
from t2t_lite.text.subwords import train_sentencepiece
from tests.text.kinds import trained

WORDS = ["".join(letters) for letters in itertools.product("abcde", repeat=4)]  # 625 distinct words, 5 characters
LINES = [" ".join(WORDS[i : i + 5]) for i in range(0, 625, 5)]


@pytest.fixture
def theirs():
    """SentencePiece's own module, where the installed protobuf is new enough for it."""
    try:
        from sentencepiece import sentencepiece_model_pb2
    except Exception as error:  # protobuf's VersionError
        pytest.skip(str(error))
    return sentencepiece_model_pb2


@pytest.fixture(scope="module")
def model():
    lines = [f"{word} green houses {number}" for word in "abcdefgh" for number in range(40)]
    return trained(lines, vocab_size=300, model_type="bpe", byte_fallback=True, user_defined_symbols=["<2de>"])


def test_fields_are_sentencepieces(theirs):
    def check(ours, expected):
        for field in ours.fields:
            same = expected.fields_by_name[field.name]
            assert (field.number, field.type) == (same.number, same.type), field.name
            if field.message_type:
                check(field.message_type, same.message_type)
            else:
                assert field.default_value == same.default_value, field.name
            if field.enum_type:
                for value in field.enum_type.values:
                    assert value.number == same.enum_type.values_by_name[value.name].number

    check(sentencepiece_model.ModelProto.DESCRIPTOR, theirs.ModelProto.DESCRIPTOR)


def test_nothing_is_lost(theirs, model):
    again = sentencepiece_model.ModelProto.FromString(model).SerializeToString()
    assert theirs.ModelProto.FromString(again) == theirs.ModelProto.FromString(model)


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
