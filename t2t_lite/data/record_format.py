"""Serializes, parses and validates records.

A record is a `tf.train.Example` with int64 lists such as `inputs` and `targets`; the ids of a text end in 1. Mirrors
tensor2tensor's generator_utils.py, including the names of files.
"""

import contextlib
import re

import tensorflow as tf

from t2t_lite.errors import Failure, UserError, first_line, shown

SIDES = ("inputs", "targets")  # the features that most problems have
LARGEST_ID = 2**31 - 1  # the largest id that a record may contain, because batches are int32
OUTSIDE = "an id is outside the vocabulary"


def serialize(example):
    """Serializes {feature: ids} as a `tf.train.Example`, bytes."""
    feature = {key: tf.train.Feature(int64_list=tf.train.Int64List(value=ids)) for key, ids in example.items()}
    # The serialization is deterministic. Otherwise the order of the features, a map, would differ from process to
    # process.
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True)


def parse_batch(serialized, features=SIDES):
    """Parses records, string [n], into {feature: int32 ragged [n, (length)]}; works in a graph.

    If a feature of a record is empty, or an id is negative or too large for int32, a TensorFlow error is raised, which
    `naming_damage` explains. Without these checks, training would see an empty example or a different id.
    """
    example = check_ids(tf.io.parse_example(serialized, _spec(features)))
    return {name: tf.cast(example[name], tf.int32) for name in features}


def parse_one(serialized, features=SIDES):
    """Parses one record, string [], into {feature: int64 [length]}, with the checks of `parse_batch`."""
    return check_ids(tf.io.parse_single_example(serialized, _spec(features)))


def _spec(features):
    return {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in features}


def check_ids(example, message="a record without its ids"):
    """Returns {feature: int64 [length] or ragged [n, (length)]} with an assertion that its ids are valid."""
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all([*map(_is_right, example.values())]), [message])]):
        return tf.nest.map_structure(tf.identity, example)


def _is_right(ids):
    lengths, ids = (ids.row_lengths(), ids.flat_values) if isinstance(ids, tf.RaggedTensor) else (tf.size(ids), ids)
    return (tf.reduce_min(lengths) > 0) & (tf.reduce_min(ids) >= 0) & (tf.reduce_max(ids) <= LARGEST_ID)


def find_fault(record, names=SIDES):
    """Describes what is wrong with the bytes of a record; returns None if the record is valid.

    Args:
        record: bytes, expected to be a `tf.train.Example` that has lists of ids as the features `names`.
    """
    try:
        features = tf.train.Example.FromString(record).features.feature
    except Exception as error:  # checked by name, since versions of protobuf define DecodeError in different modules
        if type(error).__name__ != "DecodeError":
            raise
        return "not a tf.train.Example"
    for name in names:
        kind = features[name].WhichOneof("kind") if name in features else None
        if kind is None:
            return f"no {name} (found: {', '.join(map(shown, sorted(features))) or 'no feature'})"
        if kind != "int64_list":
            return f"{name} is a {kind}, not an int64_list"
        if not features[name].int64_list.value:
            return f"{name} is empty"
        wrong = next((i for i in features[name].int64_list.value if not 0 <= i <= LARGEST_ID), None)
        if wrong is not None:
            return f"the id {wrong} in {name} is not from 0 to {LARGEST_ID}"
    return None


@contextlib.contextmanager
def naming_damage(*paths, features=SIDES):
    """Context manager that turns TensorFlow's errors about records into `UserError`s that name the file and the record.

    Args:
        paths: paths of the files; after an error, they are read again to find the damaged file.
        features: names of the features that records hold.
    """
    try:
        yield
    except _errors_of_reading() as error:
        if fault := next(filter(None, (_find_fault(path, features) for path in paths)), None):
            raise UserError(fault) from None
        first, *others = paths
        name, cause = f"{first} and so on" if others else first, _first_line(error)
        if isinstance(error, tf.errors.DataLossError):
            raise UserError(
                f"{name}: was damaged when it was read ({cause}), but is intact now. Run the same command again. If "
                "the error comes back, the newest checkpoint contains the damaged data: delete this checkpoint."
            ) from None
        # the text of the whole error is searched, since `cause` may be truncated
        if outside := re.search(rf"{OUTSIDE}[^\]]*", str(error)):
            raise UserError(
                f"{name}: {outside[0]}. Records and vocabulary do not match: run t2t-datagen into an empty folder."
            ) from None
        raise Failure(f"{name}: the records are intact, but making batches from them failed: {cause}") from error


def naming(dataset, paths, features=SIDES):
    """Yields the elements of a dataset that reads the record files `paths`; `naming_damage` explains errors."""
    with naming_damage(*paths, features=features):
        yield from dataset


def _errors_of_reading():
    """Returns the classes of exceptions that TensorFlow raises for damaged or unreadable files."""
    errors = tf.errors
    return (
        errors.DataLossError, errors.InvalidArgumentError, errors.NotFoundError, errors.PermissionDeniedError,
        errors.FailedPreconditionError, errors.UnknownError,
        UnicodeDecodeError,  # raised if TensorFlow's message quotes invalid UTF-8
    )  # fmt: skip


def _find_fault(path, features):
    """Reads a record file and returns a message about its first fault, or None if the file is intact."""
    number = 0
    try:
        for batch in tf.data.TFRecordDataset(path).batch(1024):
            try:
                parse_batch(batch, features)
            except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
                for at, record in enumerate(batch.numpy(), number + 1):
                    if fault := find_fault(record, features):
                        return (
                            f"{path}: damaged or not a file of records (record {at:,}: {fault}). Expected ids as "
                            f"{' and as '.join(features)}: delete it and run t2t-datagen again."
                        )
            number += len(batch)
    except tf.errors.NotFoundError:
        return f"{path}: no such file. Run t2t-datagen again."
    except tf.errors.PermissionDeniedError:
        return f"{path}: no permission to read it. Change its permissions."
    except _errors_of_reading() as error:
        return f"{path}: damaged or not a file of records ({_first_line(error)}). Delete it and run t2t-datagen again."
    return None


def _first_line(error):
    # Removes the tensor values that TensorFlow appends to the message of an assertion.
    return re.sub(r"^assertion failed: \[(.*?)(\] \[.*|$)", r"\1", first_line(error))
