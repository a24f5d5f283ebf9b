"""The data of a run, checked before a model is built, and the batches of its steps, placed on their devices."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import time

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.corpora.sentences import sentences
from t2t_lite.data import manifests, record_format
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.corruption import batch_features
from t2t_lite.data.example_batches import ExampleBatches
from t2t_lite.data.folder import encoder_files
from t2t_lite.data.records import Records
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.data.width_ladder import WidthLadder
from t2t_lite.decoding.sentence_parts import is_natural
from t2t_lite.errors import UserError
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.settings.reserved_names import BEFORE
from t2t_lite.text.vocabulary import vocabulary_sizes

_EXAMPLES_FOR_A_SHARE = 1000


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """The data that training reads.

    Attributes:
        problem: Problem.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}.
        encoder_files: {name: path} of the files that a run needs for the encoders.
        vocab_size: int, of the inputs, or of both sides.
        target_vocab_size: int; None if both sides share one vocabulary.
        records, dev_records: Records.
        examples: int, training examples within the limits of length.
        dropped: int, training examples outside those limits.
        cut: {split: int}, examples that are truncated to those limits.
        max_length: int, the upper limit, in ids with EOS.
        source: ExampleBatches.
        batches: tf.data.Dataset, the endless stream of one replica's batches.
        ladder: WidthLadder of the batches' shapes; None: any shapes.
    """

    problem: Problem
    encoders: dict
    encoder_files: dict
    vocab_size: int
    target_vocab_size: int | None
    records: Records
    dev_records: Records
    examples: int
    dropped: int
    cut: dict
    max_length: int
    source: ExampleBatches
    batches: tf.data.Dataset
    ladder: WidthLadder | None


def open_training_data(problem, hparams, data_dir, most_shapes=None, batches=ExampleBatches, lanes=None):
    """Returns the TrainingData of a run; writes nothing.

    Args:
        problem: str, its name.
        hparams: HParams.
        data_dir: str, the folder in which t2t-datagen wrote.
        most_shapes: int, largest number of batch shapes, for XLA; None: any number.
        batches: class of the batches: see `batches_of`.
        lanes: the result of its `lanes_of`.

    Raises:
        UserError: the problem is unknown, data are missing or do not fit together, or no example is within the limits
            of length; or as `batches`.
    """
    problem = registry.problem(problem)
    encoders = problem.get_feature_encoders(data_dir)
    vocab_size, target_vocab_size = vocabulary_sizes(encoders)
    records, dev_records = (Records(problem, data_dir, split) for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL))
    source = batches(problem, hparams, encoders, lanes)
    train = records.check_training(source.hparams)
    stream = source.training(records.paths, train.facts, most_shapes)
    dev_facts = dev_records.check(reads_records=True)
    cut = {DatasetSplit.TRAIN: train.cut, DatasetSplit.EVAL: manifests.count_cut(problem, hparams, dev_facts)}
    return TrainingData(
        problem, encoders, encoder_files(problem, data_dir), vocab_size, target_vocab_size, records, dev_records,
        train.examples, train.dropped, cut, source.longest, source, stream, source.ladder,
    )  # fmt: skip


def several_sentences(data):
    """Returns the share of the first thousand training examples whose inputs have several sentences.

    A run remembers it, and decoding splits texts by it: see `t2t_lite.decoding.sentence_parts.splits_sentences`. It is
    None if the texts are not natural language.

    Args:
        data: TrainingData.
    """
    if not is_natural(data.problem):
        return None
    texts = []
    for batch in tf.data.TFRecordDataset(data.records.paths[0]).batch(_EXAMPLES_FOR_A_SHARE).take(1):
        batch = data.problem.maybe_reverse_and_copy(record_format.parse_batch(batch, data.problem.record_features))
        texts = [data.encoders["inputs"].decode(ids) for ids in batch["inputs"].to_list()]
    return round(sum(len(sentences(text)) > 1 for text in texts) / max(len(texts), 1), 4)


def _of_another_rank(feature, features):
    """Describes a feature that a model reads with another rank, for a message; "" if the problem lacks it."""
    shape = {1: "a number per example", 2: "a row of ids per example"}.get(features.get(feature))
    return f", whose {feature} are {shape}" if shape else ""


def check_reads(model, problem):
    """Raises `UserError` unless the batches of a problem have the features that a model reads, each with its rank."""
    wanted = model.features if isinstance(model, SequenceModel) else {}
    features = batch_features(problem, type(model))
    if wrong := [f for f, rank in wanted.items() if f != BEFORE and features.get(f) != rank]:
        raise UserError(
            f"{type(model).__name__}: reads {', '.join(wanted)}; {problem.full_name} has {', '.join(problem.features)}"
            f"{_of_another_rank(wrong[0], features)}. Expected a model, or settings of it such as sentence_classes, "
            "for this problem."
        )
    task = registry.task_of(problem)
    if unread := [f for f in task.needed_features if f not in getattr(model, "features", ())]:
        raise UserError(
            f"{type(model).__name__}: does not read {unread[0]!r}, so that it would see the ids that it has to predict "
            f"for {problem.full_name}. Expected a model that reads it, such as --model={task.model}."
        )


def check_lengths(model, max_length, features):
    """Raises `UserError` unless a model has positions for rows of `max_length` ids; 0: rows of any length.

    The limit is the model's attribute `max_length`; None or no attribute means no limit. A model that `joins_inputs`
    needs positions for inputs and targets together, each of up to `max_length` ids.

    Args:
        model: keras.Model.
        max_length: int, ids of one feature.
        features: names of a batch's features.
    """
    limit = getattr(model, "max_length", None)
    if limit is None:
        return
    is_joined = getattr(model, "joins_inputs", False) and "inputs" in features
    most = limit // 2 if is_joined else limit
    if not 0 < max_length <= most:
        where = f"{limit:,} ids{', of inputs and targets together' if is_joined else ''}"
        raise UserError(
            f"max_length={max_length}: the model's table of positions has room for {where}. Expected a max_length from "
            f"1 to {most:,}: lower it (or t2t-datagen's --sequence_length, where rows have one), or raise max_position."
        )


@dataclasses.dataclass(frozen=True)
class StepBatches:
    """The batches of one step, over all machines, in host memory.

    Attributes:
        batches: list of dicts of int32 features, [rows, length] or [rows]: "targets" and others.
        first: int, index of the first of them in the stream.
    """

    batches: list
    first: int

    @property
    def end(self):
        """Index of the batch after the last one."""
        return self.first + len(self.batches)

    @property
    def sentences(self):
        """Number of examples."""
        return sum(len(batch["targets"]) for batch in self.batches)

    @functools.cached_property
    def counts(self):
        """{feature: int}, the number of ids that are not padding."""
        return {f: sum(int(np.count_nonzero(batch[f])) for batch in self.batches) for f in self.batches[0]}

    @property
    def cells(self):
        """Number of ids of all features, padding included."""
        return sum(np.size(ids) for batch in self.batches for f, ids in batch.items() if f != BEFORE)


class Feed(contextlib.AbstractContextManager):
    """Context manager that provides the batches of one step after the other.

    The stream is an iterator on the host, whose position a checkpoint saves. After `fetch_ahead` it is one step ahead,
    so that no checkpoint may be saved before the next `take`.

    Args:
        iterator: iterator of the stream's batches.
        first: int, index of the next batch.
        train_step: TrainStep that takes the batches.
        paths, features: the record files and the features that they hold, for error messages.

    Attributes:
        seconds_waited: float, total time that `take` has waited for data.
    """

    def __init__(self, iterator, first, train_step, paths, features):
        self._iterator = iterator
        self._first = first
        self._train_step = train_step
        self._paths = paths
        self._features = features
        # In a thread, because a step's call returns only when the device knows whether the gradient is finite.
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._ahead = None
        self.seconds_waited = 0.0

    def fetch_ahead(self):
        """Starts to read and place the next step's batches in the background."""
        self._ahead = self._thread.submit(self._read)

    def take(self):
        """Returns the next step's (StepBatches, PlacedBatches).

        Raises:
            UserError: the data are damaged.
        """
        started = time.monotonic()
        taken = self._ahead.result() if self._ahead else self._read()
        self._ahead = None
        self.seconds_waited += time.monotonic() - started
        return taken

    def _read(self):
        with record_format.naming_damage(*self._paths, features=self._features):
            batches = StepBatches([next(self._iterator) for _ in range(self._train_step.batches_a_step)], self._first)
        self._first = batches.end
        return batches, self._train_step.place(batches)

    def __exit__(self, *_):
        self._thread.shutdown()
