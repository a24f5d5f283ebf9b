"""Shards: everything once, shuffled by the seed alone, whatever the processes and the interruptions."""

import errno
import inspect
import itertools
import json
import multiprocessing
import os
import pathlib
import signal
import sys

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import files
from t2t_lite.cli import usr_dirs
from t2t_lite.data import sharding
from t2t_lite.errors import Failure, UserError
from tests import faults
from tests.data import hostile
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


def test_records_have_the_named_features_alone(tmp_path):
    """A ported problem may also yield text, such as a language."""
    write(tmp_path, [{**example, "language": "en", "more": [7]} for example in EXAMPLES])
    write(tmp_path / "same")
    assert contents(tmp_path) == contents(tmp_path / "same")


def test_a_sample_that_its_generator_changes_and_yields_again_is_several(tmp_path):
    def samples():
        sample = {}
        for example in EXAMPLES:
            sample.update(example)
            yield sample

    write(tmp_path)
    write(tmp_path / "same", samples())
    assert contents(tmp_path / "same") == contents(tmp_path)


def test_few_examples_are_dealt_evenly(tmp_path):
    assert [shard["examples"] for shard in write(tmp_path, EXAMPLES[:3], groups=[1, 1, 1])] == [1, 1, 1]


def test_groups_of_shards_are_counted_together(tmp_path):
    examples = [{"inputs": [9 + n] * n, "targets": [n, 1]} for n in range(40, 0, -1)]
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
            "largest_id": {side: max(example[side][0] for example in found) for side in ("inputs", "targets")},
            "bytes": [pathlib.Path(path).stat().st_size for path in group],
        }


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


@pytest.mark.long
@pytest.mark.slow  # two processes that import TensorFlow
def test_processes_do_not_matter(tmp_path, capfd):
    folder = tmp_path / "of a user"
    folder.mkdir()
    (folder / "__init__.py").write_text(inspect.getsource(as_ids))
    encode = sys.modules[usr_dirs.import_usr_dir(str(folder))].as_ids
    alone = write(tmp_path / "alone")
    others = write(tmp_path / "others", range(50), encode=encode, num_workers=2)
    assert capfd.readouterr().err == "", "what TensorFlow notes when it is imported is not shown"
    assert alone == others
    assert contents(tmp_path / "alone") == contents(tmp_path / "others")


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSYS])
def test_one_process_does_all_where_none_can_be_started(tmp_path, monkeypatch, caplog, code):
    def without_semaphores(*arguments):
        raise OSError(code, os.strerror(code))

    write(tmp_path / "one")
    monkeypatch.setattr(multiprocessing.get_context("spawn"), "Lock", without_semaphores)  # /dev/shm is read-only
    write(tmp_path / "others", range(50), encode=as_ids, num_workers=2)
    assert contents(tmp_path / "others") == contents(tmp_path / "one")
    (record,) = caplog.records
    assert record.getMessage().startswith("--num_workers=2: other processes cannot be started (")


def test_one_process_encodes_with_what_cannot_be_sent_to_others(tmp_path, caplog):
    write(tmp_path / "one")
    write(tmp_path / "others", range(50), encode=lambda numbers: as_ids(numbers), num_workers=2)
    assert contents(tmp_path / "others") == contents(tmp_path / "one")
    (record,) = caplog.records
    assert "they need an encoder that can be pickled" in record.getMessage()


class Encoder:
    """As `as_ids`; notes what it has encoded. Later samples have more ids, so that later chunks are larger files."""

    def __init__(self):
        self.encoded = []

    def __call__(self, numbers):
        self.encoded.extend(numbers)
        return [{"inputs": [n + 2] * (1 + n // 3) + [1], "targets": [n + 2, 3, 1]} for n in numbers]


@pytest.fixture
def whole(tmp_path):
    """The facts of the shards that are written without a fault, into `tmp_path / "whole"`."""
    return write(tmp_path / "whole", range(50), encode=Encoder())


def finish(folder, whole):
    """Writes the shards of a folder in which something went wrong, and nothing that is finished there again."""
    encode, chunks = Encoder(), [path for path in folder.glob("*.chunk-?????.json")]
    assert write(folder, range(50), encode=encode) == whole
    assert encode.encoded == list(range(8 * len(chunks), 50))
    assert contents(folder) == contents(folder.with_name("whole"))
    sharding.remove_chunks(paths_in(folder))
    assert len(list(folder.iterdir())) == 3
    return len(chunks)


@pytest.mark.parametrize("stop_at", [0, 1, 8, 30, 49])
def test_what_was_stopped_goes_on(tmp_path, whole, stop_at):
    def until_stopped():
        yield from range(stop_at)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "parts", until_stopped(), encode=Encoder())
    assert finish(tmp_path / "parts", whole) == stop_at // 8


def test_after_ctrl_c_at_any_line_the_same_command_goes_on(tmp_path, whole):
    with faults.interrupted_at(0, sharding) as lines:
        write(tmp_path / "0", range(50), encode=Encoder())
    for line in range(1, len(lines), 1 + len(lines) // 41):
        with pytest.raises(KeyboardInterrupt), faults.interrupted_at(line, sharding):
            write(tmp_path / str(line), range(50), encode=Encoder())
        finish(tmp_path / str(line), whole)


def test_on_a_disk_that_is_full_at_any_byte_what_is_finished_stays(tmp_path, whole):
    """Python writes the facts of chunks, and shards; TensorFlow writes the chunks themselves."""
    found = set()
    for room in itertools.count(100, 607):
        folder = tmp_path / str(room)
        try:
            with faults.full_disk(room):
                write(folder, range(50), encode=Encoder())
            break
        except Failure as error:
            assert "the disk is full" in str(error)
        assert not list(folder.glob("*_incomplete"))
        found.add(finish(folder, whole))
    assert found >= {0, 3, 7}


def test_where_no_larger_file_can_be_written_what_is_finished_stays(tmp_path, whole):
    sizes = [path.stat().st_size for path in sorted((tmp_path / "whole").glob("*.chunk-?????"))]
    assert sizes[2] < sizes[3]
    with pytest.raises((OSError, tf.errors.OpError)), faults.limited_files(sizes[3] - 1):
        write(tmp_path / "parts", range(50), encode=Encoder())
    assert not list((tmp_path / "parts").glob("*_incomplete"))
    assert finish(tmp_path / "parts", whole) == 3


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE])
def test_whatever_the_machine_lacks_what_is_finished_stays(tmp_path, whole, code):
    error = OSError(code, os.strerror(code))
    with pytest.raises((OSError, Failure)), faults.failing(sharding, "serialize", 21, error):
        write(tmp_path / "parts", range(50), encode=Encoder())
    assert finish(tmp_path / "parts", whole) == 2
    exhausted = tf.errors.ResourceExhaustedError(None, None, "out of memory")
    with pytest.raises(tf.errors.ResourceExhaustedError), faults.failing(files, "write_bytes", 6, exhausted):
        write(tmp_path / "more", range(50), encode=Encoder())
    assert finish(tmp_path / "more", whole) == 5


def test_another_source_is_noticed(tmp_path):
    def until_stopped():
        yield from EXAMPLES[:20]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, until_stopped())
    other = [{**EXAMPLES[0], "inputs": [9, 9, 1]}, *EXAMPLES[1:]]
    for samples in (EXAMPLES[:5], other):  # the second time the shards are there as well, and as many samples
        with pytest.raises(sharding.ChangedSource, match=r"chunk-00000: the source yields other samples"):
            write(tmp_path, samples)
        assert not list(tmp_path.iterdir()), "the next run would take a shard that is there for its own"
        write(tmp_path)


def test_another_number_in_the_middle_of_a_long_array_is_noticed(tmp_path):
    def samples(number, is_stopped):
        yield from [{"inputs": np.array([2] * 1000 + [number] + [3] * 1000), "targets": [4, 1]}] * 8
        if is_stopped:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, samples(5, True))
    with pytest.raises(sharding.ChangedSource):
        write(tmp_path, samples(6, False))


def test_a_bad_sample_leaves_nothing(tmp_path):
    def samples():
        yield from EXAMPLES
        raise UserError("line 51 is bad")

    with pytest.raises(UserError, match="line 51"):
        write(tmp_path, samples())
    assert list(tmp_path.iterdir()) == []


def test_chunks_that_are_damaged_are_refused_and_removed(tmp_path):
    """Whatever the file of facts holds, and where the chunk is not as long or not made of records."""
    examples, paths = EXAMPLES[:5], paths_in(tmp_path, 2)
    facts = sharding.write_shards(examples, paths, seed=1)
    chunk = tmp_path / f"{paths[0]}.chunk-00000"
    index = tmp_path / f"{chunk.name}.json"
    kept, refused = {path: path.read_bytes() for path in (chunk, index)}, 0
    variants = [json.dumps(changed).encode() for _, changed in hostile.variants(json.loads(index.read_text()))]
    for number, damaged in enumerate([b"", kept[chunk][:-1], b"\0" * len(kept[chunk]), kept[chunk][20:], *variants]):
        chunk.write_bytes(damaged if number < 4 else kept[chunk])
        index.write_bytes(kept[index] if number < 4 else damaged)
        for path in paths:
            pathlib.Path(path).unlink(missing_ok=True)
        try:
            sharding.write_shards(examples, paths, seed=1)
        except UserError as error:
            assert str(chunk) in str(error) and "\n" not in str(error)
            assert not list(tmp_path.iterdir()), "the next run starts over"
            refused += 1
        else:
            assert number >= 4
    assert refused > 100
    for path, data in kept.items():
        path.write_bytes(data)
    assert sharding.write_shards(examples, paths, seed=1) == facts


@pytest.mark.slow  # a process that imports TensorFlow
def test_after_a_killed_process_the_same_command_goes_on(tmp_path):
    whole = write(tmp_path / "whole", EXAMPLES[:16])  # two chunks: the second one is a process's, which takes seconds
    with pytest.raises(Failure, match=r"killed.*--num_workers[^\n]*$"):
        write(tmp_path / "parts", range(16), encode=killed_in_a_worker, num_workers=2)
    first = pathlib.Path(sharding.chunk_path(paths_in(tmp_path / "parts"), 0))
    written = first.stat().st_mtime_ns
    assert write(tmp_path / "parts", range(16), encode=killed_in_a_worker) == whole
    assert first.stat().st_mtime_ns == written, "it is not made again"
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
