"""Which ids are predicted, and in which order: shares, spans, independence of other rows and of padding."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.extras.xlnet import permutation
from t2t_lite.extras.xlnet.permutation import CONTEXT, LONGEST_SPAN, Permutation

ORDINARY = np.arange(50) >= 5
ROWS, LENGTH = 40, 300
IDS = np.random.default_rng(0).integers(2, 50, size=(ROWS, LENGTH)).astype("int32")
SEEDS = np.random.default_rng(1).integers(-(2**31), 2**31, size=(ROWS, 2)).astype("int32")


def sampled(ids=IDS, seeds=SEEDS, ordinary=ORDINARY):
    return [part.numpy() for part in Permutation(ordinary)(tf.constant(ids), tf.constant(seeds))]


def test_about_one_id_in_six_is_predicted_in_short_spans():
    ids = np.maximum(IDS, 5)
    targets, order = sampled(ids)
    assert ((targets == 0) | (targets == ids)).all() and ((targets > 0) == (order > 0)).all()
    share = (targets > 0).mean()
    assert share == pytest.approx(1 / CONTEXT, abs=0.01)
    runs = [len(run) for row in targets for run in "".join("x" if t else " " for t in row).split()]
    assert max(runs) <= 2 * LONGEST_SPAN and {1, 2, 3, 4, 5} <= {*runs}
    assert runs.count(1) > runs.count(2) > runs.count(4)  # a span of L has a probability proportional to 1/L


def test_spans_from_given_numbers(monkeypatch):
    """Contexts of 6, 12, 18 and 6 ids: spans at the last, the last, the first and the third place."""
    sizes, places = np.full(42, 0.99, "float32"), np.zeros(42, "float32")
    sizes[:4], places[:4] = (0.0, 0.5, 0.7, 0.43), (0.999, 0.999, 0.0, 0.4)
    rank = np.linspace(0.9, 0.1, 42, dtype="float32")
    numbers = np.stack([np.stack([sizes, places], -1), np.stack([rank, rank], -1)])[None]
    monkeypatch.setattr(permutation, "uniform_numbers", lambda seeds, samples, length: tf.constant(numbers))
    targets, order = sampled(np.arange(5, 47, dtype="int32")[None] % 50, SEEDS[:1])
    assert np.flatnonzero(targets[0]).tolist() == [5, 16, 17, 18, 19, 20, 38]
    assert order[0, np.flatnonzero(order[0])].tolist() == [7, 6, 5, 4, 3, 2, 1]


def test_an_order_numbers_the_predicted_ids_at_random():
    _, order = sampled()
    first = []
    for row in order:
        numbers = row[row > 0]
        assert sorted(numbers) == [*range(1, len(numbers) + 1)]
        first.append(np.argmin(numbers) / len(numbers))
    assert np.mean(first) == pytest.approx(0.5, abs=0.15)


def test_special_ids_are_not_predicted_and_each_row_has_a_target():
    targets, _ = sampled()
    assert not np.isin(targets, [1, 2, 3, 4]).any()
    ids = np.array([[7, 1, 0, 0], [2, 9, 3, 1], [1, 0, 0, 0], [0, 0, 0, 0]], "int32")
    targets, order = sampled(ids, SEEDS[:4])
    np.testing.assert_array_equal(targets, [[7, 0, 0, 0], [0, 9, 0, 0], [0] * 4, [0] * 4])
    np.testing.assert_array_equal(order, targets > 0)


def test_a_row_depends_on_its_seed_and_ids_alone():
    together = sampled(np.pad(IDS, ((0, 0), (0, 9))))
    for row in (0, 7):
        for found, alone in zip(together, sampled(IDS[row : row + 1], SEEDS[row : row + 1]), strict=True):
            np.testing.assert_array_equal(found[row, :LENGTH], alone[0])
    assert (sampled(seeds=SEEDS[::-1].copy())[1] != together[1][:, :LENGTH]).any(axis=1).all()


def test_a_vocabulary_of_special_ids_alone_is_refused():
    with pytest.raises(UserError, match="no ordinary id"):
        Permutation(np.zeros(5, bool))
