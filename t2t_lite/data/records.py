"""TFRecord shards of `tf.train.Example`s: int64 lists `inputs` and `targets`, both ending in 1.

Mirrors tensor2tensor's generator_utils.py; the names of files are tensor2tensor's.
"""

import fnmatch
import os
import re

import tensorflow as tf

from t2t_lite import files
from t2t_lite.errors import Failure, UserError, shown

SIDES = ("inputs", "targets")
LARGEST_ID = 2**31 - 1  # batches are int32
OUTSIDE = "an id is outside the vocabulary"
_DAMAGE = (tf.errors.DataLossError, tf.errors.InvalidArgumentError)
_NOT_READABLE = (
    tf.errors.NotFoundError, tf.errors.PermissionDeniedError, tf.errors.FailedPreconditionError, tf.errors.UnknownError,
)  # fmt: skip
_SPEC = {side: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for side in SIDES}


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
    """In a graph: records, string [n] -> inputs and targets, each int32 ragged [n, (length)].

    A record without ids on a side, or with a negative id or one of more than 32 bits, raises a TensorFlow error that
    `naming_damage` explains. Without this check, training would see an empty example or a different id.
    """
    example = tf.io.parse_example(serialized, _SPEC)
    is_right = [
        (tf.reduce_min(side.row_lengths()) > 0)
        & (tf.reduce_min(side.flat_values) >= 0)
        & (tf.reduce_max(side.flat_values) <= LARGEST_ID)
        for side in example.values()
    ]
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_right), ["a record without its ids"])]):
        return tuple(tf.cast(example[side], tf.int32) for side in SIDES)


def find_fault(record):
    """Returns the problem with the bytes of a record, or None.

    Args:
        record: bytes, expected to be a `tf.train.Example` with ids as `inputs` and `targets`.
    """
    try:
        features = tf.train.Example.FromString(record).features.feature
    except Exception as error:  # protobuf's own class has moved from version to version
        if type(error).__name__ != "DecodeError":
            raise
        return "not a tf.train.Example"
    for side in SIDES:
        kind = features[side].WhichOneof("kind") if side in features else None
        if kind is None:
            return f"no {side} (found: {', '.join(map(shown, sorted(features))) or 'no feature'})"
        if kind != "int64_list":
            return f"{side} is a {kind}, no int64_list"
        if not features[side].int64_list.value:
            return f"{side} is empty"
        wrong = next((i for i in features[side].int64_list.value if not 0 <= i <= LARGEST_ID), None)
        if wrong is not None:
            return f"the id {wrong} in {side} is not from 0 to {LARGEST_ID}"
    return None


def _read(path):
    """Yields the records of a file as bytes."""
    for batch in tf.data.TFRecordDataset(path).batch(1024).as_numpy_iterator():  # one by one it takes 10 times as long
        yield from batch


def read_examples(paths):
    """Yields {"inputs": ids, "targets": ids} of all examples, file after file.

    Raises:
        UserError: a file is missing or damaged, or has other contents; the message names it.
    """
    for path in paths:
        with naming_damage(path):
            for number, record in enumerate(_read(path), 1):
                if fault := find_fault(record):
                    raise UserError(_wrong_record(path, number, fault))
                yield parse(record)


class naming_damage:
    """Context that turns TensorFlow's errors while reading records into a `UserError` that names file and record.

    Args:
        paths: paths of the files; finding the damaged one takes a pass over them.
    """

    def __init__(self, *paths):
        self._paths = paths

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if not isinstance(error, (*_DAMAGE, *_NOT_READABLE)):
            return
        if fault := next(filter(None, map(_find_fault, self._paths)), None):
            raise UserError(fault) from None
        first, *others = self._paths
        name, cause = f"{first} and its like" if others else first, _first_line(error)
        if isinstance(error, tf.errors.DataLossError):
            raise UserError(
                f"{name}: was damaged when it was read ({cause}), and is whole now. Run the same command again. "
                "Should this come again, then the newest checkpoint was saved with the damage already in its buffer: "
                "delete it."
            ) from None
        if outside := re.search(rf"{OUTSIDE}[^\]]*", cause):
            raise UserError(
                f"{name}: {outside[0]}. Records and vocabulary do not belong together: run t2t-datagen into an empty "
                "folder."
            ) from None
        raise Failure(f"{name}: whole, yet no batches can be made of these records: {cause}") from error


def naming(dataset, paths):
    """Yields the elements of a data set of records in `paths`, inside `naming_damage`."""
    with naming_damage(*paths):
        yield from dataset


def _find_fault(path):
    """Returns the message about a file that cannot be read or trained on, or None if it is intact."""
    number = 0
    try:
        for batch in tf.data.TFRecordDataset(path).batch(1024):
            try:
                parse_batch(batch)
            except tf.errors.InvalidArgumentError:
                for at, record in enumerate(batch.numpy(), number + 1):
                    if fault := find_fault(record):
                        return _wrong_record(path, at, fault)
            number += len(batch)
    except tf.errors.NotFoundError:
        return f"{path}: no such file. Run t2t-datagen again."
    except tf.errors.PermissionDeniedError:
        return f"{path}: no permission to read it. Change its permissions."
    except (*_DAMAGE, *_NOT_READABLE) as error:
        return f"{path}: damaged or not a file of records ({_first_line(error)}). Delete it and run t2t-datagen again."
    return None


def _wrong_record(path, number, fault):
    return (
        f"{path}: damaged or not a file of records (record {number:,}: {fault}). Expected ids as inputs and as "
        "targets: delete it and run t2t-datagen again."
    )


def _first_line(error):
    message = getattr(error, "message", None) or str(error)
    first = (re.sub(r"^\{\{.*?\}\} ", "", message).splitlines() or [""])[0].split(" [Op:")[0].strip()
    return re.sub(r"^assertion failed: \[(.*?)\] \[.*", r"\1", first)  # the rest are the values


def find_shards(folder, name, command):
    """Returns the sorted paths of a complete set of shards `<name>-00000-of-00010`.

    Args:
        folder: str.
        name: pattern of the files' names, such as `translate_own-train-?????-of-?????`.
        command: command to suggest if there are none.

    Raises:
        UserError: there is no file, some are missing, or there are shards of two sets.
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
