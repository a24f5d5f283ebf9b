"""How rows are truncated, and the first ids of texts of megabytes by every kind of vocabulary."""

import time

import pytest
import tensorflow as tf

from t2t_lite.text.offsets import decode_with_offsets, piece_spans
from t2t_lite.text.rows import cut_texts, encode_beginning, kept_lengths, row_ids
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.text.kinds import SENTENCES
from tests.text.published_samples import texts

CLASSES = [".", "a", " ", "\x00", "\u0301", "ﷺ", "\U0001f600", '."', "a b ", "\u2581"]


def test_they_are_those_of_the_whole_and_little_else_is_encoded(encoder, monkeypatch):
    whole, encode, sizes = " ".join([*texts(3000), *SENTENCES * 2000]), encoder.encode, []
    expected = encode(whole)
    monkeypatch.setattr(encoder, "encode", lambda text: sizes.append(len(text)) or encode(text))
    for count in (1, 50, 300):
        assert encode_beginning(encoder, whole, count)[:count] == expected[:count]
    assert len(expected) > 20_000 and sum(sizes) < len(whole) / 2
    short = SENTENCES[0]
    assert encode_beginning(encoder, short, 3) == encode(short)
    spaces = " " * 10**5 + short  # where some vocabularies have no ids
    assert encode_beginning(encoder, spaces, 3)[:3] == encode(spaces)[:3]
    assert encode_beginning(encoder, "#" * 10**5, 3, lambda text: text.replace("#", "a "))[:3] == encode("a a a")[:3]


@pytest.mark.few(".", "\\ufdfa")
@pytest.mark.parametrize("characters", CLASSES)
def test_a_hostile_text_takes_linear_time(encoder, characters):
    text = characters * (2 * 10**5 // len(characters))
    start = time.process_time()
    ids = encode_beginning(encoder, text, 512)
    assert time.process_time() - start < 1
    assert ids[:20] == encoder.encode(text[: 2 * 10**4])[:20]
    assert len(piece_spans(encoder, ids[:512], text)) == len(ids[:512])
    decode_with_offsets(encoder, ids[:100])
    assert time.process_time() - start < 2


@pytest.mark.parametrize("known", [299, 300, 301, 363, 364, 365, 500])
def test_a_text_whose_beginning_has_about_as_many_ids_as_are_asked_for(known):
    """More ids than asked for are promised, or all of them; those near the cut may be others in the whole text."""
    text = "#" * (64 * 364 - known) + "a" * known + "#" * 10 + "bc"
    encoder, prepare = ByteTextEncoder(), lambda text: text.replace("#", "")
    whole = encoder.encode(prepare(text))
    ids = encode_beginning(encoder, text, 300, prepare)
    assert ids == whole[: len(ids)] and (ids == whole or len(ids) > 300)
    assert (ids == whole) == (known <= 364) and (ids == whole or len(ids) == known - 64)
    assert encode_beginning(encoder, text[: 64 * 364], 300, prepare) == whole[:known], "all that there is"


@pytest.mark.parametrize(
    ("lengths", "room", "kept"),
    [
        ((5, 0), 7, (5, 0)),
        ((5, 0), 4, (4, 0)),
        ((5, 2), 6, (4, 2)),  # the longer one is cut
        ((2, 9), 6, (2, 4)),
        ((9, 8), 7, (4, 3)),  # the first gets the odd one
        ((3, 4), 7, (3, 4)),
        ((0, 9), 3, (0, 3)),
    ],
)
def test_the_longer_text_of_a_pair_is_cut_first(lengths, room, kept):
    assert tuple(int(length) for length in kept_lengths(*map(tf.constant, lengths), room)) == kept
    first, second = list(range(20, 20 + lengths[0])), list(range(40, 40 + lengths[1]))
    if second:
        row = cut_texts(tf.constant([*first, 1, *second, 1]), room + 2).numpy().tolist()
        assert row == [*first[: kept[0]], 1, *second[: kept[1]], 1]
    elif room > 2:
        assert cut_texts(tf.constant([*first, 1]), room + 1).numpy().tolist() == [*first[: kept[0]], 1]


def test_rows_of_a_ragged_tensor():
    ragged = tf.ragged.constant([[], [7, 8], [], [9], []], tf.int32)
    assert row_ids(ragged).numpy().tolist() == ragged.value_rowids().numpy().tolist() == [1, 1, 3]
