"""Requests with texts of several sentences, with a function in place of a model that knows only the first ones."""

import numpy as np
import pytest

from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.extras.serving.request_batching import SentenceBatcher


class First:
    """Answers a text with its first two words, in capitals; notes what it was given."""

    is_of_texts = wants_sentences = True

    def __init__(self, **attributes):
        vars(self).update(attributes)
        self.given = None

    def __call__(self, inputs):
        self.given = inputs
        words = [text.decode("utf-8", "replace").split() for text in inputs["inputs"]]
        return {
            "outputs": np.array([" ".join(some[:2]).upper().encode() for some in words], object),
            "scores": np.arange(len(words), dtype="float32"),
            "truncated": np.array([len(some) > 2 for some in words]),
        }


class Direct:
    def run(self, signature, inputs, **options):
        return signature(inputs)


TEXTS = np.array(
    [b"Ab cd. Ef gh! Ij", b"Kl", b"", "\u4f60\u597d\u3002\u518d\u89c1\u3002".encode(), b"\xffab. Mn op qr"], object
)


def answers(choice=None, signature=None, most_rows=64, **inputs):
    signature = signature or First()
    found = SentenceBatcher(Direct(), choice, most_rows).run(signature, {"inputs": TEXTS, **inputs})
    return {name: value.tolist() for name, value in found.items()}, signature.given


def test_each_sentence_is_a_row_and_each_text_has_an_answer():
    alphas = np.arange(5.0)
    found, given = answers(alpha=alphas, extra_length=np.int32(3))
    assert found["outputs"] == [b"AB CD. EF GH! IJ", b"KL", b"", TEXTS[3], "\ufffdAB. MN OP".encode()]
    assert found["scores"] == [0 + 1 + 2, 3, 4, 5 + 6, 7 + 8] and found["truncated"] == [False] * 4 + [True]
    assert given["alpha"].tolist() == [0, 0, 0, 1, 2, 3, 3, 4, 4] and given["extra_length"] == 3


def test_what_is_not_split():
    for choice, attributes in (("never", {}), (None, {"wants_sentences": False}), ("always", {"is_of_texts": False})):
        _, given = answers(choice, First(**attributes))
        assert given["inputs"] is TEXTS
    _, given = answers("always", First(wants_sentences=False))
    assert len(given["inputs"]) == 9
    with pytest.raises(Refusal, match="Task size 9 sentences is larger than maximum input batch size 8"):
        answers(most_rows=8)
