import pathlib
import re

import pytest
import tensorflow as tf

from t2t_lite.data import manifests, record_format
from t2t_lite.data.example_reader import ExampleReader
from t2t_lite.data.problem import Problem
from t2t_lite.data.sharding import write_shards
from t2t_lite.errors import Failure, UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import TextEncoder
from tests.data import corpus

EXAMPLES = [{"inputs": [n + 2, 1], "targets": [n + 2, 3, 1]} for n in range(50)]


NINE = {"inputs": TextEncoder(9), "targets": TextEncoder(9)}


def paths_in(folder, shards=3):
    return [str(folder / f"p-train-{i:05d}-of-{shards:05d}") for i in range(shards)]


def examples_of(paths):
    return ExampleReader(Problem(), HParams(), "infer", paths).examples()


READERS = (
    examples_of,
    manifests.read_facts,
    lambda paths: list(record_format.naming(corpus.training_batches(paths, batch_size=4096).take(9), paths)),
    lambda paths: list(record_format.naming(corpus.evaluation_batches(paths), paths)),
    lambda paths: list(record_format.naming(corpus.evaluation_batches(paths, encoders=NINE), paths)),
)


def by_number(examples):
    return sorted(examples, key=lambda example: example["inputs"])


def test_the_format_is_tensor2tensors(tmp_path):
    write_shards(EXAMPLES[:1], paths_in(tmp_path, 1), seed=1)
    (record,) = tf.data.TFRecordDataset(paths_in(tmp_path, 1)).as_numpy_iterator()
    features = tf.train.Example.FromString(record).features.feature
    assert {key: list(value.int64_list.value) for key, value in features.items()} == EXAMPLES[0]


def test_all_ids_of_32_bits_are_read(tmp_path):
    largest = {"inputs": [2**31 - 1, 0], "targets": [1]}
    write_shards([largest], paths_in(tmp_path, 1), seed=1)
    assert list(examples_of(paths_in(tmp_path, 1))) == [largest]
    assert manifests.read_facts(paths_in(tmp_path, 1))["largest_id"] == {"inputs": 2**31 - 1, "targets": 1}


@pytest.mark.parametrize("damage", ["cut", "changed", "text"])
def test_damaged_files_are_named(tmp_path, damage):
    good, bad = paths_in(tmp_path, 2)
    write_shards(EXAMPLES, [good, bad], seed=1)
    data = bytearray(pathlib.Path(bad).read_bytes())
    data[len(data) // 2] ^= 255
    damaged = {"cut": data[:-7], "changed": data, "text": b"just some text, no record"}
    pathlib.Path(bad).write_bytes(damaged[damage])
    with pytest.raises(UserError, match=f"{bad}: damaged or not a file of records"):
        list(examples_of([good, bad]))


@pytest.mark.slow
def test_records_of_something_else_are_named(tmp_path):
    path = str(tmp_path / "other")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"\xff\xff no proto")
    for read in READERS:
        with pytest.raises(UserError, match="other: damaged or not a file of records"):
            list(read([path]))
    with pytest.raises(UserError, match="none: no such file"):
        list(examples_of([str(tmp_path / "none")]))


def feature(kind, values):
    lists = {"int64": tf.train.Int64List, "bytes": tf.train.BytesList, "float": tf.train.FloatList}
    return tf.train.Feature(**{f"{kind}_list": lists[kind](value=values)})


IDS = feature("int64", [5, 1])
WRONG_RECORDS = {
    "no targets": ({"inputs": IDS, "target": IDS}, r"no targets \(found: 'inputs', 'target'\)"),
    "no inputs": ({"targets": IDS}, "no inputs"),
    "nothing": ({}, r"no inputs \(found: no feature\)"),
    "without a kind": ({"inputs": tf.train.Feature(), "targets": IDS}, "no inputs"),
    "empty": ({"inputs": IDS, "targets": feature("int64", [])}, "targets is empty"),
    "bytes": ({"inputs": feature("bytes", [b"a"]), "targets": IDS}, "inputs is a bytes_list"),
    "floats": ({"inputs": IDS, "targets": feature("float", [1.0])}, "targets is a float_list"),
    "beyond 32 bits": ({"inputs": feature("int64", [2**32 + 5, 1]), "targets": IDS}, f"the id {2**32 + 5} in inputs"),
    "just beyond": ({"inputs": IDS, "targets": feature("int64", [2**31, 1])}, f"the id {2**31} in targets"),
    "far below": ({"inputs": IDS, "targets": feature("int64", [-(2**63), 1])}, f"the id {-(2**63)} in targets"),
}


@pytest.mark.parametrize(("features", "fault"), WRONG_RECORDS.values(), ids=WRONG_RECORDS)
def test_every_fault_has_its_words(features, fault):
    record = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    assert re.match(fault, record_format.find_fault(record))


@pytest.mark.few("bytes-3", "just beyond-3", "no targets-3")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "place"),
    [*((name, 3) for name in WRONG_RECORDS), ("no targets", 9000)],  # 9000: behind the sample for the pools' size
)
def test_records_that_cannot_be_trained_on_are_named_with_their_number(tmp_path, name, place):
    features, fault = WRONG_RECORDS[name]
    good, bad = paths_in(tmp_path, 2)
    for path, count in ((good, 10), (bad, place - 1)):
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(count):
                writer.write(record_format.serialize({"inputs": [5, 1], "targets": [6, 1]}))
            if path == bad:
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    expected = rf"{bad}: damaged or not a file of records \(record {place:,}: {fault}.*\). Expected ids"
    for read in READERS:
        with pytest.raises(UserError, match=expected):
            list(read([good, bad]))


@pytest.mark.slow
def test_errors_that_are_not_the_datas_do_not_blame_it(tmp_path):
    folder = tmp_path / ("a" * 200)  # no message is cut before what is wrong
    folder.mkdir()
    paths = paths_in(folder, 2)
    write_shards(EXAMPLES, paths, seed=1)
    with pytest.raises(Failure, match=r"the records are intact.*: odd"), record_format.naming_damage(*paths):
        raise tf.errors.InvalidArgumentError(None, None, "odd")
    outside = rf"{paths[0]} and so on: .* vocabulary of 9 \(inputs\)"
    with pytest.raises(UserError, match=outside):
        list(record_format.naming(corpus.evaluation_batches(paths, encoders=NINE), paths))
    with pytest.raises(ZeroDivisionError), record_format.naming_damage(*paths):
        raise ZeroDivisionError
