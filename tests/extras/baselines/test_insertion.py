"""Canvases and what is missing in their slots: the exact distribution, ends, independence of other rows and padding."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.extras.baselines.kermit import Insertion
from tests.data.canvases import canvases, slot_weights

IDS = np.random.default_rng(0).integers(2, 50, size=(40, 30)).astype("int32")
IDS[:, -1] = 1
for at in range(1, 29):  # rows of all lengths
    IDS[at, at:] = [1, *[0] * (29 - at)]
SEEDS = np.random.default_rng(1).integers(-(2**31), 2**31, size=(5000, 2)).astype("int32")


def sampled(ids=IDS, seeds=None, **settings):
    seeds = SEEDS[: len(ids)] if seeds is None else seeds
    return [part.numpy() for part in Insertion(**settings)(tf.constant(ids), tf.constant(seeds))]


def between(row, canvas):
    """Returns the ids of a row, all different, that are missing in each slot of its canvas."""
    places = [-1, *(row.index(i) for i in canvas)]
    return [row[before + 1 : after] for before, after in itertools.pairwise(places)]


@pytest.mark.parametrize("order", ["binary_tree", "uniform"])
def test_each_slot_of_a_canvas_gets_one_of_its_missing_ids_or_nothing(order):
    ids = np.where(IDS > 1, np.arange(30) + 2, IDS)
    for row, canvas, missing in zip(ids, *sampled(ids, order=order), strict=True):
        kept, predicted = (each[: np.count_nonzero(canvas)].tolist() for each in (canvas, missing))
        assert canvas.sum() == sum(kept) and missing.sum() == sum(predicted)  # 0 behind them
        assert kept[-1] == 1 and 1 not in kept[:-1]
        for id_, absent in zip(predicted, between([i for i in row.tolist() if i], kept), strict=True):
            assert id_ in absent if absent else id_ == 1


@pytest.mark.parametrize("order, temperature", [("binary_tree", 1.0), ("binary_tree", 0.3), ("uniform", 1.0)])
def test_the_distribution_is_that_of_the_papers(order, temperature):
    """Of four ids: sizes, sets and the ids of slots, against their probabilities by enumeration."""
    row, count = (5, 6, 7, 8), len(SEEDS)
    found = sampled(np.array([[*row, 1, 0]] * count, "int32"), SEEDS, order=order, temperature=temperature)
    rows = [tuple(i for i in canvas[canvas > 1].tolist()) for canvas in found[0]]
    seen, expected = collections.Counter(rows), canvases(row)
    assert seen.keys() == expected.keys()
    for canvas, share in expected.items():
        assert abs(seen[canvas] - share * count) < 4 * (share * count) ** 0.5
        of_canvas = found[1][[each == canvas for each in rows]]
        for slot, absent in enumerate(between([*row, 1], [*canvas, 1])):
            for id_, weight in zip(absent, slot_weights(len(absent), order, temperature), strict=True):
                times = np.count_nonzero(of_canvas[:, slot] == id_)
                assert abs(times - weight * len(of_canvas)) <= 4 * (weight * len(of_canvas)) ** 0.5


@pytest.mark.parametrize("temperature", [0.2, 1.0, 50.0])
def test_weights_fall_with_the_distance_from_the_middle_of_the_slot(temperature):
    insertion = Insertion(temperature=temperature)
    kept = np.array(list(itertools.product([False, True], repeat=6)))
    kept[:, -1] = True  # the end
    found = np.exp(insertion.log_weights(tf.constant(kept)).numpy())
    for row, weights in zip(kept, found, strict=True):
        borders = [-1, *np.flatnonzero(row)]
        for before, after in itertools.pairwise(borders):
            of_slot = weights[before + 1 : after]
            expected = slot_weights(after - before - 1, "binary_tree", temperature)
            np.testing.assert_allclose(of_slot / of_slot.sum(), expected, rtol=1e-5)


def test_rows_without_ids_have_nothing_to_insert_and_padding_stays():
    canvas, missing = sampled(np.array([[1, 0, 0], [0, 0, 0]], "int32"))
    np.testing.assert_array_equal(canvas, [[1, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(missing, [[1, 0, 0], [0, 0, 0]])


def test_a_row_depends_on_its_seed_and_ids_alone():
    together = sampled(np.pad(IDS, ((0, 0), (0, 9))))
    for row in (0, 7, 28):
        width = np.count_nonzero(IDS[row])
        alone = sampled(IDS[row : row + 1, :width], SEEDS[row : row + 1])
        for found, expected in zip(together, alone, strict=True):
            np.testing.assert_array_equal(found[row, :width], expected[0])
            assert not found[row, width:].any()
    assert (sampled(seeds=SEEDS[40:80])[0][29:] != together[0][29:, :30]).any(axis=1).all()
