import pathlib

import pytest
import tensorflow as tf

from t2t_lite.data import records
from t2t_lite.errors import UserError

EXAMPLES = [{"inputs": [n + 2, 1], "targets": [n + 2, 3, 1]} for n in range(50)]


def paths_in(folder, shards=3):
    return [str(folder / f"p-train-{i:05d}-of-{shards:05d}") for i in range(shards)]


def by_number(examples):
    return sorted(examples, key=lambda example: example["inputs"])


def test_what_is_written_is_read(tmp_path):
    counts = records.write_shards(iter(EXAMPLES), paths_in(tmp_path), seed=1)
    assert counts == [17, 17, 16]
    found = list(records.read_examples(paths_in(tmp_path)))
    assert by_number(found) == EXAMPLES
    assert found != EXAMPLES, "not shuffled"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"p-train-0000{i}-of-00003" for i in range(3)]


def test_the_format_is_tensor2tensors(tmp_path):
    records.write_shards(EXAMPLES[:1], paths_in(tmp_path, 1), seed=1)
    (record,) = tf.data.TFRecordDataset(paths_in(tmp_path, 1)).as_numpy_iterator()
    features = tf.train.Example.FromString(record).features.feature
    assert {key: list(value.int64_list.value) for key, value in features.items()} == EXAMPLES[0]


def test_the_seed_decides_the_order(tmp_path):
    found = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        records.write_shards(EXAMPLES, paths_in(tmp_path / name), seed=seed)
        found.append([pathlib.Path(path).read_bytes() for path in paths_in(tmp_path / name)])
    assert found[0] == found[1] != found[2]


def test_a_failure_leaves_nothing(tmp_path):
    def examples():
        yield from EXAMPLES
        raise UserError("line 51 is bad")

    with pytest.raises(UserError, match="line 51"):
        records.write_shards(examples(), paths_in(tmp_path), seed=1)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    class FullWriter(tf.io.TFRecordWriter):
        def write(self, record):
            if self.path.endswith("2-of-00003.incomplete"):
                raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")
            super().write(record)

        def __init__(self, path):
            self.path = path
            super().__init__(path)

    monkeypatch.setattr(tf.io, "TFRecordWriter", FullWriter)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        records.write_shards(EXAMPLES, paths_in(tmp_path), seed=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "changed", "text"])
def test_damaged_files_are_named(tmp_path, damage):
    good, bad = paths_in(tmp_path, 2)
    records.write_shards(EXAMPLES, [good, bad], seed=1)
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
    pattern = str(tmp_path / "p-train-?????-of-?????")
    with pytest.raises(UserError, match=r"no such records. Run: the command"):
        records.find_shards(pattern, "the command")
    paths = paths_in(tmp_path)
    for path in reversed(paths):
        pathlib.Path(path).touch()
    (tmp_path / "p-train-00003-of-00003.incomplete").touch()
    assert records.find_shards(pattern, "the command") == paths
    tf.io.gfile.remove(paths[1])
    with pytest.raises(UserError, match=r"2 of 3 shards are there. Run again: the command"):
        records.find_shards(pattern, "the command")
    (tmp_path / "p-train-00000-of-00001").touch()
    with pytest.raises(UserError, match="shards of 1 and of 3 lie together"):
        records.find_shards(pattern, "the command")
