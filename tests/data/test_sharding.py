"""Shards: everything once, shuffled by the seed alone, whatever the processes and the interruptions."""

import multiprocessing
import os
import pathlib
import signal

import pytest
import tensorflow as tf

from t2t_lite.data import sharding
from t2t_lite.errors import Failure, UserError
from tests.data.stored import read_examples

EXAMPLES = [{"inputs": [n + 2, 1], "targets": [n + 2, 3, 1]} for n in range(50)]


def as_ids(numbers):
    """Encodes; at the top of the module, so that it can be pickled."""
    return [{"inputs": [n + 2, 1], "targets": [n + 2, 3, 1]} for n in numbers]


def killed_in_a_worker(numbers):
    """As `as_ids`, but the system kills each process beside the tests' own."""
    if multiprocessing.parent_process():
        os.kill(os.getpid(), signal.SIGKILL)
    return as_ids(numbers)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(sharding.Chunks, "size", 8)


def paths_in(folder, shards=3):
    folder.mkdir(exist_ok=True)
    return [str(folder / f"p-train-{i:05d}-of-{shards:05d}") for i in range(shards)]


def contents(folder):
    """The shards' bytes; chunks are not looked at."""
    return [pathlib.Path(path).read_bytes() for path in paths_in(folder)]


def write(folder, samples=EXAMPLES, **options):
    return sharding.write_shards(iter(samples), paths_in(folder), **{"seed": 1, **options})


def test_what_is_written_is_read(tmp_path):
    facts = write(tmp_path, groups=[1, 1, 1])
    assert sum(shard["examples"] for shard in facts) == 50
    assert max(shard["examples"] for shard in facts) - min(shard["examples"] for shard in facts) <= 7  # chunks
    assert all(
        shard["tokens"] == {"inputs": 2 * shard["examples"], "targets": 3 * shard["examples"]} for shard in facts
    )
    found = list(read_examples(paths_in(tmp_path)))
    assert sorted(found, key=lambda example: example["inputs"]) == EXAMPLES
    assert found != EXAMPLES, "not shuffled"
    sharding.remove_chunks(paths_in(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"p-train-0000{i}-of-00003" for i in range(3)]


def test_few_examples_are_dealt_evenly(tmp_path):
    assert [shard["examples"] for shard in write(tmp_path, EXAMPLES[:3], groups=[1, 1, 1])] == [1, 1, 1]


def test_groups_of_shards_are_counted_together(tmp_path):
    examples = [{"inputs": [9] * n, "targets": [n, 1]} for n in range(1, 41)]
    paths = paths_in(tmp_path)
    both = write(tmp_path, examples, groups=[2, 1])
    for facts, group in zip(both, (paths[:2], paths[2:]), strict=True):
        found = list(read_examples(group))
        lengths = [max(len(example["inputs"]), 2) for example in found]
        assert facts == {
            "examples": len(found),
            "tokens": {"inputs": sum(len(example["inputs"]) for example in found), "targets": 2 * len(found)},
            "lengths": {str(n): lengths.count(n) for n in sorted(set(lengths))},
            "side_lengths": {
                "inputs": {str(n): 1 for n in sorted(len(example["inputs"]) for example in found)},
                "targets": {"2": len(found)},
            },
            "largest_id": {"inputs": 9, "targets": max(example["targets"][0] for example in found)},
            "bytes": [pathlib.Path(path).stat().st_size for path in group],
        }


def test_ids_below_zero_are_refused(tmp_path):
    with pytest.raises(UserError, match="the id -3 in targets"):
        write(tmp_path, [{"inputs": [5, 1], "targets": [-3, 1]}])
    assert list(tmp_path.iterdir()) == []


def test_the_seed_decides_the_order(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", "another")):
        write(tmp_path / name, seed=seed)
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != contents(tmp_path / "c")


def numbers_in(paths):
    """The numbers of the examples in each shard, in the order of the file."""
    return [[example["inputs"][0] - 2 for example in read_examples([path])] for path in paths]


def test_which_shard_an_example_goes_to_is_drawn_for_each_chunk_by_the_seed(tmp_path):
    def dealt(seed):
        paths = paths_in(tmp_path / str(seed), 2)
        sharding.write_shards(iter(EXAMPLES[:48]), paths, seed=seed)
        shard_of = {n: shard for shard, numbers in enumerate(numbers_in(paths)) for n in numbers}
        return [tuple(shard_of[n] for n in range(start, start + 8)) for start in range(0, 48, 8)]

    one, other = dealt(1), dealt(2)
    assert one != other
    assert len(set(one)) > 3, "each chunk is dealt in its own way"


def test_the_order_in_a_shard_is_drawn_for_each_by_the_seed(tmp_path):
    def orders(seed, shards):
        paths = paths_in(tmp_path / f"{seed} {shards}", shards)
        sharding.write_shards(iter(EXAMPLES[:48]), paths, seed=seed)
        return [[sorted(numbers).index(n) for n in numbers] for numbers in numbers_in(paths)]

    assert orders(1, 1) != orders(2, 1)
    first, second = orders(1, 2)
    assert len(first) == len(second) == 24 and first != second


def test_a_text_keeps_its_order_in_one_shard(tmp_path):
    paths = paths_in(tmp_path, 1)
    sharding.write_shards(iter(EXAMPLES), paths, seed=1, is_ordered=True)
    assert numbers_in(paths) == [list(range(50))]
    with pytest.raises(ValueError, match="3 shards cannot keep the order"):
        write(tmp_path / "several", is_ordered=True)


@pytest.mark.long
@pytest.mark.slow  # two processes that import TensorFlow
def test_processes_do_not_matter(tmp_path, capfd):
    alone = write(tmp_path / "alone")
    others = write(tmp_path / "others", range(50), encode=as_ids, num_workers=2)
    assert capfd.readouterr().err == "", "what TensorFlow notes when it is imported is not shown"
    assert alone == others
    assert contents(tmp_path / "alone") == contents(tmp_path / "others")


@pytest.mark.parametrize("stop_at", [0, 1, 8, 30, 49])
def test_what_was_stopped_goes_on(tmp_path, stop_at):
    encoded = []

    def encode(numbers):
        encoded.extend(numbers)
        return as_ids(numbers)

    def until_stopped():
        yield from range(stop_at)
        raise KeyboardInterrupt

    whole = write(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "parts", until_stopped(), encode=encode)
    assert write(tmp_path / "parts", range(50), encode=encode) == whole
    assert encoded == list(range(50))  # nothing is done twice
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_stopped_while_shards_are_put_together(tmp_path, monkeypatch):
    write(tmp_path / "whole")
    write_bytes = sharding.files.write_bytes

    def stop_at_the_second(path, data):
        if "train-00001" in path:
            raise KeyboardInterrupt
        write_bytes(path, data)

    with monkeypatch.context() as context:
        context.setattr(sharding.files, "write_bytes", stop_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "parts")
    write(tmp_path / "parts")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_another_source_is_noticed(tmp_path):
    def until_stopped():
        yield from EXAMPLES[:20]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, until_stopped())
    with pytest.raises(UserError, match="was made of 8 samples, now there are 5: the source has changed"):
        write(tmp_path, EXAMPLES[:5])
    assert not list(tmp_path.iterdir())
    write(tmp_path)
    with pytest.raises(UserError, match="the source has changed"):
        write(tmp_path, EXAMPLES[:5])
    assert not list(tmp_path.iterdir()), "the next run takes a shard that is there for its own"


def test_a_bad_sample_leaves_nothing(tmp_path):
    def samples():
        yield from EXAMPLES
        raise UserError("line 51 is bad")

    with pytest.raises(UserError, match="line 51"):
        write(tmp_path, samples())
    assert list(tmp_path.iterdir()) == []


def test_on_a_full_disk_what_is_finished_stays(tmp_path, monkeypatch):
    class FullWriter(tf.io.TFRecordWriter):
        def __init__(self, path):
            self.path = path
            super().__init__(path)

        def write(self, record):
            if "chunk-00002" in self.path:
                raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")
            super().write(record)

    with monkeypatch.context() as context:
        context.setattr(tf.io, "TFRecordWriter", FullWriter)
        with pytest.raises(tf.errors.ResourceExhaustedError):
            write(tmp_path / "parts")
    assert not list((tmp_path / "parts").glob("*_incomplete"))
    write(tmp_path / "parts")
    write(tmp_path / "whole")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_on_a_full_disk_the_chunks_of_unfinished_shards_stay(tmp_path):
    encoded = []

    def encode(numbers):
        encoded.extend(numbers)
        return as_ids(numbers)

    whole = write(tmp_path / "whole")
    pathlib.Path(f"{paths_in(tmp_path / 'parts')[1]}.t2t_lite_incomplete").symlink_to("/dev/full")
    with pytest.raises(Failure, match="p-train-00001-of-00003: the disk is full"):
        write(tmp_path / "parts", range(50), encode=encode)
    assert write(tmp_path / "parts", range(50), encode=encode) == whole
    assert encoded == list(range(50))  # nothing is done twice
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


@pytest.mark.slow  # a process that imports TensorFlow
def test_after_a_killed_process_the_same_command_goes_on(tmp_path):
    whole = write(tmp_path / "whole", EXAMPLES[:16])  # two chunks: the second one is a process's, which takes seconds
    with pytest.raises(Failure, match=r"^a process that encodes was killed.* with a smaller --num_workers[^\n]*$"):
        write(tmp_path / "parts", range(16), encode=killed_in_a_worker, num_workers=2)
    first = pathlib.Path(sharding.chunk_path(paths_in(tmp_path / "parts"), 0))
    written = first.stat().st_mtime_ns
    assert write(tmp_path / "parts", range(16), encode=killed_in_a_worker) == whole
    assert first.stat().st_mtime_ns == written, "it is not made again"
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
