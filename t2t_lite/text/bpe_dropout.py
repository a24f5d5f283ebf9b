"""BPE-dropout (Provilkov et al. 2020, algorithm 1): samples a new segmentation each time a sentence is read.

One call processes the ids of many sentences. SentencePiece's own sampling takes one text per call and cannot be seeded.
"""

import numpy as np

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.text import vocabulary

_NEVER = np.iinfo(np.int32).max  # the rank of a pair of symbols that no merge joins
_MIX = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, which spreads keys over a table (Knuth, volume 3, section 6.4)


class BpeDropout:
    """Resegments sentences: in each BPE step, every possible merge is skipped with a given probability.

    Words are segmented independently. A word begins at a piece that begins with a space. If any piece of the vocabulary
    contains a space after its first character, a whole sentence counts as one word. Bytes, user-defined symbols and
    special ids do not change, and no merge spans them.

    Args:
        encoder: a `SentencePieceEncoder` with a BPE model.
        probability: probability of skipping a merge, from 0 (SentencePiece's own pieces) to 1 (characters).

    Raises:
        UserError: the encoder or its type of model is not supported, or the probability is out of range.

    Example:
        >>> dropout = BpeDropout(encoder, 0.1)                                              # doctest: +SKIP
        >>> ids, lengths = dropout(np.array([17, 5, 1]), np.array([3]), np.random.default_rng(0))   # doctest: +SKIP
    """

    def __init__(self, encoder, probability):
        if not 0 <= probability <= 1:
            raise UserError(f"bpe_dropout={probability}: expected a probability from 0 (off) to 1 (characters).")
        if not isinstance(encoder, vocabulary.SentencePieceEncoder):
            raise UserError(
                f"bpe_dropout={probability}: this problem's vocabulary ({type(encoder).__name__}) has no merges to "
                "skip. Only SentencePiece BPE models have them: set bpe_dropout=0."
            )
        from t2t_lite.text import sentencepiece_model

        proto = sentencepiece_model.ModelProto.FromString(files.read_bytes(encoder.path))
        if proto.trainer_spec.model_type != sentencepiece_model.TrainerSpec.BPE:
            kind = sentencepiece_model.TrainerSpec.ModelType.Name(proto.trainer_spec.model_type).lower()
            raise UserError(
                f"bpe_dropout={probability}: {encoder.path} is a {kind} model, which has no merges. Only BPE models "
                "have them: set bpe_dropout=0."
            )
        self._probability = probability
        self._size = len(proto.pieces)
        normal = {p.piece: i for i, p in enumerate(proto.pieces) if p.type == p.NORMAL}
        self._read_characters([p.piece for p in proto.pieces], normal)
        self._read_merges(normal, np.array([p.score for p in proto.pieces]))

    def __call__(self, ids, lengths, draw):
        """Samples a segmentation of each sentence.

        Args:
            ids: int [n], the ids of all sentences, concatenated.
            lengths: int [sentences], the number of ids of each sentence.
            draw: `numpy.random.Generator`, whose state determines the result.

        Returns:
            (ids int32 [m], lengths int64 [sentences]), a segmentation of the same text.
        """
        counts = self._counts[ids]
        ends = np.cumsum(counts)
        symbols = self._characters[np.repeat(self._starts[ids] - (ends - counts), counts) + np.arange(counts.sum())]
        is_first = self._begins_word[ids]
        is_first[1:] |= self._is_atomic[ids[:-1]]
        is_first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
        pieces = np.flatnonzero(is_first)
        begins = (ends - counts)[pieces]
        sizes = np.diff(begins, append=symbols.size)

        old_sizes = np.diff(pieces, append=ids.size)
        calm, stays = self._first_skips(sizes - old_sizes, draw)
        merged, new_sizes = self._merge(symbols, begins[~stays], sizes[~stays], calm[~stays], draw)
        sizes = old_sizes.copy()
        sizes[~stays] = new_sizes
        is_old = np.repeat(stays, sizes)
        segmented = np.empty(is_old.size, np.int32)
        segmented[is_old] = ids[np.repeat(stays, old_sizes)]
        segmented[~is_old] = merged
        sentence = np.repeat(np.arange(lengths.size), lengths)[pieces]
        return segmented, np.bincount(sentence, sizes, lengths.size).astype(np.int64)

    def _first_skips(self, merges, draw):
        """Samples, for each word, (int64: number of steps before the first skip; bool: whether nothing is skipped)."""
        # To save time, words in which no merge is skipped keep their pieces: two words in three if the probability is
        # 0.1. This shortcut is not used with the probabilities 0 and 1.
        if self._probability in (0, 1):
            return np.full(merges.size, -1), np.zeros(merges.size, bool)
        # rounded down, `steps` has a geometric distribution
        steps = np.log1p(-draw.random(merges.size)) / np.log1p(-self._probability)
        steps = np.minimum(steps, merges.max(initial=0)).astype(np.int64)
        return steps, steps >= merges

    def _merge(self, symbols, begins, sizes, calm, draw):
        """Merges the symbols of all words; returns (the remaining symbols of all words, number of symbols per word)."""
        # Each step makes one merge in each unfinished word. All words in a step have the same number of symbols. The
        # loop starts with the longest words. After a step, these have one symbol fewer, and the words that have this
        # number of symbols from the beginning are added.
        order = np.argsort(-sizes, kind="stable")
        # where in `order` the words of each size begin and end, starting with the largest size
        bounds = np.searchsorted(-sizes[order], np.arange(-sizes.max(initial=0), 1))
        parts = []
        calm, all_calm = calm[:0], calm
        words, table, ranks = order[:0], np.zeros([0, 0], np.int32), np.zeros([0, 0], np.int32)
        for number, size in enumerate(range(sizes.max(initial=0), 0, -1)):
            new = order[bounds[number] : bounds[number + 1]]
            added = symbols[begins[new][:, None] + np.arange(size)]
            words = np.concatenate([words, new])
            table = np.concatenate([table.reshape(-1, size), added])
            # For each symbol of the added words, the rank of its merge with the next symbol.
            ranks = np.concatenate([ranks.reshape(-1, size), self._ranks_within(added)])
            calm = np.concatenate([calm, all_calm[new]])
            columns = self._choose(ranks, calm, draw)
            goes_on = np.take(ranks, np.arange(words.size) * size + columns) != _NEVER
            finished, rest = np.flatnonzero(~goes_on), np.flatnonzero(goes_on)
            parts.append((words[finished], table.take(finished, axis=0)))
            sizes[parts[-1][0]] = size
            words, table, ranks = words[rest], table.take(rest, axis=0), ranks.take(rest, axis=0)
            calm = calm[rest] - 1
            table, ranks = self._apply(table.reshape(-1), ranks.reshape(-1), columns[rest], size)
        ends = np.cumsum(sizes)
        merged = np.empty(sizes.sum(), np.int32)
        for words, rows in parts:
            merged[(ends - sizes)[words][:, None] + np.arange(rows.shape[1])] = rows
        return merged, sizes

    def _choose(self, ranks, calm, draw):
        """Returns the column of each row's best merge that is not skipped, or a column that holds `_NEVER`."""
        # `calm` is the number of steps, per row, that still make the best merge. The step after them skips the best
        # merge.
        columns = ranks.argmin(axis=1)  # of several pairs of equal rank, the leftmost, as in SentencePiece
        if self._probability == 0:
            return columns
        # The number of best merges that a step skips has a geometric distribution, so it is sampled once per word.
        chance = np.where(calm > 0, 1.0, draw.random(len(ranks)))
        chance[calm == 0] *= self._probability
        rows = np.flatnonzero(chance < self._probability)
        if self._probability == 1:
            num_skipped = np.full(rows.size, ranks.shape[1] - 1)
        else:
            chance = np.maximum(chance[rows], np.finfo(float).tiny)
            num_skipped = np.minimum(np.log(chance) / np.log(self._probability), ranks.shape[1] - 1).astype(int)
        by_rank = np.argsort(ranks[rows], axis=1, kind="stable")  # the last column is always `_NEVER`
        columns[rows] = by_rank[np.arange(rows.size), num_skipped]
        return columns

    def _apply(self, table, ranks, columns, size):
        """Merges, in each row of `size` symbols, the symbol at the row's entry in `columns` with the next symbol."""
        at = np.arange(columns.size) * size + columns
        merged = self._merged[self._find(table[at], table[at + 1])]
        table[at] = merged
        # Padding (id 0) never merges. If the merged symbol has no left neighbour, the left rank is written to the last
        # column of the previous row (in the case of the first row, of the last row), where it stays `_NEVER`.
        left = np.where(columns > 0, table[at - 1], 0)
        right = np.where(columns + 2 < size, np.take(table, at + 2, mode="clip"), 0)
        ranks[at - 1] = self._ranks[self._find(left, merged)]
        ranks[at] = self._ranks[self._find(merged, right)]
        stays = np.ones(table.size, bool)
        stays[at + 1] = False
        return table[stays], ranks[stays]

    def _ranks_within(self, rows):
        ranks = np.full(rows.shape, _NEVER, np.int32)
        ranks[:, :-1] = self._ranks[self._find(rows[:, :-1], rows[:, 1:])]
        return ranks

    # Tables.

    def _read_characters(self, pieces, normal):
        """Makes tables of each piece's characters. A piece that contains a character without an id is one symbol."""
        characters = [
            [normal[c] for c in piece] if piece in normal and all(c in normal for c in piece) else [i]
            for i, piece in enumerate(pieces)
        ]
        self._is_atomic = np.array([piece not in normal or not all(c in normal for c in piece) for piece in pieces])
        blank = vocabulary.BLANK
        ends_words = not any(blank in piece[1:] for piece in normal)
        self._begins_word = self._is_atomic | np.array([ends_words and piece.startswith(blank) for piece in pieces])
        self._counts = np.array([len(ids) for ids in characters])
        self._starts = np.cumsum(self._counts) - self._counts
        self._characters = np.array([i for ids in characters for i in ids], np.int32)

    def _read_merges(self, normal, scores):
        """Makes a hash table (linear probing) that maps two pieces to the rank and id of the piece that they form."""
        ranks = np.unique(-scores, return_inverse=True)[1].tolist()
        pairs = [
            (normal[piece[:cut]], normal[piece[cut:]], i)
            for piece, i in normal.items()
            for cut in range(1, len(piece))
            if piece[:cut] in normal and piece[cut:] in normal
        ]
        bits = (4 * len(pairs) + 1).bit_length()  # the size of the table, which is at most a quarter full
        self._shift, self._mask = 64 - bits, 2**bits - 1
        keys, self._ranks = [-1] * 2**bits, np.full(2**bits, _NEVER, np.int32)
        self._merged = np.zeros(2**bits, np.int32)
        for left, right, merged in pairs:
            key = left * self._size + right
            slot = (key * _MIX % 2**64) >> self._shift
            while keys[slot] != -1:
                slot = (slot + 1) & self._mask
            keys[slot], self._ranks[slot], self._merged[slot] = key, ranks[merged], merged
        self._keys = np.array(keys)

    def _find(self, left, right):
        """Returns the positions of pairs in the table; the position is empty for a pair that does not merge."""
        key = left.astype(np.int64) * self._size + right
        slot = ((key.astype(np.uint64) * np.uint64(_MIX)) >> np.uint64(self._shift)).astype(np.int64)
        stored = self._keys[slot]
        searched = np.nonzero((stored != key) & (stored != -1))
        while searched[0].size:
            slot[searched] = (slot[searched] + 1) & self._mask
            stored = self._keys[slot[searched]]
            others = (stored != key[searched]) & (stored != -1)
            searched = tuple(axis[others] for axis in searched)
        return slot
