"""The task `spans`: finds the answer to a question in its context."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.corpora.plain_text import as_field
from t2t_lite.errors import LOGGER, UserError, counted, shown
from t2t_lite.evaluation import answer_scores
from t2t_lite.evaluation.score_files import read_lines
from t2t_lite.extras.question_answering.offsets_graph import encode_with_offsets, has_offsets
from t2t_lite.extras.question_answering.squad import SPAN_METRICS, read_squad
from t2t_lite.extras.question_answering.windows import DOC_STRIDE, LONGEST_QUESTION, windows
from t2t_lite.files.safe_json import parse_json
from t2t_lite.settings.ranges import Range, typed_value
from t2t_lite.tasks.encoder_task import EncoderTask, Reading, by_rows
from t2t_lite.text.reading_graph import beginnings, longest_input, texts_spec, valid
from t2t_lite.text.rows import encode_beginning
from t2t_lite.text.vocabulary import EOS_ID

LONGEST_ANSWER = 30  # maximum number of pieces in an answer; the value is that of BERT's run_squad.py
NEVER = -1e9  # score of spans that cannot be an answer
_LONGEST = 2048  # maximum number of ids in a question plus its context, the default for exports
_MOST = 2**16


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to a question: a part of its context.

    Attributes:
        text: str, context[start:end].
        start, end: int, character offsets in the context.
        probability: float, relative to all parts of the context that could be the answer.
        hypotheses: tuple of `Answer` objects without hypotheses of their own, best first; the first is this answer.
        truncated: bool, whether the question was truncated because it was too long for the model. The context is always
            read to its end.
    """

    text: str
    start: int
    end: int
    probability: float
    hypotheses: tuple["Answer", ...] = ()
    truncated: bool = False


def part_scores(logits, inputs, places, size, spans=None):
    """Scores each part of the contexts as an answer, using the best row that contains the part; works in a graph.

    Args:
        logits: float32 [rows, 2, 1 + width], for the first and the last position of the answer, counted from 1.
        inputs: int32 [rows, width], padded with 0; each row has a question and a part of its context, both ending in 1.
        places: int [rows], the index of each row's first context id among the ids of all contexts.
        size: int scalar, the number of ids in all contexts.
        spans: int [size, 2], the characters that each id of the contexts stands for, or None if they are unknown.
            Answers neither begin nor end with an id that stands for no character.

    Returns:
        float32 [size, LONGEST_ANSWER]: entry [i, n] scores the part that begins at id i and continues for n more ids.
        The score is the sum of the logits for the part's first and last position, or `NEVER` if no row contains the
        part.
    """
    ends = tf.cast(inputs == EOS_ID, tf.int32)
    is_context = (tf.cumsum(ends, axis=1) == 1) & (inputs != EOS_ID) & (inputs != 0)
    width = tf.shape(inputs)[1]
    first, last = tf.unstack(tf.where(is_context[:, None], logits[:, :, 1:], NEVER), axis=1)
    last = tf.pad(last, [[0, 0], [0, LONGEST_ANSWER - 1]], constant_values=NEVER)
    sums = first[:, :, None] + tf.stack([last[:, more : more + width] for more in range(LONGEST_ANSWER)], 2)
    at = tf.cast(places, tf.int32)[:, None] + tf.range(width) - _begins(inputs)[:, None]
    at = tf.where(is_context, at, -1)  # the segment maximum below ignores the index -1
    best = tf.math.unsorted_segment_max(tf.reshape(sums, [-1, LONGEST_ANSWER]), tf.reshape(at, [-1]), size)
    may_be = best > NEVER / 2
    if spans is not None:
        is_space = spans[:, 0] >= spans[:, 1]
        final = tf.minimum(tf.range(size)[:, None] + tf.range(LONGEST_ANSWER), size - 1)
        may_be &= ~(is_space[:, None] | tf.gather(is_space, final))
    return tf.where(may_be, best, NEVER)


def _begins(inputs):
    """Returns the position of each row's first context id, counted from 0, int32 [rows]."""
    is_question = tf.cumsum(tf.cast(inputs == EOS_ID, tf.int32), axis=1) == 0
    return 1 + tf.reduce_sum(tf.cast(is_question, tf.int32), 1)


def best_spans(logits, inputs):
    """Returns the first and last position of the best answer in each row, counted from 1, int32 [rows, 2]."""
    rows, width = tf.unstack(tf.shape(inputs))
    scores = part_scores(logits, inputs, width * tf.range(rows) + _begins(inputs), rows * width)
    best = tf.argmax(tf.reshape(scores, [rows, width * LONGEST_ANSWER]), axis=-1, output_type=tf.int32)
    first, more = best // LONGEST_ANSWER, best % LONGEST_ANSWER
    return 1 + tf.stack([first, first + more], axis=-1)


@registry.register_task("spans")
class SpansTask(EncoderTask):
    """Answers questions about a context by selecting a span of the context.

    A text is a tuple of a question and its context. A long context is read in overlapping windows. `scores` are logits
    for the first and the last position of the answer, float32 [rows, 2, 1 + S].
    """

    eval_metrics = ("exact_match", "squad_f1")
    head = "span"
    problems = ("qa_own",)
    metrics = SPAN_METRICS
    num_texts = 2
    has_hypotheses = True
    long_input = ("split",)
    columns = ()
    unit = "question"
    hub_task, export_name, output = "question-answering", "answer", "answers"
    inputs = ("question", "context")

    def _row(self, longest):
        """Returns the maximum length of a row in ids."""
        return min(longest, getattr(self.problem, "sequence_length", longest))

    @property
    def _stride(self):
        return getattr(self.problem, "doc_stride", DOC_STRIDE)

    def read(self, text, longest):
        """Returns the Reading of a question and its context; the reading's source is (context, windows)."""
        question, context = self.texts(text)
        parts = windows(self.encoder, question, context, self._row(longest), self._stride)
        truncated = len(encode_beginning(self.encoder, question, LONGEST_QUESTION)) > LONGEST_QUESTION
        return Reading([window.ids for window in parts], truncated, (context, parts))

    def scores(self, logits):
        """Returns the logits unchanged: see `EncoderTask`."""
        return logits

    def answer(self, reading, scores, n_best):
        """Returns an `Answer`; each part of the context is scored by the best window that contains it."""
        context, parts = reading.source
        size = parts[-1].start + len(parts[-1].spans)
        spans = np.zeros([size, 2], np.int32)  # character offsets of each piece
        width = max(len(row) for row in reading.rows)
        logits, inputs = np.zeros([len(parts), 2, 1 + width], np.float32), np.zeros([len(parts), width], np.int32)
        for at, (window, window_scores) in enumerate(zip(parts, scores, strict=True)):
            spans[window.start : window.start + len(window.spans)] = window.spans or np.zeros([0, 2])
            inputs[at, : len(window.ids)] = window.ids
            logits[at, :, : 1 + len(window.ids)] = window_scores[:, : 1 + len(window.ids)]
        best = self._part_scores(logits, inputs, [window.start for window in parts], size, spans).numpy().astype(float)
        best[best == NEVER] = -np.inf
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

    @functools.cached_property
    def _part_scores(self):
        signature = [tf.TensorSpec([None, 2, None]), tf.TensorSpec([None, None], tf.int32)]
        signature += [tf.TensorSpec(shape, tf.int32) for shape in ([None], [], [None, 2])]
        return tf.function(part_scores, input_signature=signature, autograph=False)

    def choose(self, logits, inputs):
        """Chooses the first and last position of the answer: see `EncoderTask`."""
        return best_spans(logits, inputs)

    def compared(self, inputs, targets, chosen):
        """Returns the chosen and the expected answer as texts: see `EncoderTask`."""
        decode = self.encoders["inputs"].decode
        return [decode(inputs[first - 1 : last].tolist()) for first, last in (chosen, targets)]

    @staticmethod
    def as_line(answer):
        """Returns the answer and its probability, separated by a tab."""
        return f"{as_field(answer.text)}\t{answer.probability:.6f}"

    @classmethod
    def shown(cls, answer):
        """Returns the answer and its hypotheses with their probabilities: see `EncoderTask`."""
        return answer.text, [[(one.text, one.probability) for one in answer.hypotheses]]

    @classmethod
    def file_reader(cls, ending, problem, folder):
        """Returns the reader for questions in SQuAD's format (.json): see `EncoderTask`."""
        return _questions if ending == "json" else None

    @classmethod
    def references(cls, path, layout):
        """Reads one or more gold answers per question, and question ids as keys: see `EncoderTask`."""
        questions = list(read_squad(path))
        # As in the official scores, "" is the right answer to a question that has no answer (SQuAD 2.0).
        golds = [[question.context[start:end] for start, end in question.answers] or [""] for question in questions]
        return golds, [question.id for question in questions]

    @classmethod
    def predictions(cls, path, reference):
        """Reads a JSON object {id: answer}, in which missing answers count as wrong: see `EncoderTask`."""
        answers = parse_json("\n".join(read_lines(path)), path, schema={str: str})
        missing = [key for key in reference.keys if key not in answers]
        if len(missing) == len(reference.keys):
            raise UserError(f"{path}: does not answer any question in {reference.path}. Expected {{id: answer, …}}.")
        if missing:
            LOGGER.warning(
                f"{path}: lacks answers to {len(missing):,} of {counted(len(reference.keys), 'question')}, such as "
                f"{shown(missing[0])}. Missing answers count as wrong."
            )
        ordered = [answers.get(key, "") for key in reference.keys]
        answer_scores.warn_of_forms(path, ordered, [next(iter(golds), "") for golds in reference.answers])
        return ordered

    def export_length(self, max_input_length, most):
        """Returns the limit on the ids of a question plus its whole context, 2,048 by default: see `EncoderTask`."""
        if not has_offsets(self.encoder):
            raise UserError(
                f"A SavedModel cannot compute character offsets with a {type(self.encoder).__name__}. Expected "
                "SentencePiece, byte-level BPE, WordPiece or bytes; or answer questions in Python with t2t_lite.load."
            )
        limit = _LONGEST if max_input_length is None else max_input_length
        return typed_value("max_input_length", limit, int, Range(min(LONGEST_QUESTION, self._row(most) - 3) + 3, _MOST))

    @functools.cached_property
    def _encode_with_offsets(self):
        # Traced only once, because the function contains the whole vocabulary file as a constant.
        encode = functools.partial(encode_with_offsets, self.encoder)
        return tf.function(encode, input_signature=[texts_spec()], autograph=False)

    def encode_texts(self, texts):
        """Encodes texts in a graph: see `EncoderTask`."""
        return self._encode_with_offsets(valid(texts))[0]

    def features_length(self, longest, most):
        """Returns the maximum length of a row: see `EncoderTask`."""
        return longest_input(None, most)

    def answers(self, predictor, texts, longest):
        """Answers questions in a graph: see `EncoderTask`.

        Returns:
            {"answers": string, parts of the contexts; "starts" and "ends": int32, their character offsets;
            "probabilities": float32, relative to all parts that could be the answer; "truncated": bool, whether the
            question or the context was truncated}, all [batch]. An answer has at most 30 pieces; the answer from an
            empty context is "".
        """
        row = self._row(predictor.max_input_length)
        longest_question = min(LONGEST_QUESTION, row - 3)
        (question, is_cut), (context, is_context_cut) = (
            beginnings(valid(one), most, strips=False)  # spaces are not stripped, because offsets count them
            for one, most in zip(texts, (longest_question, longest), strict=True)
        )
        count = tf.size(question)
        ids, starts, ends = self._encode_with_offsets(tf.concat([question, context], 0))
        spans = ids.with_values(tf.stack([starts, ends], 1))[count:].values
        questions, ids = ids[:count], ids[count:]
        is_cut |= is_context_cut | (questions.row_lengths() > longest_question)
        questions = questions[:, :longest_question]
        context_lengths = tf.minimum(ids.row_lengths(), longest - 2 - questions.row_lengths())
        inputs, places = _windows(questions, ids, context_lengths, row, self._stride)
        logits = by_rows(predictor.probabilities, inputs)
        best = part_scores(logits, inputs, places, tf.size(ids.values), spans)
        best = ids.with_values(best).to_tensor(NEVER, shape=[None, None, LONGEST_ANSWER])
        best = tf.reshape(best, [count, LONGEST_ANSWER * tf.shape(best)[1]])
        best = tf.pad(best, [[0, 0], [0, 1]], constant_values=NEVER)
        at = tf.argmax(best, 1)
        top = tf.gather(best, at, batch_dims=1)
        has_answer = top > NEVER
        first = tf.where(has_answer, ids.row_starts() + at // LONGEST_ANSWER, 0)
        spans = tf.pad(spans, [[0, 1], [0, 0]])
        start, end = tf.gather(spans, first)[:, 0], tf.gather(spans, first + at % LONGEST_ANSWER)[:, 1]
        start, end = (tf.where(has_answer, tf.cast(each, tf.int32), 0) for each in (start, end))
        weight = tf.reduce_sum(tf.where(best > NEVER, tf.exp(best - top[:, None]), 0.0), 1)
        return {
            "answers": tf.strings.substr(context, start, end - start, unit="UTF8_CHAR"),
            "starts": start,
            "ends": end,
            "probabilities": tf.math.divide_no_nan(1.0, weight),
            "truncated": is_cut | (context_lengths < ids.row_lengths()),
        }

    def card(self):
        """Describes the outputs of an export for its model card: see `EncoderTask`."""
        outputs = "`answers` string, `starts` and `ends` int32, `probabilities` float32, [batch]"
        return {"answers": f"parts of the contexts with at most {LONGEST_ANSWER} pieces"}, outputs


def _questions(path):
    examples = read_squad(path, with_answers=False)
    lines = [{"id": one.id, "question": one.question, "context": one.context} for one in examples]
    if not lines:
        raise UserError(f"{path}: has no questions. Expected at least one.")
    return lines


def _windows(questions, ids, context_lengths, row, stride):
    """Splits questions and contexts into rows, like `windows.windows`, but in a graph.

    Args:
        questions, ids: int32 ragged [batch, (length)], questions and contexts.
        context_lengths: int64 [batch], the number of ids that are read from each context.
        row: int, maximum length of a row in ids.
        stride: int, number of ids from the start of one window to the start of the next.

    Returns:
        (rows, starts): rows is int32 [windows, width]; starts, int64 [windows], is the index in `ids.values` at which
        each row's part of the context begins.
    """
    room = row - 2 - questions.row_lengths()
    last = tf.maximum(context_lengths - room, 0)
    step = tf.minimum(room, stride)
    counts = 1 + (last + step - 1) // step
    owner = tf.repeat(tf.range(tf.size(counts)), counts)  # index of each window's text
    at = tf.range(tf.size(owner, tf.int64)) - tf.gather(tf.cumsum(counts, exclusive=True), owner)
    at = tf.minimum(at * tf.gather(step, owner), tf.gather(last, owner))
    lengths = tf.minimum(tf.gather(context_lengths, owner) - at, tf.gather(room, owner))
    start = tf.gather(ids.row_starts(), owner) + at
    end = tf.fill([tf.size(owner), 1], EOS_ID)
    context = tf.gather(ids.values, tf.ragged.range(start, start + lengths))
    return tf.concat([tf.gather(questions, owner), end, context, end], 1).to_tensor(), start
