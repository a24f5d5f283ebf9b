"""Ids of events that have names, the base of the encoders of music."""

import hashlib

from t2t_lite.errors import UserError, shown
from t2t_lite.text.vocabulary import TextEncoder

LOWEST, HIGHEST = 21, 108  # pitches of a piano, A0 to C8
PITCHES = range(LOWEST, HIGHEST + 1)


class EventEncoder(TextEncoder):
    """Ids of named events: 2 is the first, 3 the second, and so on. As a text, they are their names, in one line.

    Subclasses also have `encode_notes` and `decode_notes`, lists of `Note` <-> ids.

    Args:
        names: list of str, without white space.
        pitches: list of (id of the lowest pitch, number of pitches) of the ranges of ids that are pitches, which all
            move where music is transposed.
    """

    def __init__(self, names, pitches):
        super().__init__(self.num_reserved_ids + len(names))
        self.pitches = pitches
        self._names = names
        self._ids = {name: i for i, name in enumerate(names, self.num_reserved_ids)}

    @property
    def fingerprint(self):
        """SHA-256 (hex) of the names."""
        return hashlib.sha256(" ".join(self._names).encode()).hexdigest()

    def encode(self, text):
        """Returns the ids of names that are separated by white space."""
        if unknown := [name for name in text.split() if name not in self._ids]:
            first, last = self._names[0], self._names[-1]
            raise UserError(f"{shown(unknown[0])} is no event of this music. Expected names from {first} to {last}.")
        return [self._ids[name] for name in text.split()]

    def encode_notes(self, notes):
        """Returns the ids of a list of `Note`, sorted by start. Raises `UserError` for a note that has none."""
        raise NotImplementedError

    def decode_notes(self, ids):
        """Returns the list of `Note` of any ids."""
        raise NotImplementedError

    def count_notes(self, ids):
        """Returns the number of notes in ids."""
        raise NotImplementedError

    def _piece(self, i):
        return self._names[i - self.num_reserved_ids]

    def tf_encode(self, strings):
        """In a graph: string [batch] -> int32 ragged [batch, (length)], without EOS; skips what is no event."""
        import tensorflow as tf

        words = tf.strings.split(strings)
        same = words.flat_values[:, None] == tf.constant(self._names)[None]
        ids = tf.argmax(tf.cast(same, tf.int32), axis=1, output_type=tf.int32) + self.num_reserved_ids
        return tf.ragged.boolean_mask(words.with_flat_values(ids), words.with_flat_values(tf.reduce_any(same, axis=1)))

    def tf_decode(self, ids):
        """In a graph: int32 [batch, length] -> string [batch]; reserved ids are left out."""
        import tensorflow as tf

        from t2t_lite.text.vocabulary import tf_visible

        ids = tf_visible(ids)
        ids = tf.ragged.boolean_mask(ids, (ids >= self.num_reserved_ids) & (ids < self.vocab_size))
        names = tf.ragged.map_flat_values(tf.gather, tf.constant(self._names), ids - self.num_reserved_ids)
        return tf.strings.reduce_join(names, axis=-1, separator=" ")
