"""Masked language modelling: how many ids are masked, which together, what the model sees, and what it depends on."""
# Nearest tests of: t2t_lite/data/corruption.py

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data.corruption import LONGEST_NGRAM, Masking, masking_of, one_of
from t2t_lite.errors import UserError

V, MASK, SPECIAL = 50, 3, (0, 1, 2, 3)
ORDINARY = np.array([i not in SPECIAL for i in range(V)])
CONTINUES = np.array([i >= 30 for i in range(V)])  # ids from 30 continue a word
ROWS, LENGTH = 400, 40


def make(**options):
    return Masking(MASK, ORDINARY, CONTINUES, **options)


@pytest.fixture(scope="module")
def batch():
    random = np.random.RandomState(0)
    ids = random.randint(4, V, (ROWS, LENGTH))
    ids[:, 0], ids[:, 20] = 1, 1  # two borders
    for row, length in enumerate(random.randint(2, LENGTH + 1, ROWS)):
        ids[row, length:] = 0
    seeds = random.randint(-(2**31), 2**31, (ROWS, 2))
    return tf.constant(ids, tf.int32), tf.constant(seeds, tf.int32)


def units(ids, of):
    """Lists of positions that belong together, in plain Python."""
    found = []
    for at, i in enumerate(ids):
        if not ORDINARY[i]:
            continue
        if of != "token" and at and ORDINARY[ids[at - 1]] and CONTINUES[i]:
            found[-1].append(at)
        else:
            found.append([at])
    return found


@pytest.mark.parametrize("unit", ["token", "word", "ngram"])
@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_a_row_has_its_share_of_masks_in_whole_units_and_at_least_one(batch, unit, rate):
    ids = batch[0].numpy()
    shown, targets = (tensor.numpy() for tensor in make(unit=unit, rate=rate)(*batch))
    chosen = targets != 0
    assert (targets[chosen] == ids[chosen]).all() and (shown[~chosen] == ids[~chosen]).all()
    assert not chosen[~ORDINARY[ids]].any(), "a special id is masked"
    for row in range(ROWS):
        together = units(ids[row], unit)
        wanted = max(1, round(float(np.float32(rate * ORDINARY[ids[row]].sum()))))
        together = [part for whole in together for part in ([whole] if len(whole) <= wanted else [[i] for i in whole])]
        masked = [set(chosen[row, part]) for part in together]
        assert all(len(part) == 1 for part in masked), "a unit is masked in part"
        left = wanted - chosen[row].sum()
        rest = [len(part) for part, found in zip(together, masked, strict=True) if found == {False}]
        assert left >= 0 and chosen[row].any() == bool(together), row
        # Of n-grams this test knows the words alone.
        assert left < (max([1, *rest]) * LONGEST_NGRAM if unit == "ngram" else min([left + 1, *rest])), row


@pytest.mark.slow
def test_the_ngrams_are_one_to_three_words_of_a_segment(batch):
    random = np.random.RandomState(1)
    ids = tf.constant(random.randint(4, 30, (1000, 300)), tf.int32)  # each id is a word
    seeds = tf.constant(random.randint(0, 2**31, (1000, 2)), tf.int32)
    _, targets = make(unit="ngram", rate=0.01)(ids, seeds)  # three words a row
    runs = [run for row in targets.numpy() != 0 for run in np.split(row, np.flatnonzero(np.diff(row)) + 1) if run[0]]
    shares = np.bincount([len(run) for run in runs], minlength=4) / len(runs)
    # One, two and three words are drawn as 6:3:2, and those that exceed what is left are left out: so the three words
    # of a row are 3, 2 + 1, 1 + 2 or 1 + 1 + 1 as 2:3:2:4, and there are 17 of one, 5 of two and 2 of three.
    assert shares[1:4] == pytest.approx(np.array([17, 5, 2]) / 24, abs=0.03)
    assert shares[4:].sum() < 0.02, "more than three words, but for n-grams that happen to meet"


def test_eight_in_ten_are_masked_and_one_in_ten_is_another_ordinary_id(batch):
    ids = batch[0].numpy()
    shown, targets = (tensor.numpy() for tensor in make(rate=0.5)(*batch))
    chosen = targets != 0
    shares = [(shown[chosen] == MASK).mean(), (shown[chosen] == ids[chosen]).mean()]
    assert shares == [pytest.approx(0.8, abs=0.02), pytest.approx(0.1 + 0.1 / ORDINARY.sum(), abs=0.02)]
    others = shown[chosen & (shown != MASK)]
    assert ORDINARY[others].all() and len(set(others)) == ORDINARY.sum()


PHRASES = ((5, 6, 30), (6, 30, 7), (8, 9), (30, 8), (10,))


@pytest.mark.slow
def test_phrases_are_masked_as_a_whole():
    random = np.random.RandomState(3)
    ids = random.choice([*range(4, 11), 30, 1], (3000, 16))
    seeds = tf.constant(random.randint(0, 2**31, (3000, 2)), tf.int32)
    _, targets = make(unit="phrase", rate=0.2, phrases=PHRASES)(tf.constant(ids, tf.int32), seeds)
    chosen, joined = targets.numpy() != 0, 0
    for row, masked in zip(ids, chosen, strict=True):
        words = [at for at, i in enumerate(row) if not (CONTINUES[i] and at and row[at - 1] > 3)]
        borders = {*words, len(row)}
        for phrase in PHRASES:
            for start in words:
                end = start + len(phrase)
                if end in borders and tuple(row[start:end]) == phrase:
                    borders -= {*range(start + 1, end)}
                    joined += len(phrase) > 1
        units = np.split(masked, sorted(borders - {0, len(row)}))
        wanted = max(1, round(0.2 * (row > 3).sum()))
        assert all(len({*unit}) == 1 for unit in units if len(unit) <= wanted), "a phrase is masked in part"
        assert masked.sum() <= wanted
    assert joined > 300


class Words:
    """A vocabulary of whole words, and of what stands beside them."""

    words = ("<pad>", "</s>", "<unk>", "[MASK]", "\u2581new", "\u2581york", "\u2581old", "er", ",", "\u2581(")
    words += ("\u2581", "中国", "\u20ac", "\n", "new", "byte")
    vocab_size = len(words)
    piece_bytes = (*(word.replace("\u2581", " ").encode() for word in words[:-1]), b"\xe4")

    def pieces(self, ids):
        return [self.words[i] for i in ids]

    def encode(self, text):
        words = " ".join(f"\u2581{word}" for word in text.split()).replace("(", "( ").split()
        return [self.words.index(word) if word in self.words else 2 for word in words]


def test_phrases_of_other_pieces_than_the_vocabularys_are_left_out():
    assert masking_of(Words(), 0.2, "phrase", ["new york", "new jersey"]).phrases == [(4, 5), (14, 5)]  # and behind (
    longest = [" ".join(["old"] * 16), " ".join(["new"] * 17)]
    assert {*masking_of(Words(), 0.2, "phrase", longest).phrases} == {(6,) * 16}
    with pytest.raises(UserError, match=r"1 phrases, such as 'jersey', .* 1 to 16 pieces"):
        masking_of(Words(), 0.2, "phrase", ["jersey"])


@pytest.mark.parametrize(
    "text",
    [
        "\u2581new | \u2581old er",
        "\u2581old er | , | er er",
        "\u2581( | er | \u2581york",
        "\u2581 er | \n | er er | \u20ac | er",
        "\u2581new | 中国 | 中国 | er byte byte er",
    ],
)
def test_words_end_at_punctuation_symbols_ideographs_and_line_ends(text):
    """What is masked together in all of many draws is a word."""
    words = [[Words.words.index(piece) for piece in word.split(" ")] for word in text.split(" | ")] + [[5]] * 6
    row = [i for word in words for i in word]
    seeds = tf.constant(np.random.RandomState(4).randint(0, 2**31, (200, 2)), tf.int32)
    _, targets = masking_of(Words(), 0.5, "word")(tf.constant([row] * 200, tf.int32), seeds)
    masked = targets.numpy() != 0
    begins = [0] + [at for at in range(1, len(row)) if (masked[:, at] != masked[:, at - 1]).any()]
    assert begins == np.cumsum([0, *map(len, words)])[:-1].tolist()


def test_a_text_without_blanks_has_its_share_of_masks():
    ids = tf.fill([50, 40], 40)  # each continues the one before
    seeds = tf.constant(np.random.RandomState(5).randint(0, 2**31, (50, 2)), tf.int32)
    for unit in ("word", "ngram", "phrase"):
        _, targets = make(unit=unit)(ids, seeds)
        assert ((targets.numpy() != 0).sum(1) == 6).all()


def test_phrases_beside_punctuation_are_found():
    masking = masking_of(Words(), 0.5, "phrase", ["new york"])
    row = [*Words().encode("( old"), 8, *Words().encode("(new york"), 8, *Words().encode("york old york")]
    seeds = tf.constant(np.random.RandomState(6).randint(0, 2**31, (100, 2)), tf.int32)
    masked = masking(tf.constant([row] * 100, tf.int32), seeds)[1].numpy() != 0
    together = [at for at in range(1, len(row)) if (masked[:, at] == masked[:, at - 1]).all()]
    assert together == [row.index(14) + 1]


def test_one_of_two_rows_is_drawn_by_the_seed(batch):
    ids, seeds = batch
    other = tf.ones([ROWS, 3], tf.int32)
    found, number = (tensor.numpy() for tensor in one_of(ids, other, seeds))
    assert found.shape == (ROWS, LENGTH) and 0.4 < (number == 1).mean() < 0.6
    wide = np.pad(other, [[0, 0], [0, LENGTH - 3]])
    np.testing.assert_array_equal(found, np.where((number == 1)[:, None], ids, wide))
    np.testing.assert_array_equal(one_of(ids[5:6], other[5:6], seeds[5:6])[1], number[5:6])


def test_which_row_is_drawn_says_nothing_of_its_masks():
    ids = tf.fill([4000, 4], 7)
    seeds = tf.constant(np.random.RandomState(7).randint(0, 2**31, (4000, 2)), tf.int32)
    shown, targets = (tensor.numpy() for tensor in make(rate=0.5)(ids, seeds))
    is_first = one_of(ids, ids, seeds)[1].numpy() == 1
    for is_masked in (targets[:, 0] != 0, shown[:, 0] == MASK):
        assert abs(is_masked[is_first].mean() - is_masked[~is_first].mean()) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["token", "word", "ngram", "phrase"])
def test_masks_depend_on_the_seed_and_the_row_alone(batch, unit):
    ids, seeds = batch
    masking = make(unit=unit, phrases=PHRASES)
    shown, targets = masking(ids, seeds)
    wider, _ = masking(tf.pad(ids, [[0, 0], [0, 9]]), seeds)
    alone = [masking(ids[row : row + 1], seeds[row : row + 1])[1][0] for row in range(3)]
    np.testing.assert_array_equal(wider[:, :LENGTH], shown)
    np.testing.assert_array_equal(alone, targets[:3])
    in_a_graph = tf.function(masking, jit_compile=False)(ids, seeds)[1]
    np.testing.assert_array_equal(in_a_graph, targets)
    assert (masking(ids, seeds + 1)[1].numpy() != targets.numpy()).any(axis=1).mean() > 0.75


def test_every_place_is_masked_equally_often():
    seeds = np.random.RandomState(2).randint(0, 2**31, (4000, 2))
    for unit in ("token", "ngram"):
        _, targets = make(unit=unit)(tf.fill([4000, 20], 7), tf.constant(seeds, tf.int32))
        share = (targets.numpy() != 0).mean(axis=0)
        assert np.abs(share[2:-2] / share.mean() - 1).max() < 0.15, unit


def test_a_vocabulary_without_ordinary_ids_is_refused():
    with pytest.raises(UserError, match="no ordinary id"):
        Masking(MASK, np.zeros(V, bool), CONTINUES)
