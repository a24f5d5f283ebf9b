"""TFRecord shards of `tf.train.Example`s: int64 lists `inputs` and `targets`, both ending in 1.

Mirrors tensor2tensor's generator_utils.py; the names of files are tensor2tensor's.
"""

import fnmatch
import os
import re

import tensorflow as tf

from t2t_lite.data import files
from t2t_lite.errors import UserError

_DAMAGE = (tf.errors.DataLossError, tf.errors.InvalidArgumentError)
_SPEC = {key: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for key in ("inputs", "targets")}


def serialize(example):
    """Returns {"inputs": ids, "targets": ids} as the bytes of a `tf.train.Example`."""
    feature = {key: tf.train.Feature(int64_list=tf.train.Int64List(value=ids)) for key, ids in example.items()}
    # Deterministic: the features are a map, whose order differs from process to process.
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True)


def parse(record):
    """Returns the lists of ids in the bytes of a `tf.train.Example`."""
    features = tf.train.Example.FromString(record).features.feature
    return {key: list(features[key].int64_list.value) for key in sorted(features)}


def parse_batch(serialized):
    """In a graph: records, string [n] -> inputs and targets, each int32 ragged [n, (length)]."""
    example = tf.io.parse_example(serialized, _SPEC)
    return tf.cast(example["inputs"], tf.int32), tf.cast(example["targets"], tf.int32)


def _read(path):
    """Yields the records of a file as bytes."""
    for batch in tf.data.TFRecordDataset(path).batch(1024).as_numpy_iterator():  # one by one it takes 10 times as long
        yield from batch


def read_examples(paths):
    """Yields {"inputs": ids, "targets": ids} of all examples, file after file.

    Raises:
        UserError: a file is missing, damaged, or does not hold such examples; it is named.
    """
    for path in paths:
        with naming_damage(path):
            for record in _read(path):
                yield parse(record)


class naming_damage:
    """Context that turns TensorFlow's errors while reading records into a `UserError` that names the file.

    Args:
        paths: of the files; of several the damaged one is searched for, which takes a pass over them.
    """

    def __init__(self, *paths):
        self._paths = paths

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if isinstance(error, tf.errors.NotFoundError):
            raise UserError(f"{self._name()}: no such file. Run t2t-datagen again.") from None
        if isinstance(error, tf.errors.DataLossError) and not any(map(_is_damaged, self._paths)):
            raise UserError(
                f"{self._name()}: was damaged when it was read ({_first_line(error)}), and is whole now. Run the same "
                "command again. Should this come again, then the newest checkpoint was saved with the damage already "
                "in its buffer: delete it."
            ) from None
        if isinstance(error, _DAMAGE) or _is_proto_error(error):
            raise UserError(
                f"{self._name()}: damaged or not a file of records ({_first_line(error)}). Delete it and run "
                "t2t-datagen again."
            ) from None

    def _name(self):
        first, *others = self._paths
        return next(filter(_is_damaged, self._paths), f"{first} and its like") if others else first


def naming(dataset, paths):
    """Yields what a data set of records in `paths` holds, inside of `naming_damage`."""
    with naming_damage(*paths):
        yield from dataset


def _is_damaged(path):
    try:
        for _ in tf.data.TFRecordDataset(path).batch(1024).map(parse_batch):
            pass
    except (*_DAMAGE, tf.errors.NotFoundError):
        return True
    return False


def _is_proto_error(error):
    return type(error).__name__ == "DecodeError"


def _first_line(error):
    message = getattr(error, "message", None) or str(error)
    first = re.sub(r"^\{\{.*?\}\} ", "", message).splitlines()[0].split(" [Op:")[0].strip()
    return re.sub(r"^assertion failed: \[(.*?)\] \[.*", r"\1", first)  # the rest are the values


def find_shards(folder, name, command):
    """Returns the sorted paths of a complete set of shards `<name>-00000-of-00010`.

    Args:
        folder: str.
        name: a pattern of the files' names, such as `translate_own-train-?????-of-?????`.
        command: what to run when there are none.

    Raises:
        UserError: no file, some missing, or shards of two sets.
    """
    pattern = os.path.join(folder, name)
    paths = files.list_files(folder, fnmatch.translate(name))
    paths = [path for path in paths if re.search(r"-\d{5}-of-\d{5}$", path)]
    if not paths:
        raise UserError(f"{pattern}: no such records. Run: {command}")
    totals = {int(path[-5:]) for path in paths}
    if len(totals) > 1:
        raise UserError(
            f"{pattern}: shards of {' and of '.join(map(str, sorted(totals)))} lie together. Delete those that do not "
            f"belong here and run: {command}"
        )
    total = totals.pop()
    if len(paths) != total:
        raise UserError(f"{pattern}: {len(paths)} of {total} shards are there. Run again: {command}")
    return paths
