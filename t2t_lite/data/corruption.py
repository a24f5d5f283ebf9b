"""Applies a problem's `augment` and `corrupt`, and a model's `corrupt`, to batches.

For example, masked language modelling (Devlin et al. 2019, "BERT", section 3.1) selects the ids that a model predicts
and replaces them in the model's input. All changes are pure functions of the batch and of seeds, one seed per row.
"""

import dataclasses
import functools
import re
import unicodedata

import numpy as np
import tensorflow as tf

from t2t_lite.data.example_reader import check_stateless
from t2t_lite.data.random_numbers import threefry, uniform_numbers
from t2t_lite.errors import UserError, shown
from t2t_lite.text.encoder_parts import mask_in
from t2t_lite.text.published import pre_tokenization
from t2t_lite.text.vocabulary import EOS_ID

# The fractions of the ids to predict that are replaced by the mask and by another id. The remaining ids stay unchanged.
_SHOWN_MASKED, _SHOWN_REPLACED = 0.8, 0.1
LONGEST_NGRAM = 3
LONGEST_PHRASE = 16  # ids
_SPECIAL = re.compile(
    r"\[(PAD|UNK|CLS|SEP|MASK|unused\d+)\]|<(pad|s|/s|unk|mask|cls|sep|eod|eop|unused_?\d*)>|<\|endoftext\|>"
)


def corrupted(problem, batches, hparams, is_stream=False, whole=False):
    """Applies `Problem.augment` (training only), `Problem.corrupt` and the model's `corrupt` to a dataset of batches.

    If there is nothing to apply, the dataset itself is returned, so that saved iterators remain valid.

    Args:
        problem: Problem.
        batches: `tf.data.Dataset` of {feature: int32 ids}.
        hparams: HParams; only `random_seed` and the `corrupt` of `model_class` (see `SequenceModel`) are used.
        is_stream: bool, whether the batches are for training, so that the seeds of a batch depend on its index.
            Otherwise each pass gives the same result.
        whole: bool, whether to omit the model's `corrupt`, so that batches contain the complete texts, which serve as
            references for outputs.

    Raises:
        UserError: a feature of the problem is missing, the model's `corrupt` does not support the problem, or a
            change has a state that could not be restored: see `check_stateless`.
    """

    names, seed = (*["augment"] * is_stream, "corrupt"), hparams.random_seed
    changes = [(getattr(problem, name), seed, ()) for name in names if problem.overrides(name)]
    model = None if whole else hparams.model_class
    features = batch_features(problem, model)
    if draws(model):
        _check_texts(problem, model)
        # this seed differs from the seed of the problem's `corrupt`, so the random numbers differ, too
        changes.append((model.corrupt, ~seed, (hparams,)))

    def changed(index, batch):
        for change, number, settings in changes:
            batch = change(batch, row_seeds(batch, number, index), *settings)
        return {name: tf.cast(batch[name], tf.int32) for name in features if name in batch}

    if changes and is_stream:
        batches = batches.enumerate().map(changed)
    elif changes:
        batches = batches.map(functools.partial(changed, tf.constant(0, tf.int64)))
    for change, *_ in changes:
        check_stateless(batches, change)
    if missing := sorted(features.keys() - batches.element_spec.keys()):
        raise UserError(
            f"{problem.full_name}: its batches lack {' and '.join(missing)}. Expected the records, preprocess_example "
            "or corrupt to provide these features."
        )
    return batches


def draws(model_class):
    """Returns whether a model has a method `corrupt`, which changes batches: see `SequenceModel`."""
    return callable(getattr(model_class, "corrupt", None))


def batch_features(problem, model_class):
    """Returns {feature: rank} for a problem's batches, including the features that a model's `corrupt` adds."""
    return {**problem.features, **(model_class.features if draws(model_class) else {})}


def _check_texts(problem, model_class):
    """Raises `UserError` unless a problem's inputs and targets are texts, as a model's `corrupt` requires."""
    if wrong := [f for f in ("inputs", "targets") if problem.features.get(f) != 2]:
        raise UserError(
            f"{model_class.__name__} needs texts as inputs and targets, but the {wrong[0]} of {problem.full_name} are "
            "not texts. Expected a problem such as translate_own."
        )


@tf.autograph.experimental.do_not_convert
def row_seeds(batch, seed, index):
    """Returns int32 [rows, 2], a seed per row that depends on the arguments and the row's ids, but not on padding.

    Args:
        batch: {feature: int32 [rows, length] or [rows]}, padded with 0.
        seed: int.
        index: int64 [], the index of the batch.
    """
    hashes = [tf.zeros([], tf.int32)] * 2
    for number, ids in enumerate(batch.values()):
        ids = tf.reshape(ids, [tf.shape(ids)[0], -1])
        positions = tf.cast(tf.range(tf.shape(ids)[1]), tf.uint32)
        words = threefry(
            (tf.cast(ids, tf.uint32), tf.constant(number, tf.uint32)), (positions, tf.zeros_like(positions))
        )
        visible = [tf.where(ids != 0, tf.bitcast(word, tf.int32), 0) for word in words]
        hashes = [total + tf.reduce_sum(word, 1) for total, word in zip(hashes, visible, strict=True)]
    key = threefry(_words(tf.constant(seed % 2**63, tf.int64)), _words(index))
    words_of_seeds = threefry(key, [tf.bitcast(word, tf.uint32) for word in hashes])
    return tf.stack([tf.bitcast(word, tf.int32) for word in words_of_seeds], 1)


def _words(number):
    """Splits an int64 scalar into its two uint32 words."""
    return tf.unstack(tf.bitcast(number, tf.uint32))


def masking_of(encoder, rate, unit, phrases=()):
    """Returns the `Masking` for a vocabulary.

    Args:
        encoder: TextEncoder with SentencePiece pieces or with a published vocabulary (WordPiece, byte-level BPE).
        rate, unit: see `Masking`.
        phrases: list of str, matched wherever they begin and end at word boundaries.

    Raises:
        UserError: the vocabulary has no mask piece, or no phrase can be encoded with its pieces.
    """
    pieces = encoder.pieces(range(encoder.vocab_size))
    mask_id, _ = mask_in(pieces)
    ordinary = ordinary_ids(pieces)
    # A phrase may be encoded differently at the beginning of a text, within a text, and after punctuation.
    encoded = {tuple(encoder.encode(space + phrase)) for phrase in phrases for space in ("", " ")}
    bracketed, mark = [encoder.encode("(" + phrase) for phrase in phrases], encoder.encode("(")
    encoded |= {tuple(ids[len(mark) :]) for ids in bracketed if ids[: len(mark)] == mark}
    encoded_phrases = sorted(ids for ids in encoded if ids and len(ids) <= LONGEST_PHRASE and ordinary[list(ids)].all())
    if phrases and not encoded_phrases:
        raise UserError(
            f"None of the {len(phrases):,} phrases, such as {shown(phrases[0])}, consists of 1 to {LONGEST_PHRASE} "
            "pieces of the vocabulary. Expected phrases of the text, one per line."
        )
    continues, closes = _borders(encoder, pieces)
    return Masking(mask_id, ordinary, continues, rate, unit, encoded_phrases, closes)


def ordinary_ids(pieces):
    """Returns bool [V], True for a vocabulary's pieces of text, False for padding, EOS and other special pieces."""
    return np.array([i > EOS_ID and not _SPECIAL.fullmatch(piece) for i, piece in enumerate(pieces)])


def _borders(encoder, pieces):
    """Returns (which ids continue the preceding word, which ids end a word), two tensors bool [V]."""
    # WordPiece splits texts at spaces and punctuation first, so no piece spans two words.
    if any(piece.startswith("##") for piece in pieces):
        return np.array([piece.startswith("##") for piece in pieces]), np.zeros(len(pieces), bool)
    texts = [text.decode("utf-8", errors="replace") for text in encoder.piece_bytes]
    begins = np.array([text.startswith(" ") or _stands_alone(text[:1]) for text in texts])
    return ~begins, np.array([_stands_alone(text[-1:]) for text in texts])


def _stands_alone(character):
    """Returns whether a character is not part of a word: BERT's punctuation and ideographs, symbols and line ends."""
    # A piece that is part of a character is shown as U+FFFD and continues a word. A space may be the first piece of a
    # word.
    if character in ("", " ", "\ufffd"):
        return False
    return ord(character) in _alone() or unicodedata.category(character).startswith("S")


@functools.cache
def _alone():
    sets = pre_tokenization.ranges("P"), pre_tokenization.IDEOGRAPHS, pre_tokenization.SPACES
    return frozenset().union(*map(pre_tokenization.code_points, sets))


@dataclasses.dataclass(frozen=True, eq=False)
class Masking:
    """Selects the ids that a model must predict and masks them in its input, as BERT does.

    Attributes:
        mask_id: int, the id of [MASK].
        ordinary: bool [V], the ids that may be masked and may replace others: not padding, EOS or another special id.
        continues: bool [V], the ids that continue the word of the id before them.
        rate: float, the fraction of a row's ordinary ids to predict, but at least one id per row. Fewer ids are
            predicted only if every remaining unit would exceed this number (as in BERT's create_pretraining_data.py).
        unit: what is masked as a whole: "token", "word", "ngram" or "phrase". An n-gram is one to three consecutive
            words, where n is sampled with a probability proportional to 1/n (Lan et al. 2020, "ALBERT", section 3.1).
            A phrase is one from a list; outside of phrases, words are masked (Sun et al. 2019, "ERNIE"). A unit with
            more ids than are to be predicted is split into its words. A word that is still too long, such as a text
            without spaces, is split into its ids.
        phrases: sequence of sequences of at most `LONGEST_PHRASE` ids. Overlapping phrases of a row are merged.
        closes: bool [V], the ids that end a word, such as punctuation. If None, no id ends a word.

    Raises:
        UserError: the vocabulary has no ordinary id.
    """

    mask_id: int
    ordinary: np.ndarray
    continues: np.ndarray
    rate: float = 0.15
    unit: str = "token"
    phrases: tuple = ()
    closes: np.ndarray | None = None

    def __post_init__(self):
        if not np.any(self.ordinary):
            raise UserError("The vocabulary has no ordinary id that could be masked.")

    def __call__(self, ids, seeds):
        """Masks a batch of ids.

        Args:
            ids: int32 [B, T], padded with 0.
            seeds: int32 [B, 2].

        Returns:
            (the model's inputs, int32 [B, T]; targets, int32 [B, T]: the original ids at the positions to predict, 0
            elsewhere). A row's results depend only on its seed and its own ids. A row without ordinary ids has nothing
            to predict.
        """
        maskable = tf.gather(tf.constant(self.ordinary), ids)
        choice, action = tf.unstack(uniform_numbers(seeds, 2, tf.shape(ids)[1]), axis=1)  # two tensors [B, T, 2]
        budget = tf.round(self.rate * tf.reduce_sum(tf.cast(maskable, tf.float32), 1, keepdims=True))
        budget = tf.maximum(tf.cast(budget, tf.int32), 1)
        starts, *finer = self._starts(ids, maskable, choice[..., 1])
        for parts in finer:
            starts |= parts & (_units(starts)[1] > budget)
        is_masked = _sample_units(starts, maskable, choice[..., 0], budget)
        others = tf.constant(np.flatnonzero(self.ordinary), tf.int32)
        count = tf.cast(tf.size(others), tf.float32)
        other = tf.gather(others, tf.cast(action[..., 1] * count, tf.int32))
        kind = action[..., 0]
        visible = tf.where(kind < _SHOWN_MASKED + _SHOWN_REPLACED, other, ids)
        visible = tf.where(kind < _SHOWN_MASKED, self.mask_id, visible)
        return tf.where(is_masked, visible, ids), tf.where(is_masked, ids, 0)

    @tf.autograph.experimental.do_not_convert
    def _starts(self, ids, maskable, random):
        """Returns a list of bool [B, T]: where units begin, then where the parts of units that are too long begin."""
        # An id that cannot be masked forms a unit by itself.
        ids_alone = tf.ones_like(maskable)
        if self.unit == "token":
            return [ids_alone]
        follows = maskable & tf.pad(maskable, [[0, 0], [1, 0]])[:, :-1]
        words = ~(follows & tf.gather(tf.constant(self.continues), ids))
        if self.closes is not None:
            words |= tf.pad(tf.gather(tf.constant(self.closes), ids), [[0, 0], [1, 0]])[:, :-1]
        if self.unit == "word":
            return [words, ids_alone]
        if self.unit == "phrase":
            return [words & ~_inside(ids, words, self.phrases), words, ids_alone]
        return [_ngram_starts(words, follows, random), words, ids_alone]


def _units(starts):
    """Returns the (first position, size), int32 [B, T], of each id's unit; `starts` is True where a unit begins."""
    length = tf.shape(starts)[1]
    first_positions = tf.sort(tf.where(starts, tf.range(length), length), axis=1)
    first_positions = tf.pad(first_positions, [[0, 0], [0, 1]], constant_values=length)
    number = tf.cumsum(tf.cast(starts, tf.int32), 1)
    first = tf.gather(first_positions, number - 1, batch_dims=1)
    return first, tf.gather(first_positions, number, batch_dims=1) - first


@tf.autograph.experimental.do_not_convert
def _sample_units(starts, maskable, random, budget):
    """Returns bool [B, T], True for ids of randomly selected units; skips units that would exceed the budget."""
    first, size = _units(starts)
    score = tf.where(maskable, tf.gather(random, first, batch_dims=1), 2.0)
    order = tf.argsort(score, axis=1, stable=True)  # all ids of a unit have the same score, so they stay together
    place = tf.range(tf.shape(starts)[1]) - first  # the position of each id within its unit
    size, place, maskable = (tf.gather(tensor, order, batch_dims=1) for tensor in (size, place, maskable))

    def fitting(is_masked):
        room = budget - tf.reduce_sum(tf.cast(is_masked, tf.int32), 1, keepdims=True)
        return maskable & ~is_masked & (size <= room), room

    def take(is_masked):
        fits, room = fitting(is_masked)
        # number of ids in the units that come before each unit
        preceding = tf.cumsum(tf.cast(fits, tf.int32), 1, exclusive=True) - place
        return [is_masked | fits & (preceding + size <= room)]

    # Each iteration takes all units up to the first unit that exceeds the budget. That unit then no longer fits, so few
    # units are left after the first iteration.
    [is_masked] = tf.while_loop(lambda is_masked: tf.reduce_any(fitting(is_masked)[0]), take, [tf.zeros_like(maskable)])
    return tf.gather(is_masked, tf.argsort(order, axis=1), batch_dims=1)


def _inside(ids, words, phrases):
    """Returns bool [B, T], True for all but the first id of a phrase; phrases begin and end at word boundaries."""
    ends = tf.pad(words, [[0, 0], [0, LONGEST_PHRASE]], constant_values=True)
    ids = tf.pad(tf.cast(ids, tf.int64), [[0, 0], [0, LONGEST_PHRASE]])
    length = tf.shape(words)[1]
    inside = tf.zeros_like(words)
    for n in sorted({len(phrase) for phrase in phrases} - {0, 1}):
        numbers = np.unique([_number(phrase) for phrase in phrases if len(phrase) == n])
        number = _number([ids[:, k : k + length] for k in range(n)])
        place = tf.minimum(tf.searchsorted(numbers, tf.reshape(number, [-1])), len(numbers) - 1)
        begins = words & ends[:, n : n + length] & (tf.reshape(tf.gather(numbers, place), tf.shape(number)) == number)
        for k in range(1, n):
            inside |= tf.pad(begins, [[0, 0], [k, 0]])[:, :length]
    return inside


def _number(ids):
    """Returns an int64 hash of a sequence of ids; two sequences collide with a probability of 1 in 2^64."""
    total = np.zeros([], np.int64)
    with np.errstate(over="ignore"):
        for token in ids:
            total = total * np.int64(6364136223846793005) + (token + np.int64(1442695040888963407))
    return total


@tf.autograph.experimental.do_not_convert
def one_of(first, second, seeds):
    """Selects one of two candidate rows for each row of a batch, each with a probability of 1/2.

    Args:
        first, second: int32 [B, T] and [B, S], padded with 0.
        seeds: int32 [B, 2].

    Returns:
        (int32 [B, max(T, S)], int32 [B]: 1 for the first row, 2 for the second).
    """
    width = tf.maximum(tf.shape(first)[1], tf.shape(second)[1])
    first, second = (tf.pad(rows, [[0, 0], [0, width - tf.shape(rows)[1]]]) for rows in (first, second))
    is_first = uniform_numbers(seeds, 3, 1)[:, 2, 0, 0] < 0.5  # sample 2, because `Masking` uses the samples 0 and 1
    return tf.where(is_first[:, None], first, second), tf.where(is_first, 1, 2)


def _ngram_starts(words, follows, random):
    """Returns bool [B, T], True where an n-gram of words begins; n is sampled for each n-gram.

    Args:
        words: bool [B, T], where a word begins.
        follows: bool [B, T], whether this position and the preceding position can both be masked.
        random: float32 [B, T] in [0, 1), which determines n for an n-gram that begins at that position.
    """
    share = np.cumsum([1 / n for n in range(1, LONGEST_NGRAM + 1)])
    sizes = 1 + tf.reduce_sum(tf.cast(random[..., None] >= (share / share[-1])[:-1], tf.int32), -1)

    def step(state, at):
        remaining, _ = state
        word, follow, size = at
        start = ~follow | (word & (remaining == 0))
        remaining = tf.where(start, size, remaining) - tf.cast(word, tf.int32)
        return remaining, start

    columns = [tf.transpose(tensor) for tensor in (words, follows, sizes)]
    nothing = tf.zeros_like(columns[2][0]), tf.zeros_like(columns[0][0])
    return tf.transpose(tf.scan(step, columns, nothing)[1])
