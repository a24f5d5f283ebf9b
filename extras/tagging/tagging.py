"""The task of tagging each word of a sentence."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.corpora.plain_text import as_field
from t2t_lite.errors import UserError, shown
from t2t_lite.evaluation import answer_scores
from t2t_lite.extras.tagging import conll
from t2t_lite.extras.tagging.tag_metrics import TAG_METRICS
from t2t_lite.tasks.classification import LabelTask
from t2t_lite.tasks.encoder_task import Reading, by_rows
from t2t_lite.text.encoder_parts import split_words
from t2t_lite.text.offsets import space_before, word_pieces
from t2t_lite.text.reading_graph import beginnings, valid, with_eos
from t2t_lite.text.rows import longest_text, row_ids
from t2t_lite.text.vocabulary import EOS_ID, UNK_ID

_MOST = 2**16  # maximum number of ids per sentence in an export


@dataclasses.dataclass(frozen=True)
class Tagging:
    """The tags of one sentence.

    Attributes:
        words: list of str.
        tags: list of str, the most probable tag of each word.
        probabilities: list of float, the probability of each tag.
        parts: int, number of parts in which the sentence was read; each fits into the model's maximum input length.
        truncated: always False, because every word gets a tag.
    """

    words: list[str]
    tags: list[str]
    probabilities: list[float]
    parts: int = 1
    truncated: bool = False


@registry.register_task("tagging")
class TaggingTask(LabelTask):
    """Tags the words of a sentence, using the probabilities at the first piece of each word.

    A sentence is a str with words separated by white space, or a tuple of words. A long sentence is read in parts.
    `scores` are the probabilities at all positions, float32 [rows, S, tags].
    """

    eval_metrics = ("token_accuracy",)
    head = "tag"
    problems = ("tag_own",)
    sparse_targets = True
    metrics = TAG_METRICS
    long_input = ("split", "refuse")
    columns = conll.LAYOUT.names
    unit = "sentence"
    hub_task, export_name, output = "token-classification", "tag", "tags"

    def whole(self, text, longest):
        """Reads a sentence into a single row, truncated if necessary: see `EncoderTask`."""
        # Each word has at least one piece, so no more than `longest` words are needed.
        text = text[: longest_text(longest)] if isinstance(text, str) else text[:longest]
        ids = [i for piece_ids in self._pieces(text)[1] for i in piece_ids]
        return Reading([[*ids[: longest - 1], EOS_ID]], len(ids) >= longest)

    def read(self, text, longest):
        """Returns the Reading of a sentence; `source` is (words, the positions in each row where words begin)."""
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

    def _pieces(self, text):
        """Splits a text into words; returns (list of words, list of lists with the ids of each word's pieces)."""
        words = text.split() if isinstance(text, str) else [*text]
        return words, word_pieces(self.encoder, [self.problem.input_text(word) for word in words])

    def answer(self, reading, scores, n_best):
        """Returns the tags of a sentence as a `Tagging`."""
        words, starts = reading.source
        word_scores = [row[at] for row, places in zip(scores, starts, strict=True) for at in places]
        tags = [self.labels[int(np.argmax(one))] for one in word_scores]
        return Tagging(words, tags, [float(np.max(one)) for one in word_scores], max(len(starts), 1))

    def compared(self, inputs, targets, chosen):
        """Returns the lists of chosen and of expected tags: see `EncoderTask`."""
        is_word, decode = targets != 0, self.encoders["targets"].decode
        return [[decode(i) for i in ids[is_word].tolist()] for ids in (chosen, targets)]

    @staticmethod
    def as_line(answer):
        """Returns CoNLL lines (word and tag); the line break that follows each answer then makes a blank line."""
        pairs = zip(answer.words, answer.tags, strict=True)
        return "".join(f"{as_field(word)}\t{as_field(tag)}\n" for word, tag in pairs)

    @classmethod
    def shown(cls, answer):
        """Returns each word with its tag and probability, in order: see `EncoderTask`."""
        words = [f"{word} {tag}" for word, tag in zip(answer.words, answer.tags, strict=True)]
        return "", [[*zip(words, answer.probabilities, strict=True)]]

    @classmethod
    def file_reader(cls, ending, problem, folder):
        """Returns the reader for CoNLL files, with the columns of the training files: see `EncoderTask`."""
        if ending not in ("conll", "conllu"):
            return None
        if hasattr(problem, "read_config"):
            problem.read_config(folder)
        return functools.partial(_words, layout=getattr(problem, "layout", conll.LAYOUT))

    @classmethod
    def references(cls, path, layout):
        """Reads the gold tags, with the words of each sentence as keys: see `EncoderTask`."""
        sentences = list(conll.read_conll(path, layout=layout))
        return [sentence.tags for sentence in sentences], [sentence.words for sentence in sentences]

    @classmethod
    def predictions(cls, path, reference):
        """Reads predicted tags; their words must be the same as in the reference: see `EncoderTask`."""
        sentences = list(conll.read_conll(path))
        answer_scores.check_count(path, len(sentences), reference, "sentence")
        for sentence, words in zip(sentences, reference.keys, strict=True):
            if sentence.words != words:
                raise UserError(
                    f"{sentence.place}: has the words {shown(' '.join(sentence.words))}, but {reference.path} has "
                    f"{shown(' '.join(words))}. Expected the same words in both files."
                )
        return [sentence.tags for sentence in sentences]

    def answers(self, predictor, texts, longest):
        """Tags sentences in a graph: see `EncoderTask`.

        Returns:
            {"words": string, "tags": string, "probabilities": float32 (of each tag), all [batch, words], padded with ""
            and 0; "truncated": bool [batch]}.
        """
        words, pieces, is_cut = self._words(texts, _MOST)
        pieces = pieces[:, : longest - 1]
        ends = tf.concat([[0], tf.cumsum(pieces.row_lengths())], 0)  # number of ids before each word, and in total
        splits = _row_splits(ends, words.row_starts(), words.row_limits(), longest - 1)
        rows = tf.RaggedTensor.from_row_splits(pieces, splits)
        end = tf.fill([rows.nrows(), 1], EOS_ID)
        scores = by_rows(predictor.probabilities, tf.concat([rows.merge_dims(1, 2), end], 1).to_tensor())
        row = row_ids(rows)
        at = ends[:-1] - tf.gather(ends, tf.gather(splits, row))
        word_scores = tf.gather_nd(scores, tf.stack([row, at], 1))
        return {
            "words": words.to_tensor(),
            "tags": words.with_values(self.best_labels(word_scores)).to_tensor(),
            "probabilities": words.with_values(tf.reduce_max(word_scores, -1)).to_tensor(),
            "truncated": is_cut,
        }

    def whole_rows(self, texts, longest):
        """Encodes each sentence as a single row, in a graph: see `EncoderTask`."""
        words, pieces, is_cut = self._words(texts, longest)
        ids = words.with_values(pieces).merge_dims(1, 2)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        return with_eos(ids, tf.minimum(lengths, longest - 1)), is_cut | (lengths >= longest)

    def _words(self, texts, longest):
        """Splits texts into words, reading only the beginning of a very long text.

        Args:
            texts: list with one string tensor [batch].
            longest: int; at least this number of ids is read from the beginning of each text.

        Returns:
            (words, pieces, truncated): words is string [batch, (words)]; pieces is int32 [all words, (pieces)];
            truncated, bool [batch], is whether each text was truncated.
        """
        texts, is_cut = beginnings(valid(texts[0]), longest)
        words = split_words(texts)
        is_first = row_ids(words)
        is_first = tf.concat([tf.fill([tf.minimum(tf.size(is_first), 1)], True), is_first[1:] != is_first[:-1]], 0)
        pieces = self.encode_texts(tf.where(is_first, "", space_before(self.encoder)) + words.values)
        is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(is_empty)], UNK_ID), is_empty)
        return words, tf.concat([pieces, unknown], 1), is_cut

    def card(self):
        """Describes the outputs of an export for its model card: see `EncoderTask`."""
        outputs = "`words`, `tags` string and `probabilities` float32, [batch, words]"
        return {"tags": ", ".join(self.labels)}, outputs


def _words(path, layout):
    return [sentence.words for sentence in conll.read_conll(path, with_tags=False, layout=layout)]


def _row_splits(ends, first, limit, room):
    """Computes row splits, int64 [rows + 1], that distribute words over as few rows as possible.

    Args:
        ends: int64 [words + 1], the number of ids before each word, and the total number of ids.
        first, limit: int64 [sentences], the indices where the words of each sentence begin and end.
        room: int, the maximum number of ids per row, which no single word exceeds.
    """

    def begin_rows(at, begins):
        last = tf.searchsorted(ends, tf.gather(ends, at) + room, side="right", out_type=tf.int64) - 1
        return tf.minimum(last, limit), tf.concat([begins, tf.boolean_mask(at, at < limit)], 0)

    _, begins = tf.while_loop(
        lambda at, _: tf.reduce_any(at < limit),
        begin_rows,
        (first, tf.zeros([0], tf.int64)),
        shape_invariants=(tf.TensorShape([None]), tf.TensorShape([None])),
    )
    return tf.concat([tf.sort(begins), tf.shape(ends, tf.int64) - 1], 0)
