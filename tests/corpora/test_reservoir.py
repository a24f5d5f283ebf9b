"""A sample of a stream: even, in its order, the same for a seed, and not in memory."""

import os
import tempfile
import tracemalloc

import numpy as np
import pytest

from t2t_lite.corpora.reservoir import Reservoir


def pairs(count):
    return ((f"input {number}", f"tärget\n{number}") for number in range(count))


def drawn(most, count, seed=1):
    """Returns the numbers of the pairs that are drawn."""
    with Reservoir(most, seed) as sample:
        sample.fill(pairs(count))
        assert sample.seen == count
        found = list(sample)
        assert len(found) == len(sample)
        assert found == list(sample), "it can be read again"
    numbers = [int(inputs.split()[1]) for inputs, _ in found]
    assert found == [(f"input {number}", f"tärget\n{number}") for number in numbers]
    return numbers


@pytest.mark.parametrize("most", [None, 0, 100, 101])
def test_a_short_stream_is_kept_whole(most):
    assert drawn(most, 100) == list(range(100))


def test_the_sample_has_its_size_and_the_order_of_the_stream():
    numbers = drawn(30, 20_000)  # several blocks
    assert len(set(numbers)) == 30
    assert numbers == sorted(numbers)


def test_a_seed_gives_a_sample_and_another_seed_another():
    assert drawn(50, 1000, seed="a") == drawn(50, 1000, seed="a") != drawn(50, 1000, seed=-3)


def test_every_pair_is_drawn_equally_often():
    """1,000 draws of 10 of 40: each pair 250 times, within five standard deviations (13.7)."""
    times = np.bincount(np.concatenate([drawn(10, 40, seed) for seed in range(1000)]), minlength=40)
    assert times.sum() == 10_000
    assert (abs(times - 250) < 5 * 13.7).all()


def test_an_empty_stream_and_an_empty_text():
    assert drawn(5, 0) == []
    with Reservoir(5, 1) as sample:
        sample.fill([("", ""), ("a", "")])
        assert list(sample) == [("", ""), ("a", "")]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
def test_a_full_disk_is_told_with_its_folder(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "r+b", buffering=0))  # noqa: SIM115
    with Reservoir(5, 1) as sample, pytest.raises(OSError, match="No space left on device") as caught:
        sample.fill(pairs(3))
    assert caught.value.filename == tempfile.gettempdir()


@pytest.mark.slow
def test_the_text_is_not_in_memory():
    tracemalloc.start()
    try:
        with Reservoir(20_000, 1) as sample:
            sample.fill((f"{number} {'x' * 1000}", "y" * 1000) for number in range(30_000))  # 40 MB are drawn
            assert sum(1 for _ in sample) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 25e6  # a block of the stream is: 17 MB
    finally:
        tracemalloc.stop()
