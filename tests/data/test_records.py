import pathlib

import pytest
import tensorflow as tf

from t2t_lite.data import records
from t2t_lite.data.sharding import write_shards
from t2t_lite.errors import UserError

EXAMPLES = [{"inputs": [n + 2, 1], "targets": [n + 2, 3, 1]} for n in range(50)]


def paths_in(folder, shards=3):
    return [str(folder / f"p-train-{i:05d}-of-{shards:05d}") for i in range(shards)]


def by_number(examples):
    return sorted(examples, key=lambda example: example["inputs"])


def test_the_format_is_tensor2tensors(tmp_path):
    write_shards(EXAMPLES[:1], paths_in(tmp_path, 1), seed=1)
    (record,) = tf.data.TFRecordDataset(paths_in(tmp_path, 1)).as_numpy_iterator()
    features = tf.train.Example.FromString(record).features.feature
    assert {key: list(value.int64_list.value) for key, value in features.items()} == EXAMPLES[0]


@pytest.mark.parametrize("damage", ["cut", "changed", "text"])
def test_damaged_files_are_named(tmp_path, damage):
    good, bad = paths_in(tmp_path, 2)
    write_shards(EXAMPLES, [good, bad], seed=1)
    data = bytearray(pathlib.Path(bad).read_bytes())
    data[len(data) // 2] ^= 255
    damaged = {"cut": data[:-7], "changed": data, "text": b"just some text, no record"}
    pathlib.Path(bad).write_bytes(damaged[damage])
    with pytest.raises(UserError, match=f"{bad}: damaged or not a file of records"):
        list(records.read_examples([good, bad]))


def test_records_of_something_else_are_named(tmp_path):
    path = str(tmp_path / "other")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"\xff\xff no proto")
    with pytest.raises(UserError, match="other: damaged or not a file of records"):
        list(records.read_examples([path]))
    with pytest.raises(UserError, match="none: no such file"):
        list(records.read_examples([str(tmp_path / "none")]))


def test_only_complete_sets_are_found(tmp_path):
    there = str(tmp_path), "p-train-?????-of-?????"
    with pytest.raises(UserError, match=r"no such records. Run: the command"):
        records.find_shards(*there, "the command")
    paths = paths_in(tmp_path)
    for path in reversed(paths):
        pathlib.Path(path).touch()
    (tmp_path / "p-train-00003-of-00003.incomplete").touch()
    assert records.find_shards(*there, "the command") == paths
    tf.io.gfile.remove(paths[1])
    with pytest.raises(UserError, match=r"2 of 3 shards are there. Run again: the command"):
        records.find_shards(*there, "the command")
    (tmp_path / "p-train-00000-of-00001").touch()
    with pytest.raises(UserError, match="shards of 1 and of 3 lie together"):
        records.find_shards(*there, "the command")
