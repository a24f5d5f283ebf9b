"""Models of other tools: their special ids become ours, and the text is cut as before."""
# Nearest tests of: t2t_lite/text/subwords.py

import io
import logging

import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text
from sentencepiece import sentencepiece_model_pb2

from t2t_lite.text import subwords, vocabulary
from tests.data import corpus

_LINES = [side for pair in corpus.sentence_pairs(400) for side in pair]
_TEXTS = [
    *_LINES[:40],
    "",
    "  two   blanks ",
    "größe 漢字 𝄞 ﬁ",
    "<2de> the house",
    "a<2de>b <sep>",
    "<pad> </s> <s>",
    "x\ty",
]


def learn(folder, **options):
    """Returns the path of a model that SentencePiece itself has learned."""
    model = io.BytesIO()
    options = {"vocab_size": 320 if options.get("byte_fallback") else 70, "minloglevel": 2, **options}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(_LINES), model_writer=model, **options)
    path = folder / "theirs.model"
    path.write_bytes(model.getvalue())
    return str(path)


def processor(path):
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


_ROLES = ("pad_id", "bos_id", "eos_id", "unk_id")
_UNIGRAM = {"model_type": "unigram", "hard_vocab_limit": False}
_MODELS = {
    "bpe": {"model_type": "bpe"},
    "bpe, bytes": {"model_type": "bpe", "byte_fallback": True},
    "bpe, symbols": {"model_type": "bpe", "user_defined_symbols": ["<2de>", "<sep>"]},
    "unigram": _UNIGRAM,
    "unigram, bytes": _UNIGRAM | {"byte_fallback": True, "user_defined_symbols": ["<2de>"]},
    "other ids": {"model_type": "bpe", **dict(zip(_ROLES, (3, 0, 1, 2), strict=True))},
    "no eos": {"model_type": "bpe", "eos_id": -1, "bos_id": -1},
    "other names": {"model_type": "bpe", "pad_id": 9, "pad_piece": "[P]", "eos_piece": "[E]", "unk_piece": "[U]"},
    "pad is text": {"model_type": "bpe", "user_defined_symbols": ["<pad>", "<<pad>>"]},
    "control symbols": _UNIGRAM | {"control_symbols": ["<mask>"]},
    "nmt_nfkc_cf": {"model_type": "bpe", "normalization_rule_name": "nmt_nfkc_cf", "byte_fallback": True},
    "blanks kept": {"model_type": "bpe", "add_dummy_prefix": False, "remove_extra_whitespaces": False},
}


@pytest.mark.parametrize("options", _MODELS.values(), ids=_MODELS)
def test_the_ids_are_moved_and_the_pieces_stay(tmp_path, options):
    theirs = learn(tmp_path, **options)
    subwords.adopt_sentencepiece(theirs, str(tmp_path / "ours"))
    before, after = processor(theirs), processor(tmp_path / "ours.model")
    encoder = vocabulary.SentencePieceEncoder(str(tmp_path / "ours.model"))
    in_graph = tensorflow_text.SentencepieceTokenizer((tmp_path / "ours.model").read_bytes(), out_type=tf.string)
    assert (after.pad_id(), after.eos_id(), after.unk_id()) == (0, 1, 2)
    for text in _TEXTS:
        pieces = before.encode(text, out_type=str)
        assert after.encode(text, out_type=str) == pieces, text
        assert [piece.decode() for piece in in_graph.tokenize(text).numpy()] == pieces
        assert encoder.encode(text) == encoder.tf_encode(tf.constant([text])).to_list()[0] == after.encode(text)
        assert encoder.decode(encoder.encode(text)) == before.decode(before.encode(text))
    # The pieces in their order, none lost.
    special = {after.id_to_piece(i) for i in range(3)}
    old, new = ([piece for piece in map(p.id_to_piece, range(len(p))) if piece not in special] for p in (before, after))
    assert old == new
    assert len(special) == 3 and len(new) + 3 == after.vocab_size()
    assert [line.split("\t")[0] for line in (tmp_path / "ours.vocab").read_text().splitlines()][3:] == new
    if before.bos_id() >= 0:
        assert after.id_to_piece(after.bos_id()) == before.id_to_piece(before.bos_id())
    spec = sentencepiece_model_pb2.ModelProto.FromString((tmp_path / "ours.model").read_bytes()).trainer_spec
    assert (spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id) == (0, 1, 2, after.bos_id())
    assert spec.vocab_size == after.vocab_size()


def test_a_model_with_our_ids_is_copied_byte_for_byte(tmp_path):
    subwords.train_sentencepiece(_LINES, str(tmp_path / "a"), 320, user_defined_symbols=["<2de>"])
    subwords.adopt_sentencepiece(str(tmp_path / "a.model"), str(tmp_path / "b"))
    for ending in (".model", ".vocab"):
        assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()
    twice = subwords.with_usual_ids((tmp_path / "b.model").read_bytes(), "b")
    assert twice == (tmp_path / "b.model").read_bytes()


def test_unknown_characters_are_announced(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "t2t_lite"):
        subwords.adopt_sentencepiece(learn(tmp_path, model_type="bpe", byte_fallback=True), str(tmp_path / "a"))
    assert not caplog.text
    with caplog.at_level(logging.INFO, "t2t_lite"):
        subwords.adopt_sentencepiece(learn(tmp_path, model_type="bpe"), str(tmp_path / "b"))
    assert "theirs.model: the vocabulary has no byte fallback, so characters without a piece become" in caplog.text
    encoder = vocabulary.SentencePieceEncoder(str(tmp_path / "b.model"))
    assert encoder.encode("漢")[-1] == vocabulary.UNK_ID
