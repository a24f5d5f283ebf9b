"""What a Predictor makes of a model's logits, with a model that is written by hand."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data.problem import Problem
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.errors import UserError
from t2t_lite.text.vocabulary import TextEncoder

LABELS = ["even", "odd", "none"]


class Labels:
    vocab_size = 1 + len(LABELS)

    def decode(self, ids):
        (label,) = ids
        return LABELS[label - 1]


class Parity:
    """Sure of "odd" or "even" by the sum of the ids that are not padding, EOS included; thinks most of id 0."""

    max_length = 8

    def __init__(self, shape=(-1, 1, Labels.vocab_size), named=False):
        self.shape, self.named = shape, named

    def __call__(self, batch, training):
        assert not training
        odd = tf.cast(tf.reduce_sum(batch["inputs"], -1) % 2, tf.float32)
        zero = tf.zeros_like(odd)
        logits = tf.reshape(tf.stack([zero + 9, 4 * (1 - odd), 4 * odd, zero], -1), self.shape)
        return {"targets": logits, "costs": {"targets": zero}} if self.named else logits


def predictor(model=None):
    return Predictor(model or Parity(), {"inputs": TextEncoder(50), "targets": Labels()}, Problem())


def test_classes_come_with_their_probabilities_in_the_order_of_the_texts():
    texts = ["3 4 5 6", "", "7", "8 1"]  # ids: the numbers and 2 each, and EOS
    found = predictor().predict(texts, batch_size=2)
    assert [p.label for p in found] == ["odd", "odd", "even", "even"]
    sure = np.exp(4) / (np.exp(4) + 2)
    for prediction in found:
        assert list(prediction.probabilities) == LABELS
        assert sum(prediction.probabilities.values()) == pytest.approx(1)
        assert prediction.probabilities[prediction.label] == pytest.approx(sure)
        assert not prediction.truncated
    assert found == [predictor().predict([text])[0] for text in texts], "neighbours do not matter"


@pytest.mark.parametrize("model", [Parity((-1, Labels.vocab_size)), Parity(named=True)], ids=["rank 2", "named"])
def test_logits_may_have_any_documented_form(model):
    assert predictor(model).predict(["7", "8"]) == predictor().predict(["7", "8"])


def test_a_text_beyond_the_models_length_is_truncated():
    whole, cut = predictor().predict(["1 1 1 1 1 1 1", "1 1 1 1 1 1 1 2"])
    assert (whole.truncated, cut.truncated) == (False, True)
    assert whole.probabilities == cut.probabilities


def test_mistakes():
    with pytest.raises(UserError, match=r"^text 2: 'x' is not in the vocabulary"):
        predictor().predict(["1", "x"])
    with pytest.raises(UserError, match="batch_size=0"):
        predictor().predict(["1"], batch_size=0)
    with pytest.raises(TypeError, match="`texts` must be a list of str"):
        predictor().predict("1")
    assert predictor().predict([]) == []
