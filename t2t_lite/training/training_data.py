"""Opens and checks the training data of a run, and provides the batches of its steps on their devices."""

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
from t2t_lite.decoding.sentence_parts import is_natural
from t2t_lite.errors import UserError
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.settings.reserved_names import BEFORE
from t2t_lite.text.vocabulary import EOS_ID

_EXAMPLES_FOR_A_SHARE = 1000


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """The training data of a run, with its vocabularies, records and batches.

    Attributes:
        problem: Problem.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}.
        encoder_files: {name: path}, the files that a run needs for its encoders.
        records, dev_records: Records of the training set and the dev set.
        examples: int, the number of training examples within the length limits.
        dropped: int, the number of training examples outside the length limits.
        cut: {split: int}, the number of examples that are truncated to the length limits, in the splits that are used.
        source: ExampleBatches, which creates `batches`, within its length limits and batch shapes.
        batches: tf.data.Dataset, an endless stream of batches for one replica.
    """

    problem: Problem
    encoders: dict
    encoder_files: dict
    records: Records
    dev_records: Records
    examples: int
    dropped: int
    cut: dict
    source: ExampleBatches
    batches: tf.data.Dataset


def open_training_data(
    problem, hparams, data_dir, most_shapes=None, batches=ExampleBatches, lanes=None, evaluates=True
):
    """Opens and checks the TrainingData of a run; writes no files.

    Args:
        problem: str, the name of the problem.
        hparams: HParams.
        data_dir: str, the folder where t2t-datagen wrote the data.
        most_shapes: int, the maximum number of batch shapes for XLA. None: no limit.
        batches: the class of batches: see `batches_of`.
        lanes: the result of `batches.lanes_of`.
        evaluates: bool, whether the run needs the dev set, which is then checked, too.

    Raises:
        UserError: if the problem is unknown, data are missing or do not match, or no example is within the length
            limits. `batches` may raise `UserError` for further reasons.
    """
    problem = registry.problem(problem)
    encoders = problem.get_feature_encoders(data_dir)
    records, dev_records = (Records(problem, data_dir, split) for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL))
    source = batches(problem, hparams, encoders, lanes)
    train = records.check_training(source.hparams)
    stream = source.training(records.paths, train.facts, most_shapes)
    cut = {DatasetSplit.TRAIN: train.cut}
    if evaluates:
        dev_facts = dev_records.check(reads_records=True)
        cut[DatasetSplit.EVAL] = manifests.count_cut(problem, hparams, dev_facts)
    return TrainingData(
        problem, encoders, encoder_files(problem, data_dir), records, dev_records, train.examples, train.dropped, cut,
        source, stream,
    )  # fmt: skip


def several_sentences(data):
    """Returns the proportion of the first thousand training examples whose inputs have several sentences.

    The run remembers this number, because it decides whether decoding splits texts into sentences: see
    `t2t_lite.decoding.sentence_parts.splits_sentences`. The result is None if the texts are not natural language.

    Args:
        data: TrainingData.
    """
    if not is_natural(data.problem):
        return None
    texts = []
    for batch in tf.data.TFRecordDataset(data.records.paths[0]).batch(_EXAMPLES_FOR_A_SHARE).take(1):
        batch = data.problem.maybe_reverse_and_copy(record_format.parse_batch(batch, data.problem.record_features))
        texts = [data.encoders["inputs"].decode([i for i in ids if i != EOS_ID]) for ids in batch["inputs"].to_list()]
    return round(sum(len(sentences(text)) > 1 for text in texts) / max(len(texts), 1), 4)


def _of_another_rank(feature, features):
    """Returns the part of a message that describes the shape of a feature; "" if the problem lacks the feature."""
    shape = {1: "a number per example", 2: "a row of ids per example"}.get(features.get(feature))
    return f", whose {feature} are {shape}" if shape else ""


def check_reads(model, problem):
    """Raises `UserError` if a problem's batches lack a feature that a model reads or give it a different rank, or if a
    model that generates its outputs is given a problem for encoders.
    """
    ranks = model.features if isinstance(model, SequenceModel) else {}
    features = batch_features(problem, type(model))
    if wrong := [f for f, rank in ranks.items() if f != BEFORE and features.get(f) != rank]:
        raise UserError(
            f"{type(model).__name__} reads {', '.join(ranks)}, but {problem.full_name} has "
            f"{', '.join(problem.features)}{_of_another_rank(wrong[0], features)}. Expected a model for this problem, "
            "or other settings of the model, such as sentence_classes."
        )
    task = registry.task_of(problem)
    if unread := [f for f in task.needed_features if f not in getattr(model, "features", ())]:
        raise UserError(
            f"{type(model).__name__} does not read {unread[0]!r}, so it would see the ids that it must predict "
            f"for {problem.full_name}. Expected a model that reads {unread[0]!r}, such as --model={task.model}."
        )
    generates = isinstance(model, SequenceModel) and hasattr(model, "init_cache") and "head" not in model.config
    if generates and task.answered_by == "Predictor":
        raise UserError(
            f"{type(model).__name__} generates its outputs one by one, but {problem.full_name} has the task "
            f"{task.name}. Expected an encoder, such as --model={task.model}."
        )


def check_lengths(model, max_length, features):
    """Raises `UserError` if a model lacks positions for rows of `max_length` ids (0 means rows of any length).

    The limit is the model's attribute `max_length`. If the attribute is None or missing, lengths are not limited. A
    model with `joins_inputs` needs positions for inputs and targets together, each with up to `max_length` ids.

    Args:
        model: keras.Model.
        max_length: int, the maximum number of ids in one feature.
        features: the names of the features in a batch.
    """
    limit = getattr(model, "max_length", None)
    if limit is None:
        return
    is_joined = getattr(model, "joins_inputs", False) and "inputs" in features
    most = limit // 2 if is_joined else limit
    if not 0 < max_length <= most:
        where = f"{limit:,} ids{' (inputs and targets together)' if is_joined else ''}"
        raise UserError(
            f"max_length={max_length}: the model's position table has room for {where}. Expected a max_length from "
            f"1 to {most:,}. Lower max_length (or t2t-datagen's --sequence_length, if set), or raise max_position."
        )


@dataclasses.dataclass(frozen=True)
class StepBatches:
    """The batches of one step on all machines, in host memory.

    Attributes:
        batches: list of dicts of int32 features, [rows, length] or [rows], including "targets".
        first: int, the index of the step's first batch in the data stream.
    """

    batches: list
    first: int

    @property
    def end(self):
        """The stream index of the batch that follows the step's last batch."""
        return self.first + len(self.batches)

    @property
    def sentences(self):
        """The number of examples in the batches of the step."""
        return sum(len(batch["targets"]) for batch in self.batches)

    @functools.cached_property
    def counts(self):
        """The numbers of ids that are not padding, {feature: int}."""
        return {f: sum(int(np.count_nonzero(batch[f])) for batch in self.batches) for f in self.batches[0]}

    @property
    def cells(self):
        """The number of ids in all features, including padding."""
        return sum(np.size(ids) for batch in self.batches for f, ids in batch.items() if f != BEFORE)


class Feed(contextlib.AbstractContextManager):
    """Context manager that provides the batches of each step in turn, on the devices that use them.

    The stream is an iterator on the host, whose position is saved in checkpoints. After `fetch_ahead` the iterator is
    one step ahead, so a checkpoint must not be saved before the next `take`.

    Args:
        iterator: iterator over the batches of the stream.
        first: int, the index of the next batch.
        train_step: the TrainStep that uses the batches.
        paths, features: the record files and their features, for error messages.

    Attributes:
        seconds_waited: float, the total time that `take` has waited for data.
    """

    def __init__(self, iterator, first, train_step, paths, features):
        self._iterator = iterator
        self._first = first
        self._train_step = train_step
        self._paths = paths
        self._features = features
        # Batches are placed in a separate thread, because the call of a step only returns when the device has checked
        # whether the gradient is finite.
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._ahead = None
        self.seconds_waited = 0.0

    def fetch_ahead(self):
        """Starts reading and placing the next step's batches in the background."""
        self._ahead = self._thread.submit(self._read)

    def take(self):
        """Returns the next step's (StepBatches, PlacedBatches).

        Raises:
            UserError: if the data are damaged.
        """
        started = time.monotonic()
        step = self._ahead.result() if self._ahead else self._read()
        self._ahead = None
        self.seconds_waited += time.monotonic() - started
        return step

    def _read(self):
        with record_format.naming_damage(*self._paths, features=self._features):
            batches = StepBatches([next(self._iterator) for _ in range(self._train_step.batches_a_step)], self._first)
        self._first = batches.end
        return batches, self._train_step.place(batches)

    def __exit__(self, *_):
        self._thread.shutdown()
