"""What logits mean as classes and as numbers: answers, comparisons, lines of files and outputs of exports."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.evaluation.answer_scores import Reference
from t2t_lite.tasks.classification import ClassificationTask, Prediction, RegressionTask, Value
from t2t_lite.tasks.encoder_task import Reading
from t2t_lite.text.class_label_encoder import ClassLabelEncoder, RealEncoder
from tests.tasks.stubs import Texts, Words

CLASSES = ClassificationTask(
    Texts("classification"), {"inputs": Words(), "targets": ClassLabelEncoder(["red", "green", "blue"])}
)
NUMBERS = RegressionTask(Texts("regression"), {"inputs": Words(), "targets": RealEncoder(-2, 8)})
# Of two rows: id 0, whose logit is never looked at, and three classes with odds 1 : 2 : 5 and 7 : 2 : 1.
LOGITS = np.log([[900, 1, 2, 5], [900, 7, 2, 1]]).astype("float32")
READING = Reading([[4, 1]], truncated=True)


def test_probabilities_leave_out_the_id_of_padding():
    scores = CLASSES.scores(tf.constant(LOGITS))
    np.testing.assert_allclose(scores, [[1 / 8, 2 / 8, 5 / 8], [0.7, 0.2, 0.1]], rtol=1e-5)
    np.testing.assert_array_equal(CLASSES.scores(tf.constant(LOGITS[:, None])), scores)  # [rows, 1, labels]
    assert CLASSES.choose(tf.constant(LOGITS), None).numpy().tolist() == [3, 1]
    outputs = CLASSES.outputs(scores)
    assert outputs["labels"].numpy().tolist() == [b"blue", b"red"] and outputs["probabilities"] is scores


def test_the_answer_is_the_most_probable_class():
    answer = CLASSES.answer(READING, [np.array([0.125, 0.25, 0.625])], 2)
    assert answer == Prediction("blue", {"red": 0.125, "green": 0.25, "blue": 0.625}, truncated=True)
    assert CLASSES.as_line(answer) == "blue\t0.625000"
    assert CLASSES.as_json(answer)["truncated"] is True
    assert CLASSES.shown(answer) == ("blue", [[("blue", 0.625), ("green", 0.25), ("red", 0.125)]])
    assert CLASSES.compared(None, np.array(1), np.array(3)) == ["blue", "red"]  # chosen, expected
    assert CLASSES.as_line(Prediction("a\tb", {"a\tb": 1.0})).count("\t") == 1
    titles, outputs = CLASSES.card()
    assert titles == {"classes": "red, green, blue"} and "[batch, 3]" in outputs


def test_predictions_need_the_labels_of_the_references(tmp_path):
    reference = Reference("classification", "references.tsv", ["red", "green", "red"], [])
    (tmp_path / "predicted.tsv").write_text("blue\t0.5\nred\t0.7\nred\t0.9\n")
    assert CLASSES.predictions(str(tmp_path / "predicted.tsv"), reference) == ["blue", "red", "red"]
    (tmp_path / "predicted.tsv").write_text("0.5\n0.7\n0.9\n")
    with pytest.raises(UserError, match=r"predicted\.tsv: .*references\.tsv.*'red'"):
        CLASSES.predictions(str(tmp_path / "predicted.tsv"), reference)


def test_numbers_are_places_in_the_range_of_the_training_files():
    """From -2 to 8: 0.3 of the way is 1."""
    places = tf.constant([[0.3], [1.1]])
    assert NUMBERS.scores(places) is places
    np.testing.assert_allclose(NUMBERS.choose(places, None), [0.3, 1.1])
    np.testing.assert_allclose(NUMBERS.outputs(places)["values"], [1, 9], rtol=1e-5)
    answer = NUMBERS.answer(READING, [np.array([0.3])], 1)
    assert answer == Value(pytest.approx(1), truncated=True) and NUMBERS.as_line(answer) == "1"
    assert NUMBERS.as_line(Value(1.23456789)) == "1.23457"
    labels = NUMBERS.fit_labels({"targets": tf.constant([1, 2**16, 2**15])}, ["inputs"])
    np.testing.assert_allclose(labels, [0, 1, (2**15 - 1) / (2**16 - 1)], rtol=1e-6)
    found = NUMBERS.compared(None, np.array(2**16), np.array(0.3, "float32"))
    np.testing.assert_allclose(found, [1, 8], rtol=1e-5)  # chosen, expected
    assert NUMBERS.card() == ({"numbers": "-2 to 8 in training"}, "`values` float32 [batch]")
    assert NUMBERS.as_label("1.5") == 1.5 and NUMBERS.as_label("x") is None


@pytest.mark.parametrize(
    ("task", "line", "is_labelled"),
    [
        (CLASSES, "red\ta text", True), (CLASSES, "red", False), (CLASSES, "reddish\ta text", False),
        (NUMBERS, "-1.5\ta text", True), (NUMBERS, "1.5", False), (NUMBERS, "red\ta text", False),
    ],
)  # fmt: skip
def test_lines_of_labelled_files(task, line, is_labelled):
    assert task.is_labelled(line) == is_labelled
