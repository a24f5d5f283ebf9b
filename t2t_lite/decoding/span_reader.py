"""What an encoder reads of a question and its context, and the parts of the context that may be the answer."""

import numpy as np

from t2t_lite.data.text_problems.span_problem import DOC_STRIDE, LONGEST_QUESTION, windows
from t2t_lite.decoding.predictions import Answer
from t2t_lite.decoding.text_readers import Reading, TextReader
from t2t_lite.evaluation.answers import LONGEST_ANSWER
from t2t_lite.text.beginnings import encode_beginning


class SpanReader(TextReader):
    """Answers to questions. Scores are logits of the first and of the last position, float32 [B, 2, 1 + S].

    A text is a tuple: a question and its context. A long context is read in windows, which overlap.
    """

    num_texts = 2

    def read(self, text, longest):
        """Returns the Reading of a question and its context; its source is the context and the windows."""
        question, context = self.texts(text)
        longest = min(longest, getattr(self.problem, "sequence_length", longest))
        found = windows(self.encoder, question, context, longest, getattr(self.problem, "doc_stride", DOC_STRIDE))
        truncated = len(encode_beginning(self.encoder, question, LONGEST_QUESTION)) > LONGEST_QUESTION
        return Reading([window.ids for window in found], truncated, (context, found))

    def scores(self, logits):
        """See `TextReader`."""
        return logits

    def answer(self, reading, scores, n_best):
        """Returns an `Answer`: first <= last, at most `LONGEST_ANSWER` pieces; of each part the best window counts."""
        context, found = reading.source
        size = found[-1].start + len(found[-1].spans)
        spans = np.zeros([size, 2], int)  # the characters of each piece
        best = np.full([size, LONGEST_ANSWER], -np.inf)  # by the first piece, and by how many more there are
        for window, (first, last) in zip(found, scores, strict=True):
            count, begin = len(window.spans), 1 + window.before
            spans[window.start : window.start + count] = window.spans or np.zeros([0, 2])
            first, last = (each[begin : begin + count].astype(float) for each in (first, last))
            for more in range(min(LONGEST_ANSWER, count)):
                of_window = best[window.start : window.start + count - more, more]
                np.maximum(of_window, first[: count - more] + last[more:], out=of_window)
        is_space = spans[:, 0] >= spans[:, 1]
        at_end = np.minimum(np.arange(size)[:, None] + np.arange(LONGEST_ANSWER), size - 1)
        best[is_space[:, None] | is_space[at_end]] = -np.inf
        weights = np.exp(best - best.max(initial=-np.finfo(float).max))
        hypotheses = {}
        for at in np.argsort(-weights, axis=None, kind="stable"):
            first, more = divmod(int(at), LONGEST_ANSWER)
            if len(hypotheses) == n_best or not weights[first, more]:
                break
            start, end = int(spans[first, 0]), int(spans[first + more, 1])
            probability = float(weights[first, more] / weights.sum())
            hypotheses.setdefault((start, end), Answer(context[start:end], start, end, probability))
        top = next(iter(hypotheses.values()), Answer("", 0, 0, 0.0))
        return Answer(top.text, top.start, top.end, top.probability, tuple(hypotheses.values()), reading.truncated)
