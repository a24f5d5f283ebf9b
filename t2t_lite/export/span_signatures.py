"""The answers of an export that finds them in contexts: questions and contexts in, parts of the contexts out."""

import functools

import tensorflow as tf

from t2t_lite.data.text_problems.span_problem import DOC_STRIDE, LONGEST_QUESTION
from t2t_lite.errors import UserError
from t2t_lite.evaluation.answers import LONGEST_ANSWER
from t2t_lite.export.encoder_signatures import EncoderSignatures
from t2t_lite.export.reading import TEXTS, beginnings, valid
from t2t_lite.ranges import Range, typed_value
from t2t_lite.text.offsets_graph import encode_with_offsets, has_offsets
from t2t_lite.text.vocabulary import EOS_ID

_LONGEST = 2048  # ids of a question and its context, by default
_MOST = 2**16
_POSITIONS = 4096  # that are computed at a time, in windows
_NEVER = -1e30


class SpanSignatures(EncoderSignatures):
    """Answers to questions. A long context is read in windows, as `Predictor` does.

    Args:
        predictor, **features: see `EncoderSignatures`.
        max_input_length: int, the most ids of a question and its context, which may be more than a row's; None: 2,048.

    Raises:
        UserError: the number is out of range, or the vocabulary does not tell where its pieces stand in a text.
    """

    HUB_TASK, NAME = "question-answering", "answer"
    INPUTS, OUTPUT = ("question", "context"), "answers"

    def __init__(self, predictor, max_input_length, **features):
        super().__init__(predictor, None, **features)
        if not has_offsets(self._encoder):
            raise UserError(
                f"A SavedModel cannot tell where the pieces of a {type(self._encoder).__name__} stand in a text. "
                "Expected SentencePiece, byte-level BPE, WordPiece or bytes; in Python t2t_lite.load(path) answers."
            )
        problem = predictor.problem
        self._row = min(predictor.max_input_length, getattr(problem, "sequence_length", predictor.max_input_length))
        self._stride = getattr(problem, "doc_stride", DOC_STRIDE)
        self._question = min(LONGEST_QUESTION, self._row - 3)
        given = _LONGEST if max_input_length is None else max_input_length
        self.max_input_length = typed_value("max_input_length", given, int, Range(self._question + 3, _MOST))
        # One function, since it has the vocabulary's whole file as a constant.
        spanned = functools.partial(encode_with_offsets, self._encoder)
        self._spanned = tf.function(spanned, input_signature=[TEXTS], autograph=False)

    def encode(self, texts):
        """See `EncoderSignatures`."""
        return self._spanned(valid(texts))[0]

    def predict(self, question, context):
        """Finds answers.

        Args:
            question, context: string [batch].

        Returns:
            {"answers" string, parts of the contexts; "starts" and "ends" int32, where they stand, in characters;
            "probabilities" float32, among all parts that may be the answer; "truncated" bool, the question or the
            context was cut}, [batch] each. An answer has at most 30 pieces; of an empty context it is "".
        """
        texts = self.checked(question, context)
        (question, is_cut), (context, is_context_cut) = (
            beginnings(valid(one), longest, strips=False)  # answers stand where they stand in the whole
            for one, longest in zip(texts, (self._question, self.max_input_length), strict=True)
        )
        texts, count = [question, context], tf.size(question)
        ids, starts, ends = self._spanned(tf.concat(texts, 0))
        spans = ids.with_values(tf.stack([starts, ends], 1))[count:]
        asked, ids = ids[:count], ids[count:]
        is_cut |= is_context_cut | (asked.row_lengths() > self._question)
        asked = asked[:, : self._question]
        kept = tf.minimum(ids.row_lengths(), self.max_input_length - 2 - asked.row_lengths())
        is_cut |= kept < ids.row_lengths()
        best = self._best(asked, ids, kept)  # [all ids of contexts, LONGEST_ANSWER]
        is_space = spans.values[:, 0] >= spans.values[:, 1]
        last = tf.range(tf.size(is_space))[:, None] + tf.range(LONGEST_ANSWER)
        is_nothing = is_space[:, None] | tf.gather(is_space, tf.minimum(last, tf.size(is_space) - 1))
        best = ids.with_values(tf.where(is_nothing, _NEVER, best)).to_tensor(_NEVER, shape=[None, None, LONGEST_ANSWER])
        best = tf.pad(
            tf.reshape(best, [count, LONGEST_ANSWER * tf.shape(best)[1]]), [[0, 0], [0, 1]], constant_values=_NEVER
        )
        at = tf.argmax(best, 1)
        top = tf.gather(best, at, batch_dims=1)
        has_answer = top > _NEVER / 2
        first = tf.where(has_answer, ids.row_starts() + at // LONGEST_ANSWER, 0)
        spans = tf.pad(spans.values, [[0, 1], [0, 0]])
        start, end = tf.gather(spans, first)[:, 0], tf.gather(spans, first + at % LONGEST_ANSWER)[:, 1]
        start, end = (tf.where(has_answer, tf.cast(each, tf.int32), 0) for each in (start, end))
        weight = tf.reduce_sum(tf.where(best > _NEVER / 2, tf.exp(best - top[:, None]), 0.0), 1)
        return {
            "answers": tf.strings.substr(texts[1], start, end - start, unit="UTF8_CHAR"),
            "starts": start,
            "ends": end,
            "probabilities": tf.math.divide_no_nan(1.0, weight),
            "truncated": is_cut,
        }

    def described(self):
        """See `EncoderSignatures`."""
        outputs = "`answers` string, `starts` and `ends` int32, `probabilities` float32, [batch]"
        return {"answers": f"parts of the contexts, of at most {LONGEST_ANSWER} pieces"}, outputs

    def _best(self, asked, ids, kept):
        """Returns how good each part of the contexts is as an answer, in the best window that has it.

        Args:
            asked, ids: int32 ragged [batch, (length)], questions and contexts.
            kept: int64 [batch], how many ids of each context are read.

        Returns:
            float32 [all ids of contexts, LONGEST_ANSWER], by a part's first id and by how many follow it; the sum of
            the logits of its first and its last position, below `_NEVER` / 2 where it can be none.
        """
        room = self._row - 2 - asked.row_lengths()
        last = tf.maximum(kept - room, 0)
        step = tf.minimum(room, self._stride)
        counts = 1 + (last + step - 1) // step
        row = tf.repeat(tf.range(tf.size(counts)), counts)  # of each window
        at = tf.range(tf.size(row, tf.int64)) - tf.gather(tf.cumsum(counts, exclusive=True), row)
        at = tf.minimum(at * tf.gather(step, row), tf.gather(last, row))
        lengths = tf.minimum(tf.gather(kept, row) - at, tf.gather(room, row))
        start = tf.gather(ids.row_starts(), row) + at
        places = tf.ragged.range(start, start + lengths)
        end, before = tf.fill([tf.size(row), 1], EOS_ID), tf.gather(asked, row)
        inputs = tf.concat([before, end, tf.gather(ids.values, places), end], 1).to_tensor()
        logits = self._logits(inputs)
        places = places.to_tensor(-1)
        width = tf.shape(places)[1]
        column = tf.cast(before.row_lengths(), tf.int32)[:, None] + 2 + tf.range(width)
        column = tf.minimum(column, tf.shape(logits)[2] - 1)
        first, final = (tf.gather(logits[:, side], column, batch_dims=1) for side in (0, 1))
        final = tf.pad(
            tf.where(places >= 0, final, 2 * _NEVER), [[0, 0], [0, LONGEST_ANSWER]], constant_values=2 * _NEVER
        )
        sums = first[:, :, None] + tf.stack([final[:, more : more + width] for more in range(LONGEST_ANSWER)], 2)
        sums, places = tf.reshape(sums, [-1, LONGEST_ANSWER]), tf.reshape(places, [-1])
        return tf.math.unsorted_segment_max(sums, places, tf.size(ids.values))

    def _logits(self, inputs):
        """int32 [windows, S] -> float32 [windows, 2, 1 + S], some windows at a time."""
        rows = tf.maximum(1, _POSITIONS // tf.maximum(tf.shape(inputs)[1], 1))
        shape = tf.TensorShape([None, 2, None])

        def some(at, found):
            return at + rows, tf.concat([found, self._predictor.probabilities(inputs[at : at + rows])], 0)

        _, found = tf.while_loop(
            lambda at, found: at < tf.shape(inputs)[0],
            some,
            (tf.constant(0), tf.zeros([0, 2, 1 + tf.shape(inputs)[1]])),
            shape_invariants=(tf.TensorShape([]), shape),
        )
        return found
