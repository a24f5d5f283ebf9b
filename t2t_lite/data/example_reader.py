"""Reads records and turns them into the examples that a model sees."""

import re

import tensorflow as tf

from t2t_lite.data import record_format
from t2t_lite.errors import UserError


class ExampleReader:
    """Parses, preprocesses, swaps or copies, and checks the examples of a problem.

    Args:
        problem: Problem, whose `preprocess_example`, `_rev` and `_copy` are applied.
        hparams: HParams for `preprocess_example`.
        mode: "train", "eval" or "infer", for `preprocess_example`.
        paths: list of str, the record files.
        encoders: {feature: encoder}, as `Problem.get_feature_encoders` returns them: an id outside its vocabulary
            raises a TensorFlow error that `record_format.naming_damage` explains. If None, ids are not checked.

    Attributes:
        preprocesses: bool, whether the problem overrides `preprocess_example`. If it does not, the dataset has no stage
            for preprocessing, so that saved iterators remain valid and records are parsed in batches.
    """

    def __init__(self, problem, hparams, mode, paths, encoders=None):
        self.problem = problem
        self.paths = list(paths)
        self.preprocesses = problem.overrides("preprocess_example")
        self._arguments = mode, hparams
        self._sizes = {name: encoder.vocab_size for name, encoder in (encoders or {}).items()}

    def naming_damage(self):
        """Returns the `record_format.naming_damage` context for the files."""
        return record_format.naming_damage(*self.paths, features=self.problem.record_features)

    def batched(self, serialized, count):
        """Returns a dataset whose elements are batches of `count` serialized examples, for `parse`.

        Raises:
            UserError: an iterator that calls `preprocess_example` could not be restored: see `check_stateless`.
        """
        if not self.preprocesses:
            return serialized.batch(count)
        examples = serialized.map(self._preprocess, num_parallel_calls=tf.data.AUTOTUNE)
        # `preprocess_example` may turn an example into several examples or none
        if isinstance(examples.element_spec, tf.data.DatasetSpec):
            examples = examples.flat_map(lambda dataset: dataset.map(_as_ids))
        check_stateless(examples, self.problem.preprocess_example)
        return examples.ragged_batch(count)

    def _preprocess(self, serialized):
        example = record_format.parse_one(serialized, self.problem.record_features)
        examples = self.problem.preprocess_example(example, *self._arguments)
        return examples if isinstance(examples, tf.data.Dataset) else _as_ids(examples)

    @tf.autograph.experimental.do_not_convert
    def stored(self, batch):
        """Parses an element of `batched` into {feature: int32 ragged [n, (length)]}, before `_rev` and `_copy`."""
        if not self.preprocesses:
            return record_format.parse_batch(batch, self.problem.record_features)
        batch = record_format.check_ids(batch, "preprocess_example returned a feature without ids, or an id below 0")
        return {name: tf.cast(ids, tf.int32) for name, ids in batch.items()}

    @tf.autograph.experimental.do_not_convert
    def parse(self, batch):
        """Parses like `stored`, applies `_rev` and `_copy`, checks the ids, and puts the problem's features first."""
        example = self.problem.maybe_reverse_and_copy(self.stored(batch))
        names = [name for name in self.problem.features if name in example]
        if self.problem.overrides("corrupt"):
            names += [name for name in example if name not in names]
        return {name: self._checked(name, example[name]) for name in names}

    def _checked(self, name, ids):
        if name not in self._sizes:
            return ids
        files = f"{self.paths[0]} and so on"
        message = f"{files}: {record_format.OUTSIDE} of {self._sizes[name]} ({name})"
        largest = tf.reduce_max(tf.concat([[0], ids.flat_values], 0))
        with tf.control_dependencies([tf.debugging.assert_less(largest, self._sizes[name], message)]):
            return ids.with_flat_values(tf.identity(ids.flat_values))

    def examples(self):
        """Yields each example as {feature: list of ids}, file after file.

        Raises:
            UserError: a file is missing, damaged or in another format; the message names it.
        """
        with self.naming_damage():
            for pool in self.batched(tf.data.TFRecordDataset(self.paths), 1024).map(self.parse):
                for row in zip(*(ids.to_list() for ids in pool.values()), strict=True):
                    yield dict(zip(pool, row, strict=True))


def _as_ids(example):
    """Casts the features of an example to int64 with unknown length, so that all examples have the same type."""
    ids = {name: tf.reshape(tf.cast(value, tf.int64), [-1]) for name, value in example.items()}
    return {name: tf.compat.v1.placeholder_with_default(value, [None]) for name, value in ids.items()}


def check_stateless(dataset, method):
    """Raises an error for a dataset whose iterator cannot be saved and resumed, before anything is read from it.

    Args:
        dataset: `tf.data.Dataset`.
        method: the user's method that the dataset calls, for the message.

    Raises:
        UserError: an operation of the dataset has a state that is not saved with the iterator.
    """
    policy = tf.data.experimental.ExternalStatePolicy.FAIL.value
    try:
        tf.raw_ops.DatasetToGraphV2(
            input_dataset=tf.data.experimental.to_variant(dataset), external_state_policy=policy
        )
    except tf.errors.FailedPreconditionError as error:
        operation = re.search(r"(\w+) is stateful", error.message)
        # for a class method, `__self__` is the class
        owner = method.__self__ if isinstance(method.__self__, type) else type(method.__self__)
        raise UserError(
            f"{owner.__name__}.{method.__name__}: uses {operation[1] if operation else 'an operation'}, whose state is "
            "not saved in checkpoints, so the run could not be resumed. Expected operations without state: generate "
            "random numbers in corrupt(batch, seeds), with t2t_lite.data.random_numbers.uniform_numbers or "
            "tf.random.stateless_uniform."
        ) from error
