"""Requests that are computed together, and texts of several sentences, with a function in place of a model."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.extras.serving.request_batching import Batcher, SentenceBatcher
from tests.processes import wait_for


class Upper:
    """A signature of texts to capitals, which keeps the sizes of its batches; "bad" is refused.

    It computes nothing until `may_run` is set.
    """

    def __init__(self, rows_are_independent=True):
        self.rows_are_independent, self.sizes, self.may_run = rows_are_independent, [], threading.Event()
        self.is_running = threading.Event()

    def __call__(self, inputs):
        self.is_running.set()
        assert self.may_run.wait(20)
        texts = inputs["inputs"].tolist()
        if "bad" in texts:
            raise ValueError("bad")
        self.sizes.append(len(texts))
        return {"outputs": np.array([text.upper() for text in texts], object)}


def texts(*values):
    return {"inputs": np.array(values, object)}


@contextlib.contextmanager
def busy(batcher, signature):
    """While a first request is computed, yields a function that calls the batcher in a thread, once others wait."""
    with ThreadPoolExecutor(16) as pool:
        first = pool.submit(batcher.run, signature, texts("first"))
        assert signature.is_running.wait(20)

        def submit(*arguments):
            waiting = batcher.waiting
            future = pool.submit(batcher.run, *arguments)
            wait_for(lambda: batcher.waiting == waiting + 1, 20)
            return future

        try:
            yield submit
        finally:
            signature.may_run.set()
        assert first.result(20)["outputs"].tolist() == ["FIRST"]


def run_waiting(batcher, signature, requests, others=()):
    """Returns the futures of requests that all wait while the first one is computed."""
    with busy(batcher, signature) as submit:
        return [submit(*arguments) for arguments in (*((signature, inputs) for inputs in requests), *others)]


def test_waiting_requests_are_one_batch():
    signature = Upper()
    requests = [texts("a", "b"), texts("c"), texts(), texts("d", "e", "f")]
    found = run_waiting(Batcher(64, 1), signature, requests)
    assert [one.result()["outputs"].tolist() for one in found] == [["A", "B"], ["C"], [], ["D", "E", "F"]]
    assert signature.sizes == [1, 6]


def test_a_batch_has_at_most_so_many_rows():
    signature = Upper()
    found = run_waiting(Batcher(4, 1), signature, [texts("a", "b")] * 5 + [texts("c", "c", "c", "c")])
    assert [one.result()["outputs"].tolist() for one in found] == [["A", "B"]] * 5 + [["C"] * 4]
    assert sorted(signature.sizes) == [1, 2, 4, 4, 4]


def test_a_longer_request_is_split():
    signature, values = Upper(), [f"{i}x" for i in range(10)]
    signature.may_run.set()
    assert Batcher(4, 1).run(signature, texts(*values))["outputs"].tolist() == [value.upper() for value in values]
    assert signature.sizes == [4, 4, 2]
    with pytest.raises(ValueError, match="bad"):
        Batcher(4, 1).run(signature, texts(*values, "bad"))
    with pytest.raises(Refusal, match="Task size 10 is larger than maximum input batch size 4"):
        Batcher(4, 1).run(Upper(rows_are_independent=False), texts(*values))


def test_an_error_is_that_of_one_request():
    signature = Upper()
    good, bad, other = run_waiting(Batcher(64, 1), signature, [texts("a"), texts("x", "bad"), texts("b")])
    assert good.result()["outputs"].tolist() == ["A"] and other.result()["outputs"].tolist() == ["B"]
    with pytest.raises(ValueError, match="bad"):
        bad.result()


def test_a_batch_is_told_with_its_rows_and_its_times(clock):
    batches, signature = [], Upper()

    def slowly(inputs):
        outputs = signature(inputs)
        clock.advance(0.75)
        return outputs

    vars(slowly).update(rows_are_independent=True, is_running=signature.is_running, may_run=signature.may_run)
    with busy(Batcher(64, 1, on_batch=lambda *batch: batches.append(batch)), slowly) as submit:
        others = [submit(slowly, texts(*values)) for values in (("a", "b"), ("c",))]
        clock.advance(1.5)
    assert [len(one.result(20)["outputs"]) for one in others] == [2, 1]
    assert batches == [(1, [0.0], 2.25), (3, [2.25, 2.25], 0.75)]


def test_what_is_computed_alone():
    """Rows that would be padded to each other, other shapes, other signatures, and scalars."""
    padded, other = Upper(rows_are_independent=False), Upper()
    other.may_run.set()
    scalar = texts("a") | {"alpha": np.float32(1)}
    run_waiting(
        Batcher(64, 1), padded, [texts("a"), texts("b")], [(other, scalar), (other, scalar), (other, texts("c"))]
    )
    assert padded.sizes == [1, 1, 1] and other.sizes == [1, 1, 1]


def test_many_callers_get_their_own_answers():
    signature, batches = Upper(), []
    signature.may_run.set()
    batcher = Batcher(16, 2, on_batch=lambda rows, waits, seconds: batches.append((rows, len(waits))))

    def ask(caller):
        for i in range(50):
            values = [f"{caller}-{i}-{j}x" for j in range(i % 4)]
            assert batcher.run(signature, texts(*values))["outputs"].tolist() == [value.upper() for value in values]

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(ask, range(32)))
    assert sum(requests for _, requests in batches) == 32 * 50
    assert max(signature.sizes) <= 16 and sum(rows for rows, _ in batches) == 32 * sum(i % 4 for i in range(50))
    assert len(batches) < 32 * 50 / 2, "callers that wait at the same time share batches"


def test_a_short_request_does_not_wait_for_a_long_one():
    """Whose rest takes turns with it."""
    signature, order = Upper(), []
    batcher = Batcher(4, 1, on_batch=lambda rows, waits, seconds: order.append(rows))
    long = texts(*["x"] * 40)
    found = run_waiting(batcher, signature, [long], [(signature, texts("a"))])
    assert [len(one.result()["outputs"]) for one in found] == [40, 1]
    assert order.index(1, 1) <= 2 and sum(order) == 42


def test_what_nobody_waits_for_is_not_computed():
    signature, gone, batcher = Upper(), threading.Event(), Batcher(4, 1)
    with busy(batcher, signature) as submit:
        long = submit(signature, texts(*["x"] * 40), gone.is_set)
        gone.set()
        with pytest.raises(Refusal, match="client has disconnected") as refusal:
            long.result(20)
        assert refusal.value.code == "CANCELLED" and batcher.waiting == 0
    assert signature.sizes == [1]


def test_the_rest_of_a_request_that_failed_is_not_computed():
    signature = Upper()
    signature.may_run.set()
    batcher = Batcher(4, 1)
    with pytest.raises(ValueError, match="bad"):
        batcher.run(signature, texts("bad", *["x"] * 40))
    assert batcher.run(signature, texts("a"))["outputs"].tolist() == ["A"]
    assert sum(signature.sizes) < 10


def test_a_queue_has_an_end():
    """But takes a request that is longer than itself when nothing waits."""
    signature, batcher = Upper(), Batcher(4, 1, most_waiting=8)
    with busy(batcher, signature) as submit:
        waiting = submit(signature, texts(*["x"] * 7))
        with pytest.raises(Refusal, match="queue to which this task was submitted is full") as full:
            batcher.run(signature, texts("a", "b"))
        assert full.value.code == "UNAVAILABLE"
        last = submit(signature, texts("a"))
    assert [len(one.result(20)["outputs"]) for one in (waiting, last)] == [7, 1]
    assert len(batcher.run(signature, texts(*["x"] * 20))["outputs"]) == 20


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
    """In place of a Batcher."""

    def run(self, signature, inputs, **options):
        assert options == {"is_abandoned": all}
        return signature(inputs)


SEVERAL = np.array(
    [b"Ab cd. Ef gh! Ij", b"Kl", b"", "\u4f60\u597d\u3002\u518d\u89c1\u3002".encode(), b"\xffab. Mn op qr"], object
)


def split_answers(choice=None, signature=None, most_rows=64, **inputs):
    signature = signature or First()
    found = SentenceBatcher(Direct(), choice, most_rows).run(signature, {"inputs": SEVERAL, **inputs}, is_abandoned=all)
    return {name: value.tolist() for name, value in found.items()}, signature.given


def test_each_sentence_is_a_row_and_each_text_has_an_answer():
    alphas = np.arange(5.0)
    found, given = split_answers(alpha=alphas, extra_length=np.int32(3))
    assert found["outputs"] == [b"AB CD. EF GH! IJ", b"KL", b"", SEVERAL[3], "\ufffdAB. MN OP".encode()]
    assert found["scores"] == [0 + 1 + 2, 3, 4, 5 + 6, 7 + 8] and found["truncated"] == [False] * 4 + [True]
    assert given["alpha"].tolist() == [0, 0, 0, 1, 2, 3, 3, 4, 4] and given["extra_length"] == 3


def test_what_is_not_split():
    kept = [("never", {}), *((choice, {"wants_sentences": False}) for choice in (None, "auto"))]
    for choice, attributes in (*kept, ("always", {"is_of_texts": False})):
        _, given = split_answers(choice, First(**attributes))
        assert given["inputs"] is SEVERAL
    _, given = split_answers(alpha=np.arange(9.0))  # as many as sentences, but not one for each text
    assert given["inputs"] is SEVERAL
    for given in (split_answers("always", First(wants_sentences=False))[1], split_answers(alpha=np.ones(1))[1]):
        assert len(given["inputs"]) == 9
    with pytest.raises(Refusal, match="Task size 9 sentences is larger than maximum input batch size 8"):
        split_answers(most_rows=8)
    assert split_answers(most_rows=9)[0] == split_answers()[0]
