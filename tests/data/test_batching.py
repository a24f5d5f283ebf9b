import collections
import itertools
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data import batching, sharding
from t2t_lite.data.problem import Problem
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import TextEncoder
from tests.data import corpus
from tests.data.stored import read_examples


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return corpus.write_numbered(tmp_path_factory.mktemp("records"), 2000)


def numbers(batch):
    return (batch["inputs"][:, 0].numpy() - 10).tolist()


def take(dataset, count):
    return list(itertools.islice(iter(dataset), count))


def same(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a[key], b[key]) for a, b in zip(first, second, strict=True) for key in ("inputs", "targets")
    )


@pytest.mark.slow
def test_a_batch_is_padded_int32_within_the_budget(paths):
    originals = {example["inputs"][0] - 10: example for example in read_examples(paths)}
    for batch in take(corpus.training_batches(paths, batch_size=256), 100):
        for key in ("inputs", "targets"):
            assert batch[key].dtype == tf.int32
            longest = max(len(originals[n][key]) for n in numbers(batch))
            assert batch[key].shape == (len(numbers(batch)), longest)
            for n, row in zip(numbers(batch), batch[key].numpy(), strict=True):
                assert row.tolist() == originals[n][key] + [0] * (longest - len(originals[n][key]))
        assert len(numbers(batch)) * max(batch["inputs"].shape[1], batch["targets"].shape[1]) <= 256


def test_rows_that_fill_the_budget_exactly_are_one_batch(tmp_path):
    path = str(tmp_path / "even-train-00000-of-00001")
    sharding.write_shards(({"inputs": [9, 9, 9, 1], "targets": [9, 1]} for _ in range(12)), [path], seed=0)
    batches = batching.evaluation_batches(Problem(), HParams(batch_size=16), [path])
    assert [batch["inputs"].shape for batch in batches] == [(4, 4)] * 3


@pytest.mark.slow
@pytest.mark.few("None", "300")
@pytest.mark.parametrize("pool_size", [None, 300, 2000])
def test_every_example_comes_once_an_epoch(paths, pool_size):
    """Far into the stream each example has come as often as any other, save for what waits in pools and buffers."""
    batches = take(corpus.training_batches(paths, batch_size=512, pool_size=pool_size), 300)
    counts = collections.Counter(n for batch in batches for n in numbers(batch))
    epochs = sum(counts.values()) / 2000
    assert epochs > 5
    assert set(counts) == set(range(2000))
    waiting = (pool_size or 2000) / 2000  # one pool is cut while these batches are counted
    assert max(counts.values()) <= epochs + waiting + 1
    assert min(counts.values()) >= epochs - waiting - 1


@pytest.mark.slow
def test_an_epoch_boundary_loses_and_repeats_nothing(paths):
    """Without shuffling, pools follow the passes over the data exactly: one pool of all examples is one epoch."""
    stream = iter(corpus.training_batches(paths, batch_size=512, pool_size=2000, shuffle=False))
    counts, epochs = collections.Counter(), 0
    while epochs < 3:
        counts.update(numbers(next(stream)))
        # Carrying the last batch of a pool over moves it behind the boundary, and nothing else.
        assert max(counts.values()) - min(counts[n] for n in range(2000)) <= 2
        epochs = sum(counts.values()) / 2000
    rest = list(itertools.islice(stream, 2))
    counts.update(n for batch in rest for n in numbers(batch))
    assert all(count in (2, 3, 4) for count in counts.values())


@pytest.mark.slow
def test_fill_is_high(paths):
    real = cells = 0
    for batch in take(corpus.training_batches(paths, batch_size=256), 300):
        real += sum(int(np.count_nonzero(batch[key])) for key in batch)
        cells += sum(batch[key].shape.num_elements() for key in batch)
    assert real / cells >= 0.90


@pytest.mark.slow
def test_no_batch_is_a_leftover(paths):
    """The ragged last batch of a pool is carried on, so every batch uses its budget."""
    for batch in take(corpus.training_batches(paths, batch_size=256, pool_size=500), 200):
        assert len(numbers(batch)) * max(batch["inputs"].shape[1], batch["targets"].shape[1]) > 256 - 2 * 30


@pytest.mark.slow
def test_the_seed_decides_the_order(paths):
    first, again, other = (
        take(corpus.new_training_batches(paths, batch_size=256, seed=seed), 40) for seed in (7, 7, 8)
    )
    assert same(first, again)
    assert not same(first, other)
    lengths = [batch["inputs"].shape[1] for batch in first]
    assert lengths != sorted(lengths) and lengths != sorted(lengths, reverse=True)


@pytest.mark.slow
def test_epochs_differ(paths):
    batches = take(corpus.training_batches(paths, batch_size=512), 120)
    groups = [frozenset(numbers(batch)) for batch in batches]
    assert len(set(groups)) > 0.9 * len(groups)


@pytest.mark.few("200")
@pytest.mark.slow
@pytest.mark.parametrize("position", [0, 1, 57, 200])
def test_a_restored_iterator_goes_on_identically(paths, tmp_path, position):
    """At the start, in mid-pool, after epochs; prefetched batches that nobody took are not lost."""
    arguments = {"batch_size": 256, "seed": 3, "pool_size": 700}
    iterator = iter(corpus.training_batches(paths, **arguments))
    for _ in range(position):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    expected = list(itertools.islice(iterator, 150))
    restored = iter(corpus.new_training_batches(paths, **arguments))
    tf.train.Checkpoint(iterator=restored).restore(saved).assert_consumed()
    assert same(list(itertools.islice(restored, 150)), expected)


@pytest.mark.slow
def test_the_saved_state_is_small(paths, tmp_path):
    iterator = iter(corpus.training_batches(paths, batch_size=4096))
    next(iterator)
    tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 50e6


@pytest.mark.slow
def test_lengths_outside_the_limits_are_left_out(paths):
    lengths = {example["inputs"][0] - 10: max(map(len, example.values())) for example in read_examples(paths)}
    kept = {n for n, length in lengths.items() if 6 <= length <= 12}
    assert 0 < len(kept) < 2000
    batches = take(corpus.training_batches(paths, batch_size=512, max_length=12, min_length=6), 200)
    assert {n for batch in batches for n in numbers(batch)} == kept


@pytest.mark.slow
def test_what_cannot_fit_into_a_batch_is_dropped_in_training_and_kept_in_evaluation(paths):
    longest = max(max(map(len, example.values())) for example in read_examples(paths))
    batch_size = longest - 1
    batches = take(corpus.training_batches(paths, batch_size=batch_size, max_length=0), 50)
    assert max(batch[key].shape[1] for batch in batches for key in batch) <= batch_size
    evaluated = list(corpus.evaluation_batches(paths, batch_size=batch_size))
    assert sorted(n for batch in evaluated for n in numbers(batch)) == list(range(2000))


@pytest.mark.slow
def test_evaluation_is_one_pass_in_a_fixed_order(paths):
    first, again = (list(corpus.evaluation_batches(paths, batch_size=300)) for _ in range(2))
    assert same(first, again)
    assert sorted(n for batch in first for n in numbers(batch)) == list(range(2000))
    assert all(batch["targets"].dtype == tf.int32 for batch in first)


@pytest.mark.few("flags1", "flags2")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "inputs", "targets"),
    [
        ({}, [5, 6, 1], [7, 1]),
        ({"was_reversed": True}, [7, 1], [5, 6, 1]),
        ({"was_copy": True}, [5, 6, 1], [5, 6, 1]),
        ({"was_reversed": True, "was_copy": True}, [7, 1], [7, 1]),
    ],
)
def test_reversed_and_copied(tmp_path, flags, inputs, targets):
    path = str(tmp_path / "one")
    sharding.write_shards([{"inputs": [5, 6, 1], "targets": [7, 1]}], [path], seed=0)
    for dataset in (corpus.evaluation_batches, corpus.training_batches):
        batch = next(iter(dataset([path], Problem(**flags), batch_size=6)))
        assert batch["inputs"].numpy()[0].tolist() == inputs
        assert batch["targets"].numpy()[0].tolist() == targets


@pytest.mark.slow
def test_the_stream_follows_its_hyperparameters(paths):
    batches = take(corpus.training_batches(paths, batch_size=100, min_length=9, max_length=12), 60)
    widths = [max(batch[side].shape[1] for side in batch) for batch in batches]
    assert min(widths) >= 9 and max(widths) == 12
    assert all(len(numbers(batch)) * width <= 100 for batch, width in zip(batches, widths, strict=True))


@pytest.mark.slow
def test_a_corpus_smaller_than_a_batch_still_gives_batches(tmp_path):
    (path,) = corpus.write_numbered(tmp_path, 3, shards=1)
    batches = take(corpus.training_batches([path], batch_size=200), 20)
    assert set(numbers(batches[0])) == {0, 1, 2}
    assert all(len(numbers(batch)) > 3 for batch in batches)


def test_no_example_within_the_limits(paths):
    with pytest.raises(UserError, match="no example has between 0 and 1 ids"):
        corpus.training_batches(paths, batch_size=100, max_length=1)


@pytest.mark.slow
def test_ids_outside_the_vocabulary(paths):
    def encoders(size):
        return {"inputs": TextEncoder(size), "targets": TextEncoder(7)}

    with pytest.raises(tf.errors.InvalidArgumentError, match="outside the vocabulary of 100"):
        take(corpus.training_batches(paths, batch_size=100, encoders=encoders(100)), 1)
    assert take(corpus.training_batches(paths, batch_size=100, encoders=encoders(2010)), 1)


def test_damaged_records_are_named_before_training(paths, tmp_path):
    bad = tmp_path / "bad-train-00000-of-00001"
    bad.write_bytes(pathlib.Path(paths[0]).read_bytes()[:-5])
    for files in ([str(bad)], [*paths, str(bad)]):
        with pytest.raises(UserError, match="bad-train-00000-of-00001: damaged"):
            corpus.training_batches(files, batch_size=100)
