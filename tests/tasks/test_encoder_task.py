"""What encoders read of texts, and what tasks say of their outputs unless a task says otherwise."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.tasks import encoder_task
from t2t_lite.tasks.classification import ClassificationTask
from t2t_lite.tasks.encoder_task import EncoderTask, Reading, by_rows
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from tests.tasks.stubs import Texts, Words


def task(num_texts=1):
    encoders = {"inputs": Words(), "targets": ClassLabelEncoder(["a", "b", "c"])}
    return ClassificationTask(Texts("classification", num_texts), encoders)


def test_a_row_has_texts_that_each_end_in_1():
    assert task().read("the red house", 9) == Reading([[7, 4, 6, 1]])
    assert task().read("the red house", 4) == Reading([[7, 4, 6, 1]])
    assert task().read("the red house", 3) == Reading([[7, 4, 1]], truncated=True)
    pair = task(2)
    assert pair.read(("the red house", "green"), 6) == Reading([[7, 4, 6, 1, 5, 1]])
    assert pair.read(("the red house", "green"), 5) == Reading([[7, 4, 1, 5, 1]], truncated=True)
    assert len(Reading([[7, 4, 1], [5, 1]])) == 5


@pytest.mark.parametrize(
    "text, found, expected", [(("a", "b"), "2 texts", 1), ("a", "1 text", 2), (("a",) * 3, "3", 2)]
)
def test_another_number_of_texts_is_refused(text, found, expected):
    with pytest.raises(UserError, match=rf"^{found}.*{expected}.*texts"):
        task(expected).read(text, 9)


def test_answers_are_json_and_truncated_only_where_it_is_so():
    @dataclasses.dataclass
    class Answer:
        label: str
        truncated: bool = False

    assert EncoderTask.as_json(Answer("a")) == {"label": "a"}
    assert EncoderTask.as_json(Answer("a", True)) == {"label": "a", "truncated": True}
    assert EncoderTask.as_line(Answer("a")) is None and EncoderTask.as_label("a") == "a"


@pytest.mark.parametrize("num_texts, least", [(1, 1), (2, 3)])
def test_the_length_of_an_exports_inputs(num_texts, least):
    """Each text of a pair needs its end, and one id."""
    own = task(num_texts)
    assert own.inputs == (("inputs",) if num_texts == 1 else ("first", "second"))
    assert own.export_length(least, 9) == least and own.export_length(9, 9) == 9
    for length in (least - 1, 10):
        with pytest.raises(UserError, match=rf"max_input_length={length}: .*from {least} to 9"):
            own.export_length(length, 9)
    assert own.features_length(7, 9) == 7 and own.export_settings() == {} and own.warmup_text(b"x") == b"x"


def test_rows_are_computed_some_at_a_time(monkeypatch):
    monkeypatch.setattr(encoder_task, "_POSITIONS", 14)
    sizes = []

    def sums(ids):
        tf.py_function(lambda rows: sizes.append(int(rows)), [tf.shape(ids)[0]], [])
        return tf.cast(tf.reduce_sum(ids, 1, keepdims=True), tf.float32)

    ids = np.arange(35).reshape(7, 5).astype("int32")
    found = tf.function(lambda ids: by_rows(sums, ids))(tf.constant(ids))
    assert found.numpy().tolist() == ids.sum(1, keepdims=True).tolist() and sizes == [2, 2, 2, 1]
    assert by_rows(sums, tf.zeros([3, 0], tf.int32)).numpy().tolist() == [[0.0]] * 3
