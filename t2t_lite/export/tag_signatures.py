"""The answers of a tagger's export: the words of sentences, and their tags."""

import tensorflow as tf

from t2t_lite.export.encoder_signatures import EncoderSignatures
from t2t_lite.export.reading import beginnings, valid, with_eos
from t2t_lite.text.ragged_rows import row_ids
from t2t_lite.text.vocabulary import UNK_ID
from t2t_lite.text.words import space_before
from t2t_lite.text.words_graph import split_words


class TagSignatures(EncoderSignatures):
    """Tags of words, which are separated by white space. Of a long sentence only the first words get tags."""

    HUB_TASK, NAME, OUTPUT = "token-classification", "tag", "tags"

    def predict(self, inputs):
        """string [batch] -> {"words" and "tags" string, "probabilities" float32, [batch, words]; "truncated" bool}.

        Rows are padded with "" and 0. A probability is that of the tag.
        """
        words, pieces, is_cut = self._words(inputs)
        longest = self.max_input_length - 1
        is_cut |= tf.reduce_any(words.with_values(pieces.row_lengths() > longest), 1)
        lengths = tf.minimum(pieces.row_lengths(), longest)
        starts = tf.cumsum(lengths, exclusive=True)
        starts = words.with_values(starts) - tf.gather(tf.concat([starts, [0]], 0), words.row_starts())[:, None]
        ends = words.with_values(starts.values + lengths)
        is_kept = words.with_values(ends.values <= longest)  # the first words of each sentence
        counts = tf.reduce_sum(tf.cast(is_kept, tf.int64), 1)
        kept_pieces = tf.reduce_sum(words.with_values(tf.where(is_kept.values, lengths, 0)), 1)
        ids = with_eos(words.with_values(pieces).merge_dims(1, 2), tf.cast(kept_pieces, tf.int32))
        probabilities = self._predictor.probabilities(ids)
        width = tf.reduce_max(tf.concat([counts, [0]], 0))  # also of no rows
        starts, kept = (each[:, :width].to_tensor() for each in (starts, words))
        is_there = tf.sequence_mask(counts, width)
        of_words = tf.gather(probabilities, tf.where(is_there, starts, 0), batch_dims=1)
        tags = tf.gather(tf.constant(self._predictor.labels), tf.argmax(of_words, -1))
        return {
            "words": tf.where(is_there, kept, ""),
            "tags": tf.where(is_there, tags, ""),
            "probabilities": tf.where(is_there, tf.reduce_max(of_words, -1), 0.0),
            "truncated": is_cut | (counts < words.row_lengths()),
        }

    def read_whole(self, inputs):
        """See `EncoderSignatures`."""
        words, pieces, is_cut = self._words(inputs)
        ids = words.with_values(pieces).merge_dims(1, 2)
        lengths, longest = tf.cast(ids.row_lengths(), tf.int32), self.max_input_length - 1
        return with_eos(ids, tf.minimum(lengths, longest)), is_cut | (lengths > longest)

    def described(self):
        """See `EncoderSignatures`."""
        outputs = "`words`, `tags` string and `probabilities` float32, [batch, words]"
        return {"tags": ", ".join(self._predictor.labels)}, outputs

    def _words(self, inputs):
        """Reads the words of texts, of a very long one the first.

        Args:
            inputs: string [batch].

        Returns:
            (words, string [batch, (words)]; the pieces of each, int32 [all words, (pieces)]; bool [batch], whether a
            text was cut).
        """
        texts, is_cut = beginnings(valid(inputs), self.max_input_length)
        words = split_words(texts)
        is_first = row_ids(words)
        is_first = tf.concat([tf.fill([tf.minimum(tf.size(is_first), 1)], True), is_first[1:] != is_first[:-1]], 0)
        pieces = self.encode(tf.where(is_first, "", space_before(self._encoder)) + words.values)
        is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(is_empty)], UNK_ID), is_empty)
        return words, tf.concat([pieces, unknown], 1), is_cut
