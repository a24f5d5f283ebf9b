"""The format of records.

A record is a `tf.train.Example` of int64 lists such as `inputs` and `targets`, texts ending in 1. Mirrors
tensor2tensor's generator_utils.py; the names of files are tensor2tensor's.
"""

import re

import tensorflow as tf

from t2t_lite.errors import Failure, UserError, first_line, shown

SIDES = ("inputs", "targets")  # the features of most problems
LARGEST_ID = 2**31 - 1  # batches are int32
OUTSIDE = "an id is outside the vocabulary"


def serialize(example):
    """Returns {feature: ids} as the bytes of a `tf.train.Example`."""
    feature = {key: tf.train.Feature(int64_list=tf.train.Int64List(value=ids)) for key, ids in example.items()}
    # Deterministic: the features are a map, whose order differs from process to process.
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True)


def parse_batch(serialized, features=SIDES):
    """In a graph: records, string [n] -> {feature: int32 ragged [n, (length)]}.

    A record without ids in a feature, or with a negative id or one of more than 32 bits, raises a TensorFlow error that
    `naming_damage` explains. Without this check, training would see an empty example or a different id.
    """
    example = check_ids(tf.io.parse_example(serialized, _spec(features)))
    return {name: tf.cast(example[name], tf.int32) for name in features}


def parse_one(serialized, features=SIDES):
    """In a graph: one record, string [] -> {feature: int64 [length]}, checked as by `parse_batch`."""
    return check_ids(tf.io.parse_single_example(serialized, _spec(features)))


def _spec(features):
    return {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in features}


def check_ids(example, message="a record without its ids"):
    """In a graph: returns {feature: int64 [length], or ragged [n, (length)]}; raises `message` if its ids are wrong."""
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all([*map(_is_right, example.values())]), [message])]):
        return tf.nest.map_structure(tf.identity, example)


def _is_right(ids):
    lengths, ids = (ids.row_lengths(), ids.flat_values) if isinstance(ids, tf.RaggedTensor) else (tf.size(ids), ids)
    return (tf.reduce_min(lengths) > 0) & (tf.reduce_min(ids) >= 0) & (tf.reduce_max(ids) <= LARGEST_ID)


def find_fault(record, names=SIDES):
    """Returns the problem with the bytes of a record, or None.

    Args:
        record: bytes, expected to be a `tf.train.Example` with ids as `names`.
    """
    try:
        features = tf.train.Example.FromString(record).features.feature
    except Exception as error:  # protobuf's class has moved between versions
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


class naming_damage:
    """Context that turns TensorFlow's errors while reading records into a `UserError` that names file and record.

    Args:
        paths: paths of the files; finding the damaged one takes a pass over them.
        features: names of the features that records hold.
    """

    def __init__(self, *paths, features=SIDES):
        self._paths = paths
        self._features = features

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if not isinstance(error, _errors_of_reading()):
            return
        if fault := next(filter(None, (_find_fault(path, self._features) for path in self._paths)), None):
            raise UserError(fault) from None
        first, *others = self._paths
        name, cause = f"{first} and so on" if others else first, _first_line(error)
        if isinstance(error, tf.errors.DataLossError):
            raise UserError(
                f"{name}: was damaged when it was read ({cause}), and is intact now. Run the same command again. If "
                "the error comes back, the newest checkpoint contains the damaged data: delete this checkpoint."
            ) from None
        if outside := re.search(rf"{OUTSIDE}[^\]]*", str(error)):  # the cause may be truncated before it
            raise UserError(
                f"{name}: {outside[0]}. Records and vocabulary do not match: run t2t-datagen into an empty folder."
            ) from None
        raise Failure(f"{name}: the records are intact, but no batches can be made of them: {cause}") from error


def naming(dataset, paths, features=SIDES):
    """Yields the elements of a data set that reads records in `paths`, inside `naming_damage`."""
    with naming_damage(*paths, features=features):
        yield from dataset


def _errors_of_reading():
    """Returns the exceptions that TensorFlow raises for files that are damaged or unreadable."""
    errors = tf.errors
    return (
        errors.DataLossError, errors.InvalidArgumentError, errors.NotFoundError, errors.PermissionDeniedError,
        errors.FailedPreconditionError, errors.UnknownError,
        UnicodeDecodeError,  # if TensorFlow's message quotes bytes that are not UTF-8
    )  # fmt: skip


def _find_fault(path, features):
    """Returns the message about a file that cannot be read or trained on, or None if it is intact."""
    number = 0
    try:
        for batch in tf.data.TFRecordDataset(path).batch(1024):
            try:
                parse_batch(batch, features)
            except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
                for at, record in enumerate(batch.numpy(), number + 1):
                    if fault := find_fault(record, features):
                        return _wrong_record(path, at, fault, features)
            number += len(batch)
    except tf.errors.NotFoundError:
        return f"{path}: no such file. Run t2t-datagen again."
    except tf.errors.PermissionDeniedError:
        return f"{path}: no permission to read it. Change its permissions."
    except _errors_of_reading() as error:
        return f"{path}: damaged or not a file of records ({_first_line(error)}). Delete it and run t2t-datagen again."
    return None


def _wrong_record(path, number, fault, features):
    return (
        f"{path}: damaged or not a file of records (record {number:,}: {fault}). Expected ids as "
        f"{' and as '.join(features)}: delete it and run t2t-datagen again."
    )


def _first_line(error):
    return re.sub(r"^assertion failed: \[(.*?)(\] \[.*|$)", r"\1", first_line(error))  # the rest are the values
