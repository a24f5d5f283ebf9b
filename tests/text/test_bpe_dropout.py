import collections
import itertools
import math
import random

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.text import subwords, vocabulary
from t2t_lite.text.bpe_dropout import BpeDropout
from tests.data import corpus
from tests.text.kinds import trained


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    prefix = str(tmp_path_factory.mktemp("vocabulary") / "vocab")
    lines = [line for pair in corpus.sentence_pairs(600) for line in pair]
    subwords.train_sentencepiece(lines, prefix, 340, user_defined_symbols=["<br>", "xx"])
    return vocabulary.SentencePieceEncoder(f"{prefix}.model")


@pytest.fixture(scope="module")
def sentences():
    """Known words, bytes in and between words, user symbols, a blank line, a very long word, words never seen."""
    plain = [line for pair in corpus.sentence_pairs(200, seed=1) for line in pair]
    hard = ["", "the<br>house", "<br> <br>", "bxxook xxx", "日本 gr日ne", "Kind\tbuys", "the" * 80, "e", "ß£ green"]
    draw = random.Random(2)
    unseen = ["".join(draw.choices("thegrinouskldb", k=draw.randint(3, 12))) for _ in range(300)]
    return plain + hard + unseen


def joined(encoder, sentences):
    encoded = [[*encoder.encode(text), vocabulary.EOS_ID] for text in sentences]
    return np.array([i for ids in encoded for i in ids], np.int32), np.array([len(ids) for ids in encoded])


def split(ids, lengths):
    return [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]


def test_without_dropout_the_pieces_are_sentencepieces_own(encoder, sentences):
    ids, lengths = joined(encoder, sentences)
    found, found_lengths = BpeDropout(encoder, 0.0)(ids, lengths, np.random.default_rng(0))
    assert found.dtype == np.int32 and found_lengths.dtype == np.int64
    assert split(found, found_lengths) == split(ids, lengths)
    # From characters, too: nothing of the pieces given is kept.
    pieces, piece_lengths = BpeDropout(encoder, 1.0)(ids, lengths, np.random.default_rng(0))
    again = BpeDropout(encoder, 0.0)(pieces, piece_lengths, np.random.default_rng(0))
    assert split(*again) == split(ids, lengths)


def test_the_leftmost_of_equal_merges_is_made_first(encoder, sentences, tmp_path):
    """As SentencePiece does it, with a model all of whose scores are equal."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()
    with open(encoder.path, "rb") as file:
        proto.ParseFromString(file.read())
    for piece in proto.pieces:
        piece.score = -1.0
    path = tmp_path / "equal.model"
    path.write_bytes(proto.SerializeToString())
    equal = vocabulary.SentencePieceEncoder(str(path))
    ids, lengths = joined(equal, sentences)
    assert split(ids, lengths) != split(*joined(encoder, sentences))
    assert split(*BpeDropout(equal, 0.0)(ids, lengths, np.random.default_rng(0))) == split(ids, lengths)


def test_full_dropout_gives_characters(encoder):
    ids, lengths = joined(encoder, ["the green house<br>", "日 book"])
    found = split(*BpeDropout(encoder, 1.0)(ids, lengths, np.random.default_rng(0)))
    assert encoder.pieces(found[0]) == [*"▁the▁green▁house", "<br>", "</s>"]
    assert encoder.pieces(found[1]) == ["▁", "<0xE6>", "<0x97>", "<0xA5>", *"▁book", "</s>"]


@pytest.mark.parametrize("probability", [0.1, 0.5, 1.0])
def test_the_text_stays_and_so_do_special_ids(encoder, sentences, probability):
    ids, lengths = joined(encoder, sentences)
    found = split(*BpeDropout(encoder, probability)(ids, lengths, np.random.default_rng(5)))
    assert found != split(ids, lengths)
    for text, before, after in zip(sentences, split(ids, lengths), found, strict=True):
        assert encoder.decode(after) == encoder.decode(before) == " ".join(text.split())
        assert all(0 < i < encoder.vocab_size for i in after)
        assert after.count(vocabulary.EOS_ID) == 1 and after[-1] == vocabulary.EOS_ID
        assert [i for i in after if i in (3, 4)] == [i for i in before if i in (3, 4)]  # the user's symbols


def test_the_generator_decides(encoder, sentences):
    ids, lengths = joined(encoder, sentences)
    dropout = BpeDropout(encoder, 0.2)
    first, again, other = (split(*dropout(ids, lengths, np.random.default_rng(seed))) for seed in (1, 1, 2))
    assert first == again != other


def algorithm_1(word, merges, probability, draw):
    """The paper's algorithm, transcribed: `merges` maps pairs to (rank, result)."""
    split_now = list(word)
    while True:
        candidates = []
        for i, pair in enumerate(itertools.pairwise(split_now)):
            if pair in merges and draw.random() >= probability:
                candidates.append((merges[pair][0], i))
        if not candidates:
            return tuple(split_now)
        _, i = min(candidates)
        split_now[i : i + 2] = [merges[tuple(split_now[i : i + 2])][1]]


@pytest.mark.slow
@pytest.mark.few("0.4")
@pytest.mark.parametrize("probability", [0.1, 0.4, 0.8])
def test_segmentations_are_as_frequent_as_the_papers(encoder, probability):
    ranks = {encoder.pieces([i])[0]: i for i in range(encoder.vocab_size)}  # a vocabulary is sorted by merges
    normal = {piece: i for piece, i in ranks.items() if i >= 5 + 256}
    merges = {
        (piece[:cut], piece[cut:]): (i, piece)
        for piece, i in normal.items()
        for cut in range(1, len(piece))
        if piece[:cut] in normal and piece[cut:] in normal
    }
    times, draw = 20_000, random.Random(0)
    for word in ("green", "kleine", "sees"):
        expected = collections.Counter(algorithm_1(f"▁{word}", merges, probability, draw) for _ in range(times))
        ids, lengths = joined(encoder, [word])
        ids, lengths = np.tile(ids[:-1], times), np.repeat(lengths - 1, times)
        found = split(*BpeDropout(encoder, probability)(ids, lengths, np.random.default_rng(1)))
        counted = collections.Counter(tuple(encoder.pieces(one)) for one in found)
        assert len(expected) > 2
        for segmentation in expected | counted:
            a, b = expected[segmentation], counted[segmentation]
            assert abs(a - b) <= 5 * math.sqrt(a + b) + 1, segmentation


def test_nothing_to_cut(encoder):
    found, lengths = BpeDropout(encoder, 0.1)(np.zeros(0, np.int32), np.array([0, 0]), np.random.default_rng(0))
    assert found.tolist() == [] and lengths.tolist() == [0, 0]
    found, lengths = BpeDropout(encoder, 0.1)(np.array([1, 1]), np.array([1, 0, 1]), np.random.default_rng(0))
    assert found.tolist() == [1, 1] and lengths.tolist() == [1, 0, 1]


@pytest.mark.parametrize("probability", [-0.1, 1.5, math.nan])
def test_no_probability(encoder, probability):
    with pytest.raises(UserError, match=r"bpe_dropout=.*from 0"):
        BpeDropout(encoder, probability)


def test_vocabularies_without_merges(tmp_path):
    with pytest.raises(UserError, match=r"ByteTextEncoder.*has no merges"):
        BpeDropout(vocabulary.ByteTextEncoder(), 0.1)
    text = [line for pair in corpus.sentence_pairs(200) for line in pair]
    (tmp_path / "unigram.model").write_bytes(trained(text, vocab_size=50, model_type="unigram"))
    with pytest.raises(UserError, match="unigram model, which has no merges"):
        BpeDropout(vocabulary.SentencePieceEncoder(str(tmp_path / "unigram.model")), 0.1)
