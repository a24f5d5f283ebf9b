"""Protected texts inside a TensorFlow graph: the batch version of `protected_texts`, and an export's signatures.

TensorFlow can replace the matches of a regular expression only with one fixed text. The code therefore surrounds each
match with a byte that UTF-8 does not use, and splits the texts at this byte. Every second part is then a match, whose
symbol is looked up before the parts are joined.
"""

import typing

import tensorflow as tf

from t2t_lite.export.signatures import TextSignatures
from t2t_lite.extras.protect.protected_texts import BROKEN, LOST_SEPARATOR, NOT_PROTECTED
from t2t_lite.text.reading_graph import BLANK, blanked, valid

_MARK = b"\xff"


class HiddenBatch(typing.NamedTuple):
    """A batch of texts whose protected texts are replaced by symbols.

    Attributes:
        texts: string [batch].
        slots: int32 [batch, M], the index of each protected text's symbol in `ProtectedTexts.symbols`, padded with -1.
        protected: string [batch, M], the protected texts in order, padded with "".
        only: string [batch], the original text if it consists of protected texts and spaces only, otherwise "".
    """

    texts: tf.Tensor
    slots: tf.Tensor
    protected: tf.Tensor
    only: tf.Tensor

    def read(self, is_symbol):
        """Returns a copy without the protected texts that the model did not read because the text was truncated.

        Args:
            is_symbol: bool [batch, length], whether each id that the model read is a symbol.
        """
        count = tf.math.count_nonzero(is_symbol, axis=1, dtype=tf.int32)
        is_read = tf.range(tf.shape(self.slots)[1]) < count[:, None]
        return self._replace(slots=tf.where(is_read, self.slots, -1))


def hide(protection, texts):
    """Replaces the protected texts of a batch with symbols: see `ProtectedTexts.hide`.

    Args:
        protection: ProtectedTexts.
        texts: string [batch], valid UTF-8.

    Returns:
        HiddenBatch.
    """
    parts, is_match = _split(texts, protection.pattern)
    rows = parts.value_rowids()
    kinds = tf.stack([tf.strings.regex_full_match(parts.values, one) for one in protection.patterns.values()], -1)
    is_kind = tf.one_hot(tf.argmax(tf.cast(kinds, tf.int32), -1), len(protection.kinds), dtype=tf.int32)
    is_kind *= tf.cast(is_match, tf.int32)[:, None]  # [parts, kinds]
    number = tf.reduce_sum(_running(is_kind, parts) * is_kind, -1)  # counts the matches of each kind, from 1
    kind = tf.argmax(is_kind, -1, tf.int32)
    sizes = tf.constant([*protection.numbers.values()])
    first = tf.gather(tf.cumsum(sizes, exclusive=True), kind)
    slot = tf.where(is_match, first + (number - 1) % tf.gather(sizes, kind), -1)
    hidden = parts.with_values(_with_symbols(protection, parts.values, slot))
    rest = parts.with_values(tf.where(is_match, "", hidden.values))
    slots = tf.ragged.boolean_mask(parts.with_values(slot), parts.with_values(is_match))
    hits = tf.ragged.boolean_mask(parts, parts.with_values(is_match))
    has_some = tf.math.unsorted_segment_max(tf.cast(is_match, tf.int32), rows, parts.nrows()) > 0
    is_only = has_some & tf.strings.regex_full_match(tf.strings.reduce_join(rest, axis=-1), BLANK)
    return HiddenBatch(
        tf.strings.reduce_join(hidden, axis=-1), slots.to_tensor(-1), hits.to_tensor(""), tf.where(is_only, texts, "")
    )


def hide_as(protection, texts, hidden):
    """Applies `ProtectedTexts.hide_as` to texts, string [batch] in valid UTF-8, given the inputs' HiddenBatch."""
    parts, is_match = _split(texts, protection.pattern)
    matches = tf.where(is_match)[:, 0]
    there = tf.where(hidden.slots >= 0)
    known = _keys(there[:, 0], tf.gather_nd(hidden.protected, there))
    at = _indices(_keys(tf.gather(parts.value_rowids(), matches), tf.gather(parts.values, matches)), known)
    slots = tf.gather(tf.concat([tf.gather_nd(hidden.slots, there), [-1]], 0), at)
    slot = tf.tensor_scatter_nd_update(tf.fill(tf.shape(is_match), -1), matches[:, None], slots)
    return tf.strings.reduce_join(parts.with_values(_with_symbols(protection, parts.values, slot)), axis=-1)


def restore(protection, outputs, slots, protected):
    """Puts the protected texts back into a batch of outputs: see `ProtectedTexts.restore`.

    Args:
        protection: ProtectedTexts.
        outputs: string [batch], valid UTF-8.
        slots, protected: [batch, M], see `HiddenBatch`.

    Returns:
        string [batch].
    """
    parts, is_match = _split(outputs, protection.symbol_pattern)
    rows, count = parts.value_rowids(), parts.nrows()
    matches, there = tf.where(is_match)[:, 0], tf.where(slots >= 0)
    symbols = tf.gather(tf.constant(protection.symbols), tf.gather_nd(slots, there))
    known = _keys(there[:, 0], symbols)
    written = _keys(tf.gather(rows, matches), tf.gather(parts.values, matches))
    at = _indices(written, known)
    is_known = at < tf.size(known)
    puts_back = tf.scatter_nd(matches[:, None], is_known, tf.shape(is_match, tf.int64))
    removes = is_match & ~puts_back
    text = tf.gather(tf.concat([tf.gather_nd(protected, there), [""]], 0), at)
    text = tf.tensor_scatter_nd_update(tf.fill(tf.shape(is_match), ""), matches[:, None], text)
    is_before = tf.concat([removes, [False]], 0)[1:]
    between = tf.where(is_before, tf.strings.regex_replace(parts.values, " $", ""), parts.values)
    joined = tf.strings.reduce_join(parts.with_values(tf.where(is_match, text, between)), axis=-1)
    removed = tf.math.unsorted_segment_max(tf.cast(removes, tf.int32), rows, count) > 0
    joined = tf.where(removed, tf.strings.regex_replace(joined, "^ +", ""), joined)
    is_lost = _indices(known, written) == tf.size(written)
    is_lost = tf.scatter_nd(there, is_lost, tf.shape(slots, tf.int64))
    lost = tf.strings.reduce_join(tf.where(is_lost, LOST_SEPARATOR + protected, ""), axis=-1)
    alone = tf.strings.regex_replace(lost, f"^{LOST_SEPARATOR}", "", replace_global=False)
    return tf.where(joined == "", alone, joined + lost)


def _split(texts, pattern):
    """Returns the parts of texts, ragged [batch, (parts)], and bool [all parts]: whether each part is a match."""
    marked = tf.strings.regex_replace(texts, f"({pattern})", _MARK + rb"\1" + _MARK)
    parts = tf.strings.split(marked, _MARK)
    at = tf.ragged.range(parts.row_lengths())
    return parts, (at.values % 2 == 1) & (parts.values != NOT_PROTECTED)


def _with_symbols(protection, values, slot):
    """Returns string [parts]: a symbol for each part whose slot is not -1, and the text of the other parts."""
    symbols = tf.gather(tf.constant(protection.symbols), tf.maximum(slot, 0))
    return tf.where(slot >= 0, symbols, tf.strings.regex_replace(values, *BROKEN))


def _running(counts, parts):
    """Returns the running sums of int32 [parts, n] within each row of ragged parts."""
    before = tf.gather(tf.cumsum(counts, 0, exclusive=True), parts.row_starts())  # every row has at least one part
    return tf.cumsum(counts, 0) - tf.gather(before, parts.value_rowids())


def _keys(rows, values):
    """Returns a different string for each value: its row, its rank among equal values in the row, and the value.

    The run time is that of sorting n values, even if many of them are equal.

    Args:
        rows: int64 [n].
        values: string [n].
    """
    ids = tf.unique(tf.strings.join([tf.strings.as_string(rows), values], " ")).idx
    order = tf.argsort(ids, stable=True)
    ordered = tf.gather(ids, order)
    ranks = tf.range(tf.size(ids)) - tf.searchsorted(ordered, ordered)
    ranks = tf.scatter_nd(order[:, None], ranks, tf.shape(ids))
    return tf.strings.join([tf.strings.as_string(rows), tf.strings.as_string(ranks), values], " ")


def _indices(keys, known):
    """Returns the index of each key in `known`, which has no duplicates; for a missing key, the size of `known`."""
    count = tf.size(known)
    return tf.minimum(tf.unique(tf.concat([known, keys], 0)).idx[count:], count)


class ProtectedSignatures(TextSignatures):
    """The `TextSignatures` of a problem whose `substitution` is a `Protection`."""

    def __init__(self, translator, max_input_length, **search):
        super().__init__(translator, max_input_length, **search)
        self._protection = translator.problem.substitution

    def card(self):
        """See `TextSignatures.card`."""
        rows, table = super().card()
        return {**rows, "unchanged in outputs": ", ".join(self._protection.kinds)}, table

    def read_inputs(self, inputs):
        """Returns `Sources`, which are blank if there is nothing to translate, and the `HiddenBatch`."""
        hidden = hide(self._protection, valid(inputs))
        sources = self.readers["inputs"](hidden.texts)
        sources = blanked(sources._replace(is_blank=sources.is_blank | (hidden.only != "")))
        encoder = self.encoders["inputs"]
        is_symbol = [piece in self._protection.symbols for piece in encoder.pieces(range(encoder.vocab_size))]
        return sources, hidden.read(tf.gather(tf.constant(is_symbol), sources.ids))

    def pairs(self, inputs, targets):
        """Returns inputs and targets, both string [batch], in which the inputs' protected texts are symbols."""
        hidden = hide(self._protection, valid(inputs))
        return hidden.texts, hide_as(self._protection, valid(targets), hidden)

    def texts(self, ids, read, n_best=1):
        """Decodes ids, int32 [batch * n_best, length], to string [batch * n_best]; restores the protected texts."""
        slots, protected = (tf.repeat(part, n_best, axis=0) for part in (read.slots, read.protected))
        return restore(self._protection, super().texts(ids, read, n_best), slots, protected)

    def unchanged(self, read):
        """Returns the inputs that consist of protected texts only, string [batch], and "" for all other inputs."""
        return read.only
