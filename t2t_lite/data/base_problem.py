"""The base class of all problems: a data set, its vocabularies and its files."""

from __future__ import annotations

import collections
import os
import types
from typing import TYPE_CHECKING, Any

from t2t_lite import registry
from t2t_lite.corpora.plain_text import BadLines
from t2t_lite.data.named_problems import GenerationSettings
from t2t_lite.data.splits import FILE_TAGS, DatasetSplit, generated, warn_of_others
from t2t_lite.errors import NotWritten, UserError
from t2t_lite.files.file_errors import explain
from t2t_lite.tasks.task import SequenceToSequenceTask
from t2t_lite.text import vocabulary_files

if TYPE_CHECKING:
    import tensorflow as tf

    from t2t_lite.settings.config import HParams


class Problem:
    """A data set and its vocabulary. Subclasses define `generate_encoded_samples` and `feature_encoders`.

    Args:
        was_reversed: whether inputs and targets are swapped when records are read (`<name>_rev`). The suffix does not
            change the records on disk.
        was_copy: whether a copy of the inputs replaces the targets (`<name>_copy`), after any reversal.

    Attributes:
        name: the registered name, without suffixes; set by the registry.
        features: {feature: rank}, the features of a batch in order. Each is an int32 tensor of ids; 0 is padding
            and is not scored. A feature of rank 2 has the shape [rows, length]. A feature of rank 1 has the shape
            [rows]; a record stores it as a list of one id.
        smallest_corpus: the smallest input that yields an example, as error messages describe it after "Expected".
        random_seed: seed for generation; the same seed gives the same files.
        max_cases: maximum number of samples per split (`ChoppedTextProblem`: of pieces of text); 0: no limit.
        num_workers: number of processes that encode samples; it does not affect the generated files.
        targets_are_places: whether targets refer to positions in the inputs, so that inputs must not be resegmented.
        keeps_pieces: whether texts must not be resegmented, because a different segmentation would reveal the answer.
        rows_are_windows: whether a record is an arbitrary part of a longer text, so that ids may be cut off at both
            ends of the record.
        cuts_rows: whether `preprocess_example` truncates examples to `max_length`, so that none is dropped.
        skip_bad_lines: whether unreadable lines of corpora are skipped and counted instead of raising an error.
        write_shards: None, or a function that writes a split's shards on other machines. It takes a `generation.Source`
            and the layout, as for `sharding.write_shards`, and returns (facts of each group, `Source.counts()`).
    """

    name = "problem"
    smallest_corpus = "at least one"
    random_seed = GenerationSettings.random_seed
    max_cases = GenerationSettings.max_cases
    num_workers = 1
    targets_are_places = False
    keeps_pieces = False
    rows_are_windows = False
    cuts_rows = False
    write_shards = None
    skip_bad_lines = False

    def __init__(self, was_reversed: bool = False, was_copy: bool = False):
        self.was_reversed = was_reversed
        self.was_copy = was_copy
        self._encoders = {}
        self.removed = collections.Counter()  # {reason: number of samples skipped in the last pass over a split}
        self._bad_lines = BadLines(self.removed)
        self.unit_counts = collections.Counter()  # {unit: number of units in the last pass}, for `loss_metrics`

    # Attributes that subclasses set.

    task = SequenceToSequenceTask.name  # see `t2t_lite.tasks`
    unit = None  # the word for an input in messages, such as "image"; None means the task's word
    answered_by = None  # the class whose `load` method `t2t_lite.load` calls; None means the task's class
    features = types.MappingProxyType({"inputs": 2, "targets": 2})
    is_generate_per_split = True
    ordered_splits = ()  # names of the splits whose records keep the order of the samples; such a split has one shard
    language_pair = None
    eval_decode_metric = "exact_sequence_accuracy"
    loss_metrics = ()  # names of losses per unit: for "bits_per_dim", generation counts "dim" in `unit_counts`
    # {file name extension such as "png": function}, the functions with which t2t-decoder reads or writes files that are
    # not lines of text. read(path, encoders) returns a list of inputs, each a str or a list of ids; the path may be a
    # folder of such files. write(path, answers, encoders) returns {path: bytes}; answers is a list of (input, outputs),
    # in which each output is a list of ids.
    readers = types.MappingProxyType({})
    writers = types.MappingProxyType({})
    decode_defaults = types.MappingProxyType({})  # replaces defaults of `SearchOptions`, for example {"beam_size": 21}
    substitution = None  # an object that replaces parts of texts with symbols, see `data.source_text`
    chooses_output = False  # whether to call `choose_output`; this slows down the search, as the whole beam must finish

    @property
    def record_features(self):
        """The names of the features in a record, by default the names in `features`. No feature may be empty."""
        return tuple(self.features)

    @property
    def dataset_splits(self):
        """The splits of the data set, each with its number of shards."""
        return [{"split": DatasetSplit.TRAIN, "shards": 10}, {"split": DatasetSplit.EVAL, "shards": 1}]

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": ids, "targets": ids}, both ending in 1.

        If `is_generate_per_split` is true, this method is called for every split. Otherwise it is called once, for
        `DatasetSplit.TRAIN`, and its examples are distributed over the shards of all splits.
        """
        raise NotWritten(f"{type(self).__name__}: define generate_encoded_samples, or generate_samples for texts.")

    def samples_to_encode(self, data_dir, tmp_dir, dataset_split):
        """Returns (iterable of samples, function that turns a list of samples into examples).

        The function is None if the samples already are examples. It runs in several processes, so it must be picklable.
        """
        samples = self.generate_encoded_samples(data_dir, tmp_dir, dataset_split)
        expected = f"{{{', '.join(f'{feature!r}: ids' for feature in self.record_features)}}}"
        samples = generated(samples, f"{self.name}: generate_encoded_samples", expected)
        return warn_of_others(samples, self.name, self.record_features), None

    def feature_encoders(self, data_dir):
        """Returns {"inputs": encoder, "targets": encoder} for the records on disk, regardless of `_rev`."""
        raise NotWritten(f"{type(self).__name__}: define feature_encoders.")

    def vocabulary_files(self, data_dir):
        """Returns the paths of the vocabulary files that `feature_encoders` reads, or the paths of their copies.

        By default these are the files from which the encoders were read (their `path`). Other files that
        `feature_encoders` reads, such as a list of labels, are found without this method: see `encoder_files`.

        Raises:
            MissingFile: a vocabulary file does not exist.
        """
        encoders = self.open_encoders(data_dir).values()
        return list(dict.fromkeys(path for encoder in encoders for path in vocabulary_files.read_by(encoder)))

    def learned_files(self, data_dir):
        """Returns the paths of the vocabulary files that generation writes and may overwrite."""
        return []

    def configuration_files(self, data_dir):
        """Returns the paths of files that generation writes in addition to the records and the vocabulary."""
        return []

    def source_files(self):
        """Returns {flag: paths} of the input files given by the user, which generation must not overwrite."""
        return {}

    def generation_settings(self):
        """Returns the settings, as JSON, that existing data must match; None matches data without the setting."""
        return {}

    def eval_metrics(self) -> list[str]:
        """Returns the names of the metrics that are computed on teacher-forced batches; see `registry.register_metric`.

        The default is the task's metrics. Outputs are also decoded and scored, unless `eval_decode_metric` is None.
        """
        return list(registry.task_of(self).eval_metrics)

    def model_hparams(self, hparams):
        """Returns a model's hyperparameters with the changes that this problem requires, such as a different head.

        `hparams` have the settings of the model: see `HParams.of_model`. Raises `UserError` if the model lacks the
        task's head, or if label smoothing is on although targets are not ids.
        """
        task = registry.task_of(self)
        if "head" not in hparams:
            return hparams
        head = task.head or ("lm" if task.answered_by == "Translator" else hparams.head)
        if head not in hparams.settings()["head"].limits:
            raise UserError(f"{self.name}: the model has no head for {task.name}. Expected --model={task.model}.")
        if task.head and hparams.label_smoothing and not task.smooths_labels:
            raise UserError(
                f"label_smoothing={hparams.label_smoothing}: smoothing needs ids of a vocabulary as targets, but "
                f"{self.name} has the task {self.task}. Expected --hparams=label_smoothing=0."
            )
        return hparams.override_from_dict({"head": head})

    # Generation.

    def generate_data(self, data_dir: str | os.PathLike, tmp_dir: str | os.PathLike, task_id: int = -1) -> None:
        """Writes the vocabulary, shards and manifest into `data_dir`. Does nothing if they are already complete.

        Raises:
            UserError: the input is invalid, or `data_dir` contains data that were generated with different settings.
        """
        from t2t_lite.data import generation

        if task_id >= 0:
            raise UserError(f"{self.name}: generation cannot be divided into tasks. Remove --task_id.")
        generation.generate(self, data_dir, tmp_dir)
        self._encoders.clear()  # the vocabulary may have been learned again

    @property
    def on_bad_line(self):
        """The callback for unreadable lines: with `skip_bad_lines`, a function that counts them; otherwise None."""
        return self._bad_lines if self.skip_bad_lines else None

    def prepare_generation(self, data_dir, tmp_dir):
        """Checks input files and makes the vocabulary before other files are written. Subclasses may extend this."""

    # Methods that return the names of files.

    def dataset_filename(self):
        """Returns the first part of the shards' file names."""
        return self.name

    def training_filepaths(self, data_dir, num_shards, shuffled):
        """Returns the paths of the training shards."""
        return self.data_filepaths(DatasetSplit.TRAIN, data_dir, num_shards, shuffled)

    def dev_filepaths(self, data_dir, num_shards, shuffled):
        """Returns the paths of the dev shards."""
        return self.data_filepaths(DatasetSplit.EVAL, data_dir, num_shards, shuffled)

    def test_filepaths(self, data_dir, num_shards, shuffled):
        """Returns the paths of the test shards."""
        return self.data_filepaths(DatasetSplit.TEST, data_dir, num_shards, shuffled)

    def data_filepaths(self, dataset_split, output_dir, num_shards, shuffled):
        """Returns `<problem>[-unshuffled]-<split>-00000-of-00010` and so on; unshuffled files are temporary."""
        base = self.dataset_filename() + ("" if shuffled else "-unshuffled")
        name = os.path.join(output_dir, f"{base}-{FILE_TAGS[dataset_split]}")
        return [f"{name}-{shard:05d}-of-{num_shards:05d}" for shard in range(num_shards)]

    def filepattern(self, data_dir, mode, shard=None):
        """Returns the file pattern of the shards for a mode: "train", "eval", "infer" (the dev set) or "test".

        An override may name other files. Wildcards are allowed in the file name, but not in the folder's name.
        """
        tag = {"train": "train", "eval": "dev", "infer": "dev", "test": "test"}[mode]
        number = "" if shard is None else f"-{shard:05d}"
        return os.path.join(data_dir, f"{self.dataset_filename()}-{tag}{number}*")

    # Methods used by training and decoding.

    @property
    def full_name(self):
        """The registered name with its suffixes, for example `<name>_copy_rev`."""
        return self.name + "_copy" * self.was_copy + "_rev" * self.was_reversed

    @property
    def languages(self):
        """The languages of inputs and targets, such as ("en", "de"), after `_rev` and `_copy`; None if unknown."""
        return None if self.language_pair is None else self._directed(self.language_pair)

    def _directed(self, pair):
        """Swaps (`_rev`), then copies (`_copy`) a pair of inputs and targets."""
        inputs, targets = reversed(pair) if self.was_reversed else pair
        return inputs, inputs if self.was_copy else targets

    def get_feature_encoders(self, data_dir: str | None = None) -> dict[str, Any]:
        """Returns {"inputs": encoder, "targets": encoder} for a model's features, after `_rev` and `_copy`. Cached."""
        if data_dir not in self._encoders:
            self._encoders[data_dir] = self.maybe_reverse_and_copy(self.open_encoders(data_dir))
        return self._encoders[data_dir]

    def open_encoders(self, data_dir):
        """Calls `feature_encoders`; an error about a file becomes a `UserError`, such as `MissingFile`."""
        try:
            return vocabulary_files.checked(self.feature_encoders(data_dir), self.name)
        except Exception as error:
            if (explained := explain(error)) is None:
                raise
            raise explained from None

    def maybe_reverse_and_copy(self, example):
        """Swaps (`_rev`), then copies (`_copy`) the values of a dict with `inputs` and `targets`.

        Raises:
            UserError: the problem is `_rev` or `_copy`, but its features cannot be swapped.
        """
        if not (self.was_reversed or self.was_copy):
            return example
        swaps = self.features.get("inputs") == self.features.get("targets") == 2 and {*example} >= {"inputs", "targets"}
        if not swaps or self.targets_are_places:
            raise UserError(f"{self.full_name}: its inputs and targets cannot be swapped or copied. Use {self.name}.")
        inputs, targets = self._directed((example["inputs"], example["targets"]))
        return {**example, "inputs": inputs, "targets": targets}

    def preprocess_example(self, example, mode, hparams):
        """Transforms an example when it is read, as in tensor2tensor; by default returns it unchanged.

        This method is called in a graph, before `maybe_reverse_and_copy`, by training, evaluation, `dataset` and the
        decoding of records. `max_length` and `min_length` apply to the result. An override must not use random numbers,
        because an iterator with random state cannot be saved; use them in `corrupt` instead.

        Args:
            example: {feature: int64 [length]} with the features in `record_features`.
            mode: "train", "eval" or, when records are decoded, "infer".
            hparams: HParams.

        Returns:
            A dict like `example`, possibly with other features, or a `tf.data.Dataset` of such dicts.
        """
        return example

    def augment(self, batch, seeds):
        """Augments a training batch randomly; by default returns the batch unchanged. Evaluation does not augment.

        An override must keep the features and their shapes. It is called before `corrupt`, with the same arguments.
        """
        return batch

    def corrupt(self, batch, seeds):
        """Randomly changes a batch or adds features to it; by default returns it unchanged.

        An override must use only stateless TensorFlow operations, such as `tf.random.stateless_uniform`.

        Args:
            batch: {feature: int32 ids, padded with 0}; the ranks are given in `features`.
            seeds: int32 [rows, 2], one seed per row. It depends on random_seed, the batch's index in the stream (0 in
                evaluation) and the ids of the row. So a row's result does not depend on the other rows, the number of
                replicas or interruptions.

        Returns:
            A dict with an int32 tensor for each name in `features`.
        """
        return batch

    def dataset(
        self, data_dir: str | os.PathLike, split: str = DatasetSplit.TRAIN, hparams: HParams | str | None = None
    ) -> tf.data.Dataset:
        """Returns the batches of a split for Keras' `fit` and `evaluate`: see `t2t_lite.data.records`."""
        from t2t_lite.data.folder import DataFolder
        from t2t_lite.data.records import fit_dataset

        return fit_dataset(DataFolder(self, data_dir).records(split), hparams)

    def example_length(self, encoders):
        """Returns the total number of ids (inputs and targets) that every example has. Decoding stops at this number.

        None means that the lengths of examples differ.
        """

    def given_part(self, given, encoders):
        """Returns the region of a picture, written by one of `writers`, that shows the input ids of an output.

        Args:
            given: list of int, the input ids, which the output continues.
            encoders: {feature: encoder}.

        Returns:
            (left, top, width, height) as fractions of the picture's sides; None if no region is to be marked.
        """

    def overrides(self, method, base=None):
        """Returns whether this problem's class overrides a method, such as "corrupt", of `Problem` or of `base`."""
        return getattr(type(self), method) is not getattr(base or Problem, method)

    def input_text(self, text: str) -> str:
        """Preprocesses a text before it is encoded for decoding; by default returns it unchanged."""
        return text

    def source_text(self, text):
        """Returns the `SourceText` of a text to decode; its ids are computed later."""
        from t2t_lite.data.source_text import SourceText

        read = self.substitution.source_text if self.substitution else SourceText
        return read(text, self.input_text(text))

    def encoded_text(self, text: str) -> str:
        """Returns an input text in the form in which it is encoded for decoding."""
        return self.source_text(text).prepared

    def encoded_target(self, target: str, text: str) -> str:
        """Returns a target that the user supplies for an input text, in the form in which it is encoded."""
        return self.source_text(text).target(target)

    def output_text(self, inputs: str, outputs: str, encoders: dict) -> str:
        """Postprocesses a decoded text; by default returns it unchanged.

        Args:
            inputs: str, the input text.
            outputs: str, the output ids, decoded by the targets' vocabulary.
            encoders: {"inputs", "targets"}, as returned by `get_feature_encoders`.
        """
        return outputs

    def choose_output(self, inputs, outputs, encoders):
        """Reranks a search's outputs: returns the index of the best; by default 0, the output with the highest score.

        Decoding and the evaluation during training call this method if `chooses_output` is true.

        Args:
            inputs, encoders: as for `output_text`.
            outputs: list of str, at least one: the hypotheses decoded by the targets' vocabulary, best first.

        Returns:
            int, an index into `outputs`.
        """
        return 0

    def max_length(self, model_hparams):
        """Returns the maximum number of ids, EOS included, on either side of a training example.

        This is the problem's `sequence_length` or, without one, `max_length`, but at most `batch_size` (also for 0).
        """
        longest = min(model_hparams.max_length or model_hparams.batch_size, model_hparams.batch_size)
        return getattr(self, "sequence_length", longest)  # without it, a row must fit into a batch
