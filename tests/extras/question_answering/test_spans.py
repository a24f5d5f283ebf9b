"""Answers to questions: which part of a context is chosen, in however many windows the context is read."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data.problem import SpanProblem
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.errors import UserError
from t2t_lite.evaluation import answer_scores
from t2t_lite.export.encoder_signatures import EncoderSignatures
from t2t_lite.extras.question_answering.spans import LONGEST_ANSWER, Answer, SpansTask, best_spans, part_scores
from t2t_lite.extras.question_answering.windows import PositionEncoder, windows
from t2t_lite.text.vocabulary import ByteTextEncoder, TextEncoder
from tests.extras.question_answering.squads import squad

FIRST, LAST = 42, 43  # the ids of 40 and 41, and of these the model is sure
WORDS = " ".join(map(str, range(10, 40)))


def sure(batch, training):
    logits = tf.stack([4.0 * tf.cast(batch["inputs"] == i, tf.float32) for i in (FIRST, LAST)], 1)
    return tf.pad(logits, [[0, 0], [0, 0], [1, 0]])


def of_ids(batch, training):
    """Logits without meaning, which depend on the ids alone."""
    logits = tf.stack([tf.math.sin(k * tf.cast(batch["inputs"], tf.float32)) for k in (3, 7)], 1)
    return tf.pad(logits, [[0, 0], [0, 0], [1, 0]])


def of_windows(batch, training):
    """The same, and of the sum of a row's ids."""
    ids = tf.cast(batch["inputs"], tf.float32)
    logits = tf.stack([tf.math.sin(k * (ids + tf.reduce_sum(ids, -1, keepdims=True))) for k in (3, 7)], 1)
    return tf.pad(logits, [[0, 0], [0, 0], [1, 0]])


def test_what_the_task_declares():
    assert SpanProblem().eval_metrics() == ["exact_match", "squad_f1"] == [*SpansTask.metrics]
    assert (SpansTask.head, SpansTask.problems, SpansTask.num_texts) == ("span", ("qa_own",), 2)
    assert (SpansTask.inputs, SpansTask.output) == (("question", "context"), "answers")


class Questions(SpanProblem):
    def __init__(self, longest, stride):
        super().__init__()
        self.sequence_length, self.doc_stride = longest, stride


def predictor(model, longest=383, stride=128, encoder=None):
    encoders = {"inputs": encoder or TextEncoder(50), "targets": PositionEncoder(longest)}
    return Predictor(model, encoders, Questions(longest, stride))


def span_scores(logits, inputs):
    """Returns float [T, T], the score of each part of the context of one row, by positions counted from 0."""
    (first, last), (ids,) = logits[0].numpy()[:, 1:], inputs.numpy()
    begin, end = np.flatnonzero(ids == 1)[:2]
    scores = np.full([len(ids)] * 2, -np.inf)
    for at in range(begin + 1, end):
        for to in range(at, min(end, at + LONGEST_ANSWER)):
            scores[at, to] = first[at] + last[to]
    return scores


def test_scores_of_parts_are_those_of_their_best_row():
    """Against sums in a loop, of rows that overlap and of ids that stand for white space."""
    inputs = tf.constant([[5, 6, 1, *[7] * 40, 1, 0], [5, 1, 8, 9, 1, *[0] * 40], [1, 7, 7, 1, *[0] * 41]])
    logits = tf.random.stateless_normal([3, 2, 46], [1, 2])
    places, size = [2, 0, 40], 44
    expected = np.full([size, LONGEST_ANSWER], -1e9)
    for row, place in enumerate(places):
        scores = span_scores(logits[row : row + 1], inputs[row : row + 1])
        begin = np.flatnonzero(inputs[row] == 1)[0] + 1
        for first, last in zip(*np.nonzero(np.isfinite(scores)), strict=True):
            cell = place + first - begin, last - first
            expected[cell] = max(expected[cell], scores[first, last])
    assert (expected > -100).sum() == 30 * 11 + 29 * 30 // 2 + 3
    np.testing.assert_allclose(part_scores(logits, inputs, places, size), expected, rtol=1e-6)
    spans = np.array([(at, at + (at != 3)) for at in range(size)])
    expected[3], expected[np.arange(4), 3 - np.arange(4)] = -1e9, -1e9
    np.testing.assert_allclose(part_scores(logits, inputs, places, size, spans), expected, rtol=1e-6)


@pytest.mark.few("0-9-1", "1-12-4", "17-383-128", "17-9-1", "30-8-100", "30-12-4")
@pytest.mark.parametrize("longest, stride", [(383, 128), (12, 4), (9, 1), (8, 100)])
@pytest.mark.parametrize("place", [0, 1, 17, 30])
def test_the_answer_does_not_depend_on_the_windows(longest, stride, place):
    words = WORDS.split()
    context = "  ".join([*words[:place], "40", "7", "41", *words[place:]])
    (found,) = predictor(sure, longest, stride).predict([("40 3", context)])
    assert (found.text, context[found.start : found.end]) == ("40  7  41",) * 2
    assert found.hypotheses[0].text == found.text and not found.truncated
    probabilities = [one.probability for one in found.hypotheses]
    assert probabilities == sorted(probabilities, reverse=True)


def test_of_one_window_it_is_what_evaluations_choose():
    made = predictor(of_ids)
    question, context = "1 2 3", WORDS
    (reading,) = [made.read((question, context))]
    inputs = tf.constant(reading.rows)
    logits = of_ids({"inputs": inputs}, training=False)
    first, last = best_spans(logits, inputs)[0].numpy() - 1 - 4  # after the question and its end
    (found,) = made.predict([(question, context)], n_best=1000)
    assert found.text == " ".join(context.split()[first : last + 1])
    assert sum(one.probability for one in found.hypotheses) == pytest.approx(1)
    scores = span_scores(logits, inputs)
    expected = np.exp(scores[scores > -100])
    assert [one.probability for one in found.hypotheses] == pytest.approx(sorted(expected / expected.sum())[::-1])


@pytest.mark.parametrize("encoder", [TextEncoder(50), ByteTextEncoder()], ids=["numbers", "characters"])
def test_each_part_of_a_context_counts_in_its_best_window(encoder):
    """Against every span of every window, with logits that differ between windows; none begins or ends in a space."""
    made = predictor(of_windows, longest=14, stride=3, encoder=encoder)
    context = "1 22 3 14 5 6  17 8 9 10 11 12 13 4"
    expected = {}
    for window in windows(encoder, "1 2", context, 14, 3):
        inputs = tf.constant([window.ids])
        scores = span_scores(of_windows({"inputs": inputs}, False), inputs)
        for first, last in zip(*np.nonzero(scores > -100), strict=True):
            pieces = window.spans[first - window.before], window.spans[last - window.before]
            if all(a < b for a, b in pieces):
                key = pieces[0][0], pieces[1][1]
                expected[key] = max(expected.get(key, -np.inf), scores[first, last])
    (found,) = made.predict([("1 2", context)], n_best=1000)
    total = sum(map(np.exp, expected.values()))
    probabilities = {(one.start, one.end): one.probability for one in found.hypotheses}
    assert probabilities == pytest.approx({key: np.exp(score) / total for key, score in expected.items()})
    assert all(one.text and one.text == one.text.strip() for one in found.hypotheses)


@pytest.mark.parametrize("pieces, is_answer", [(30, True), (31, False)])
def test_an_answer_has_thirty_pieces_at_most(pieces, is_answer):
    """As in BERT's run_squad.py."""
    context = " ".join(["40", *["7"] * (pieces - 2), "41"])
    made = predictor(sure)
    (found,) = made.predict([("1", context)])
    assert (found.text == context) == is_answer
    inputs = tf.constant(made.read(("1", context)).rows)
    first, last = best_spans(sure({"inputs": inputs}, training=False), inputs)[0].numpy()
    assert (last - first == pieces - 1) == is_answer


def test_questions_that_are_too_long_and_contexts_without_a_word():
    made = predictor(sure)
    long, blank = made.predict([("1 " * 65, "40 41"), ("1", "")])
    assert long.truncated and long.text == "40 41"
    assert (blank.text, blank.start, blank.end, blank.hypotheses) == ("", 0, 0, ())
    with pytest.raises(UserError, match=r"^text 1: 1 text\. Expected 2"):
        made.predict(["1"])
    with pytest.raises(UserError, match=r"^text 1: .* leave no room"):
        predictor(sure, longest=5).predict([("1 2 3", "4 5")])


@pytest.mark.parametrize("longest", [14, 17, 2048])
def test_an_export_answers_as_a_predictor(longest):
    """Contexts of one window and of several, of no room, blank ones, and what is truncated."""
    made = predictor(of_windows, longest=14, stride=3, encoder=ByteTextEncoder())
    asked = [("1 2", "abc de  fgé hijk lmn"), ("?", "a"), ("?", ""), ("x" * 12, "a bc d"), ("", " b  c ")]
    columns = [tf.constant(column) for column in zip(*asked, strict=True)]
    found = EncoderSignatures(made, longest).predict(*columns)
    for number, (question, context) in enumerate(asked):
        question, most = question[:11], longest - 2 - len(question[:11].encode())
        read = context.encode()[: max(most, 0)].decode(errors="ignore")
        (answer,) = made.predict([(question, read)]) if read.strip() else [Answer("", 0, 0, 0.0)]
        assert found["answers"][number].numpy().decode() == answer.text
        assert (found["starts"][number], found["ends"][number]) == (answer.start, answer.end)
        assert found["probabilities"][number].numpy() == pytest.approx(answer.probability, rel=1e-4)
        is_cut = len(context.encode()) > most or len(asked[number][0]) > 11
        assert bool(found["truncated"][number]) == is_cut, (question, context)


def test_what_exports_refuse():
    with pytest.raises(UserError, match=r"SavedModel.*TextEncoder"):
        EncoderSignatures(predictor(sure), None)
    made = predictor(sure, encoder=ByteTextEncoder())
    for length in (66, 2**16 + 1):
        with pytest.raises(UserError, match=rf"max_input_length={length}.* 67 to 65,536"):
            EncoderSignatures(made, length)
    assert EncoderSignatures(made, None).max_input_length == 2048


def test_files_of_questions_and_answers(tmp_path, caplog):
    asked = [("1", "Where?", [(16, "London"), (22, ".")]), ("2", "Who?", [(0, "Ada")]), ("3", "Why?", [(4, "was")])]
    (tmp_path / "a.json").write_text(squad(*asked))
    (tmp_path / "b.json").write_text(squad())
    reader = SpansTask.file_reader("json", None, None)
    context = json.loads(squad())["data"][0]["paragraphs"][0]["context"]
    assert SpansTask.file_reader("txt", None, None) is None
    assert reader(str(tmp_path / "a.json"))[1] == {"id": "2", "question": "Who?", "context": context}
    with pytest.raises(UserError, match=r"b\.json: has no question"):
        reader(str(tmp_path / "b.json"))
    reference = answer_scores.read_reference(str(tmp_path / "a.json"), "spans")
    assert (reference.answers, reference.keys) == ([["London", "."], ["Ada"], ["was"]], ["1", "2", "3"])
    (tmp_path / "c").write_text(json.dumps({"2": "she", "1": "London", "9": "x"}))
    assert answer_scores.read_predictions(str(tmp_path / "c"), reference) == ["London", "she", ""]
    assert re.search(r"/c: lacks .* 1 of 3 questions, such as '3'", caplog.text)
    (tmp_path / "c").write_text('{"3": "", "2": "she", "1": "London"}')
    assert answer_scores.read_predictions(str(tmp_path / "c"), reference) == ["London", "she", ""]
    assert caplog.text.count("\n") == 1
    (tmp_path / "c").write_text('{"9": "x"}')
    with pytest.raises(UserError, match=r"/c: .* any question in .*/a\.json"):
        answer_scores.read_predictions(str(tmp_path / "c"), reference)
    (tmp_path / "c").write_text(squad(("1", "?", [])))
    with pytest.raises(UserError, match="/c"):
        answer_scores.read_predictions(str(tmp_path / "c"), reference)


def test_what_is_compared_and_shown():
    task = predictor(sure).task
    assert task.compared(np.array([5, 1, 7, 8, 9, 1]), (4, 5), (3, 4)) == ["5 6", "6 7"]
    answer = Answer("a\tb", 0, 3, 0.25, (Answer("a\tb", 0, 3, 0.25), Answer("b", 2, 3, 0.125)))
    assert SpansTask.as_line(answer) == "a b\t0.250000"
    assert SpansTask.shown(answer) == ("a\tb", [[("a\tb", 0.25), ("b", 0.125)]])
