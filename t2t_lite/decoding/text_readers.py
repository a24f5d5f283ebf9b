"""What an encoder reads of a text, and what its logits say of it: classes, numbers and masked words."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from t2t_lite.data.masking import blank_before_mask, mask_of
from t2t_lite.data.text_problems.labelled_text import cut_texts
from t2t_lite.decoding.predictions import Candidate, Prediction, Value
from t2t_lite.errors import UserError, counted
from t2t_lite.text.beginnings import encode_beginning
from t2t_lite.text.vocabulary import EOS_ID


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a model reads of one text.

    Attributes:
        rows: list of one or more rows, each a list of int.
        truncated: bool, whether some of the text is in no row.
        source: what the answer needs of the text beside the model's output.
    """

    rows: list
    truncated: bool = False
    source: object = None

    def __len__(self):
        return sum(map(len, self.rows))


class TextReader:
    """Reads texts, or pairs of texts. Subclasses say what a task's logits mean.

    Args:
        problem: Problem.
        encoders: {"inputs": encoder of texts, "targets": encoder of labels}.

    Attributes:
        labels: list of str, the classes or tags, if there are such.
        num_texts: int, the texts of a row, unless the problem says it.
    """

    labels = ()
    num_texts = 1

    def __init__(self, problem, encoders):
        self.problem = problem
        self.encoder = encoders["inputs"]
        self.encoders = encoders
        self.num_texts = getattr(problem, "num_texts", self.num_texts)

    def whole(self, text, longest):
        """Returns the Reading of a text in one row.

        Args:
            text: str, or a tuple of `num_texts` str.
            longest: int, the most ids of a row; of longer ones the end is not read, of a pair that of the longer text.

        Raises:
            UserError: another number of texts, or the vocabulary cannot encode one.
        """
        ids = [i for text in self.texts(text) for i in (*self._beginning(text, longest), EOS_ID)]
        if len(ids) <= longest:
            return Reading([ids])
        return Reading([cut_texts(tf.constant(ids), longest).numpy().tolist()], True)

    read = whole  # for an answer

    def _beginning(self, text, longest):
        return encode_beginning(self, text, longest, self.problem.input_text)

    def encode(self, text):
        """Returns the ids of a text, without its end."""
        return self.encoder.encode(text)

    def texts(self, text):
        """Returns the tuple of a row's texts. Raises `UserError` for another number of them than the problem has."""
        texts = text if isinstance(text, tuple) else (text,)
        if len(texts) != self.num_texts:
            raise UserError(
                f"{counted(len(texts), 'text')}. Expected {self.num_texts}, as {self.problem.full_name} has in a row."
            )
        return texts

    def scores(self, logits):
        """Returns what the logits of a batch say, in a graph, as `answer` wants it."""
        raise UserError(f"predict: {self.problem.full_name} has no classes. Expected features.")

    def answer(self, reading, scores, n_best):
        """Returns what `Predictor.predict` returns of a text.

        Args:
            reading: Reading.
            scores: list of arrays, those of its rows.
            n_best: int, how many hypotheses there may be at most, where there are several.
        """
        raise NotImplementedError


class ClassReader(TextReader):
    """Classes of texts. Scores are probabilities, float32 [B, C]."""

    def __init__(self, problem, encoders):
        super().__init__(problem, encoders)
        self.labels = [encoders["targets"].decode([label]) for label in range(1, encoders["targets"].vocab_size)]

    def scores(self, logits):
        """See `TextReader`; id 0 is no class."""
        return tf.nn.softmax(tf.reshape(logits, [tf.shape(logits)[0], len(self.labels) + 1])[:, 1:])

    def answer(self, reading, scores, n_best):
        """Returns a `Prediction`."""
        (row,) = scores
        probabilities = dict(zip(self.labels, row.tolist(), strict=True))
        return Prediction(self.labels[int(np.argmax(row))], probabilities, reading.truncated)


class ValueReader(TextReader):
    """Numbers that belong to texts. Scores are places in the range of the training files' numbers, float32 [B, 1]."""

    def scores(self, logits):
        """See `TextReader`."""
        return logits

    def answer(self, reading, scores, n_best):
        """Returns a `Value`."""
        (row,) = scores
        return Value(self.encoders["targets"].value(row.item()), reading.truncated)


class MaskReader(TextReader):
    """Masked words. Texts in which nothing is masked, and pairs, are read only for features."""

    @functools.cached_property
    def mask(self):
        """(id, piece) of the mask. Raises `UserError` if the vocabulary has none."""
        return mask_of(self.encoder)

    @functools.cached_property
    def _blank(self):
        return blank_before_mask(self.encoder)

    def texts(self, text):
        """Returns a text, or a pair, as a tuple. Raises `UserError` for another number of texts."""
        return text if isinstance(text, tuple) and len(text) == 2 else super().texts(text)

    def read(self, text, longest):
        """Returns the Reading of a text with masks.

        Raises:
            UserError: there is no mask, or the text is too long.
        """
        (text,) = super().texts(text)
        if self.mask[1] not in text:
            raise UserError(f"there is no {self.mask[1]} in it. Expected one where something is to be guessed.")
        row = [*self.encode(text), EOS_ID]
        if len(row) > longest:
            raise UserError(f"it has {len(row):,} ids, and the model reads {longest:,}.")
        return Reading([row])

    def encode(self, text):
        """Returns the ids of a text, without its end; what stands beside a mask is encoded for itself, if need be."""
        try:
            mask_id, mask = self.mask
        except UserError:  # features alone do not need one
            return self.encoder.encode(text)
        if self._blank is None:
            *before, last = text.split(mask)
            first, *rest = map(self.encoder.encode, [*(part.rstrip(" ") for part in before), last])
            return [*first, *(i for ids in rest for i in (mask_id, *ids))]
        ids = self.encoder.encode(text)
        return [i for i, after in zip(ids, [*ids[1:], None], strict=True) if (i, after) != (self._blank, mask_id)]

    def candidates(self, best):
        """Returns the list of `Candidate` of each mask, of a list of (probabilities, ids)."""
        return [
            [Candidate(piece, float(p)) for piece, p in zip(self.encoder.pieces(ids), probabilities, strict=True)]
            for probabilities, ids in best
        ]
