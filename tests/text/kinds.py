"""A small vocabulary of every kind, and sentences for them."""

import io

import sentencepiece

from t2t_lite.text import vocabulary
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from t2t_lite.text.stray_characters import reading_plain
from t2t_lite.text.subwords import train_sentencepiece
from tests.text.published_samples import write_byte_level, write_pieces

SENTENCES = ["the cafés' owners sold 12,500 fine things", "größe of a small world, they say (twice)", "東京 is a city"]


def trained(lines, **options):
    """Returns the model file that SentencePiece itself makes of lines, bytes; with this package's special ids."""
    model, usual = io.BytesIO(), {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **usual | options)
    return model.getvalue()


def bpe(folder):
    train_sentencepiece([*SENTENCES] * 20, str(folder / "v"), 330)
    return vocabulary.SentencePieceEncoder(str(folder / "v.model"))


def unigram(folder):
    options = {"vocab_size": 60, "normalization_rule_name": "nmt_nfkc", "hard_vocab_limit": False}
    (folder / "u.model").write_bytes(trained(SENTENCES * 20, model_type="unigram", **options))
    return vocabulary.SentencePieceEncoder(str(folder / "u.model"))


KINDS = {
    "sentencepiece": bpe,
    "plain": lambda folder: reading_plain(bpe(folder)),  # removes characters
    "unigram": unigram,  # normalizes, and knows no bytes
    "byte_level": lambda folder: ByteLevelBPEEncoder(write_byte_level(folder)),
    "wordpiece": lambda folder: WordPieceEncoder(write_pieces(folder)),
    "characters": lambda folder: vocabulary.ByteTextEncoder(),
}
