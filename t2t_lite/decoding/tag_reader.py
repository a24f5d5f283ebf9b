"""What an encoder reads of a sentence whose words get tags, and the tags."""

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.predictions import Tagging
from t2t_lite.decoding.text_readers import ClassReader, Reading
from t2t_lite.text.beginnings import longest_text
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.text.words import word_pieces


class TagReader(ClassReader):
    """Tags of words. Scores are probabilities at every position, float32 [B, S, C]; a word's first piece counts.

    A sentence is a str, whose words are separated by white space, or a tuple of its words. A long one is read in parts.
    """

    def whole(self, text, longest):
        """See `TextReader`."""
        text = text[: longest_text(longest)] if isinstance(text, str) else text[:longest]  # each word has a piece
        ids = [i for piece_ids in self._pieces(text)[1] for i in piece_ids]
        return Reading([[*ids[: longest - 1], EOS_ID]], len(ids) >= longest)

    def read(self, text, longest):
        """Returns the Reading of a sentence; its source is the words and, for each row, where its words begin."""
        words, pieces = self._pieces(text)
        rows, starts = [], []
        for ids in pieces:
            ids = ids[: longest - 1]
            if not rows or len(rows[-1]) + len(ids) >= longest:
                rows.append([])
                starts.append([])
            starts[-1].append(len(rows[-1]))
            rows[-1] += ids
        return Reading([[*row, EOS_ID] for row in rows], source=(words, starts))

    def scores(self, logits):
        """See `TextReader`; id 0 is no tag."""
        return tf.nn.softmax(logits[..., 1:])

    def answer(self, reading, scores, n_best):
        """Returns a `Tagging`."""
        words, starts = reading.source
        of_words = [row[at] for row, places in zip(scores, starts, strict=True) for at in places]
        tags = [self.labels[int(np.argmax(one))] for one in of_words]
        return Tagging(words, tags, [float(np.max(one)) for one in of_words], max(len(starts), 1))

    def _pieces(self, text):
        """Returns (list of words, their pieces: a list of int for each)."""
        words = text.split() if isinstance(text, str) else [*text]
        return words, word_pieces(self.encoder, [self.problem.input_text(word) for word in words])
