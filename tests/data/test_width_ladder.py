"""Batches of a few fixed shapes: the best ones, full rows, and a stream that keeps its promises."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data import batching, manifests
from t2t_lite.data.problem import Problem
from t2t_lite.data.records import Records
from t2t_lite.data.width_ladder import WidthLadder, choose_ladder, nested_widths
from t2t_lite.settings.config import HParams
from tests.data import corpus
from tests.data.stored import read_examples

EXAMPLES = 2000


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return corpus.write_numbered(tmp_path_factory.mktemp("records"), EXAMPLES)


@pytest.fixture(scope="module")
def originals(paths):
    return {example["inputs"][0] - 10: example for example in read_examples(paths)}


@pytest.fixture(scope="module")
def ladder(paths):
    return ladder_of(paths)


def ladder_of(paths, problem=None, **settings):
    hparams, problem = HParams(batch_size=256, max_length=256, **settings), problem or Problem()
    records = Records(problem, "", "train")
    records.paths = paths
    facts = records.seen_facts(hparams, manifests.read_facts(paths))
    return batching.problem_ladder(problem, hparams, paths, {}, facts)


def cells(lengths, widths):
    """Padded cells where each example has the cheapest width that holds it."""
    holds = (lengths[:, None] <= np.array(widths)[None]).all(2)
    assert holds.any(1).all()
    return np.where(holds, np.sum(widths, 1), np.iinfo(int).max).min(1).sum()


@pytest.mark.parametrize("seed", range(4))
def test_no_other_nested_widths_need_fewer_cells(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, [6, 5], (30, 2))
    top = tuple(lengths.max(0))
    pairs = list(itertools.product(range(1, top[0] + 1), range(1, top[1] + 1)))
    possible = [
        (*inner, top)
        for inner in itertools.combinations(pairs, 2)
        if (np.diff((*inner, top), axis=0) >= 0).all()  # ascending on both sides
    ]
    chosen = nested_widths(lengths, 3)
    assert (np.diff(chosen, axis=0) >= 0).all() and tuple(chosen[-1]) == top
    assert cells(lengths, chosen) == min(cells(lengths, widths) for widths in possible)


@pytest.mark.long
def test_many_lengths_take_little_longer():
    lengths = np.random.default_rng(0).lognormal(5, 0.8, (5000, 2)).astype(int) + 1
    widths = nested_widths(lengths, 16)
    assert len(widths) == 16 and widths[-1].tolist() == lengths.max(0).tolist()


def test_sides_of_different_length_have_widths_of_their_own():
    inputs = np.random.default_rng(0).integers(100, 200, 500)
    lengths = np.stack([inputs, inputs // 5], 1)
    sides = dict(zip(("inputs", "targets"), lengths.T, strict=True))
    shapes = choose_ladder(sides, {"inputs": 300, "targets": 100}, batch_size=4096).shapes
    assert len(shapes) <= 16 and shapes[-1].tolist() == [4096 // 300, 300, 100]
    assert lengths.sum() / cells(lengths, shapes[:, 1:]) > 0.9  # 0.6 with one width for both sides
    assert choose_ladder(sides, {"inputs": 300, "targets": 100}, batch_size=299).shapes[-1].tolist() == [1, 300, 100]


def test_a_third_feature_is_as_wide_as_any_that_fits_a_shape():
    lengths = {"inputs": np.arange(10, 60), "targets": np.arange(10, 60)[::-1], "third": np.full(50, 3)}
    lengths["third"][7] = 9
    shapes = choose_ladder(lengths, {"inputs": 60, "targets": 61, "third": 8}, batch_size=700, most=5).shapes
    assert (np.diff(shapes[:, 1:], axis=0) >= 0).all() and shapes[-1].tolist() == [700 // 61, 60, 61, 9]


@pytest.mark.few("None")
@pytest.mark.slow
@pytest.mark.parametrize("pool_size", [None, 300])
def test_every_batch_is_full_and_every_example_comes_as_often(paths, originals, ladder, pool_size):
    counts, real, padded, shapes = collections.Counter(), 0, 0, set()
    stream = corpus.training_batches(paths, batch_size=256, seed=3, ladder=ladder, pool_size=pool_size)
    for batch in itertools.islice(stream.as_numpy_iterator(), 600):
        shapes.add((*batch["inputs"].shape, batch["targets"].shape[1]))
        found = (batch["inputs"][:, 0] - 10).tolist()
        for side, ids in batch.items():
            assert ids.dtype == np.int32
            assert [row[row != 0].tolist() for row in ids] == [originals[n][side] for n in found]
            real, padded = real + np.count_nonzero(ids), padded + ids.size
        counts.update(found)
        every = [counts[n] for n in range(EXAMPLES)]
        assert max(every) - min(every) <= 2
    assert shapes <= set(map(tuple, ladder.shapes.tolist())) and len(shapes) <= 16
    assert sum(counts.values()) > 4 * EXAMPLES
    assert real / padded >= 0.85


@pytest.mark.few("200")
@pytest.mark.slow
@pytest.mark.parametrize("position", [0, 1, 57, 200])
def test_a_restored_iterator_goes_on_identically(paths, ladder, tmp_path, position):
    def stream():
        return iter(corpus.training_batches(paths, batch_size=256, seed=3, pool_size=700, ladder=ladder))

    corpus.assert_goes_on_identically(stream, tmp_path, position, more=150)


@pytest.mark.slow
def test_a_corpus_smaller_than_a_batch_still_gives_full_batches(tmp_path):
    paths = corpus.write_numbered(tmp_path, 3, shards=1)
    ladder = ladder_of(paths)
    batches = list(corpus.training_batches(paths, batch_size=256, ladder=ladder).take(20).as_numpy_iterator())
    shapes = {(*batch["inputs"].shape, batch["targets"].shape[1]) for batch in batches}
    assert shapes <= set(map(tuple, ladder.shapes.tolist()))
    counts = collections.Counter(n for batch in batches for n in batch["inputs"][:, 0].tolist())
    assert len(counts) == 3 and max(counts.values()) - min(counts.values()) <= max(ladder.shapes[:, 0])


@pytest.mark.parametrize(("flags", "sides"), [("rev", (1, 0)), ("copy", (0, 0))])
def test_the_widest_shape_holds_the_longest_as_the_model_sees_them(paths, originals, flags, sides):
    longest = [max(len(example[side]) for example in originals.values()) for side in ("inputs", "targets")]
    problem = Problem(was_reversed=flags == "rev", was_copy=flags == "copy")
    assert ladder_of(paths, problem).shapes[-1, 1:].tolist() == [longest[side] for side in sides]


@pytest.mark.slow
def test_an_example_that_fits_into_no_shape_is_not_cut_off(paths):
    narrow = WidthLadder(np.array([[25, 10, 10]], np.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="longer than the widest shape"):
        next(iter(corpus.training_batches(paths, batch_size=256, ladder=narrow)))
