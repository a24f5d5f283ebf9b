"""Devices that share the texts of a call, with a stand-in for the model."""

import pytest
import tensorflow as tf

from t2t_lite.decoding.command.job import TranslatorPool


class Noting:
    """Answers a text with the device, the text and its options; `asked` has the method's name."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        def answer(texts, targets=None, alpha=None):
            self.asked.append(name)
            device = tf.constant(0).device[-5:]
            return [(device, text, targets and targets[at], alpha) for at, text in enumerate(texts)]

        return answer


@pytest.mark.parametrize(
    "name", ["translate", "translate_by_risk", "generate", "score", "predict", "fill_mask", "features"]
)
def test_texts_are_shared_and_answered_in_order(name):
    translators = [Noting(), Noting()]
    pool = TranslatorPool(list(zip(["CPU:1", "CPU:2"], translators, strict=True)))
    found = getattr(pool, name)(["a", "dddd", "bb", "ccc"], targets=["A", "D", "B", "C"], alpha=0.5)
    # by length, in turn: dddd and bb, ccc and a
    expected = [("CPU:2", "a", "A", 0.5), ("CPU:1", "dddd", "D", 0.5), ("CPU:1", "bb", "B", 0.5)]
    assert found == [*expected, ("CPU:2", "ccc", "C", 0.5)]
    assert [one.asked for one in translators] == [[name], [name]]
