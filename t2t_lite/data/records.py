"""The records of a split on disk: paths, facts, fingerprint, checks, and batches, including those for Keras' `fit`."""

import dataclasses
import fnmatch
import functools
import glob
import hashlib
import os
import re

import tensorflow as tf

from t2t_lite import files, registry
from t2t_lite.data import manifests
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.named_problems import datagen_command, with_vocabulary_of
from t2t_lite.data.splits import FILE_TAGS, FLAGS, DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.files.file_errors import translated
from t2t_lite.settings.config import HParams

_BYTES_OF_A_FINGERPRINT = 2**16  # number of bytes to hash per shard, enough for several hundred shuffled sentences


class Records:
    """The records of a split, written by t2t-datagen or by the problem itself.

    The files are read only when a method needs them.

    Args:
        problem: Problem, whose `_rev` and `_copy` are applied to the returned examples.
        data_dir: str, the folder of the shards, the vocabulary and the manifest.
        split: a name in `DatasetSplit`.
    """

    def __init__(self, problem, data_dir, split):
        self.problem = problem
        self.data_dir = data_dir
        self.split = split

    @functools.cached_property
    def paths(self):
        """The sorted paths of the shards.

        Raises:
            UserError: shards are missing, or the folder has several sets of shards, with different numbers of shards;
                the message gives the pattern and the command to run.
        """
        pattern, paths = os.path.join(*self._pattern), self._shards()
        paths = [path for path in paths if re.search(r"-\d{5}-of-\d{5}$", path)]
        if not paths:
            raise UserError(f"{pattern}: no such records. {self._remedy()}")
        totals = {int(path[-5:]) for path in paths}
        if len(totals) > 1:
            raise UserError(
                f"{pattern}: found shards from sets of {' and '.join(map(str, sorted(totals)))} shards. Delete the "
                f"wrong set and run: {self._command}"
            )
        total = totals.pop()
        if len(paths) != total:
            raise UserError(f"{pattern}: found {len(paths)} of {total} shards. Run again: {self._command}")
        return paths

    def _remedy(self):
        """Returns a sentence that says how to make the records, which are missing."""
        splits = find_manifest(self.problem, self.data_dir).get("splits")
        if not splits or self.split in splits:
            return f"Run: {self._command}"
        how = f"t2t-datagen's --{FLAGS[self.split]}" if hasattr(self.problem, "configure") else "dataset_splits"
        is_dev = self.split == DatasetSplit.EVAL
        alternative = " To train without it, use t2t-trainer --schedule=train." if is_dev else ""
        return (
            f"The data of {self.problem.name} were generated without a {FILE_TAGS[self.split]} set. Expected data with "
            f"this set ({how}).{alternative}"
        )

    def exist(self):
        """Returns whether at least one shard of the split exists."""
        return any(self._shards())

    def _shards(self):
        folder, name = self._pattern
        return files.list_files(folder, fnmatch.translate(name))

    @property
    def _pattern(self):
        """Where the shards are: (their folder, the pattern that their file names match)."""
        if self.problem.overrides("filepattern"):
            return os.path.split(self.problem.filepattern(self.data_dir, self.split))
        name = f"{glob.escape(self.problem.dataset_filename())}-{FILE_TAGS[self.split]}-?????-of-?????"
        return self.data_dir, name

    @property
    def _command(self):
        return datagen_command(self.problem, self.data_dir)

    @functools.cached_property
    def facts(self):
        """The facts of the split from the manifest, see `manifests`; {} if there is no manifest.

        Raises:
            UserError: shards are missing, or their sizes differ from the manifest's.
        """
        paths, facts = self.paths, self._manifest_facts()
        if facts:
            manifests.check_sizes(paths, facts["bytes"], self._command)
        return facts

    def _manifest_facts(self):
        return find_manifest(self.problem, self.data_dir).get("splits", {}).get(self.split, {})

    def unit_counts(self):
        """Returns {unit such as "id" or "word": count in the split}, see `losses_by_unit`, or {} if unknown."""
        facts = self._manifest_facts()
        return {"id": facts["tokens"]["targets"], **facts["units"]} if "units" in facts else {}

    def fingerprint(self, shards=None):
        """Returns a hash, str, of the shards' names, sizes and first bytes; it identifies these records in any folder.

        Args:
            shards: int, number of shards to hash, or None for all shards.

        Raises:
            UserError: a shard is missing or unreadable.
        """
        digest = hashlib.sha256()
        for path in self.paths[:shards]:
            with translated(path), files.open_stream(path) as shard:
                facts = [
                    os.path.basename(path),
                    files.size(path),
                    hashlib.sha256(shard.read(_BYTES_OF_A_FINGERPRINT)).hexdigest(),
                ]
            digest.update(repr(facts).encode())
        return digest.hexdigest()

    def check_vocabulary(self, encoders):
        """Raises `UserError` unless the records were encoded with the vocabulary that is now in the folder.

        Args:
            encoders: {feature: encoder} of the records on disk, before `_rev` and `_copy`.
        """
        expected = find_manifest(self.problem, self.data_dir).get("vocabulary", {})
        for feature, encoder in encoders.items():
            sha256 = expected.get(feature, {}).get("sha256", encoder.fingerprint)
            if sha256 != encoder.fingerprint:
                where = getattr(encoder, "path", None) or f"{feature} of {self.problem.name}"
                raise UserError(
                    f"{where}: this vocabulary ({encoder.vocab_size} entries, SHA-256 {encoder.fingerprint[:12]}…) "
                    f"differs from the vocabulary with which the records in {self.data_dir} were made "
                    f"({expected[feature]['size']} entries, SHA-256 {sha256[:12]}…). Restore the original vocabulary, "
                    "or delete the records and run t2t-datagen."
                )

    def check_vocabulary_of_model(self, encoders):
        """Raises `UserError` unless the folder has the vocabulary of a model, whose encoders are {feature: encoder}."""
        for feature, encoder in self.problem.get_feature_encoders(self.data_dir).items():
            if encoder.fingerprint != encoders[feature].fingerprint:
                raise UserError(
                    f"--data_dir={self.data_dir}: its vocabulary for the {feature} differs from the model's. Expected "
                    "the folder with which the model was trained, or one made with its vocabulary "
                    f"({with_vocabulary_of(self.problem, 'RUN')})."
                )

    def check(self, reads_records=False):
        """Checks the split before it is used, and returns its facts.

        If there is a manifest, the check is fast, however large the split is. All records are read if the problem wrote
        its files itself.

        Args:
            reads_records: whether to read all records in any case, so that damaged records are found now instead of
                hours later.

        Raises:
            UserError: the vocabulary has changed, a shard is missing or damaged or its size has changed, or an id is
                outside its feature's vocabulary.
        """
        encoders = self.problem.open_encoders(self.data_dir)
        self.check_vocabulary(encoders)
        facts, paths = self.facts, self.paths
        if reads_records or not facts:
            facts = manifests.read_facts(paths, self.problem.record_features)
        manifests.check_ids(facts, encoders, f"{paths[0]} and so on" if paths[1:] else paths[0])
        return facts

    def seen_facts(self, hparams, facts):
        """Returns `facts` for training examples as a model sees them: after `preprocess_example`, `_rev` and `_copy`.

        If the problem overrides `preprocess_example`, this method reads all records.
        """
        problem, reader = self.problem, self._reader(hparams, "train")
        if reader.preprocesses:
            dataset = tf.data.TFRecordDataset(reader.paths)
            batches = reader.batched(dataset, manifests.RECORDS_AT_ONCE).map(reader.parse)
            counts = manifests.Facts(batches.element_spec)
            with reader.naming_damage():
                for batch in batches:
                    counts.add_batch(batch)
            return counts.as_json()
        lengths = problem.maybe_reverse_and_copy(facts["side_lengths"])
        # with `_copy`, a model sees only one side of an example
        row_lengths = lengths["inputs"] if problem.was_copy else facts["lengths"]
        by_feature = {name: problem.maybe_reverse_and_copy(facts[name]) for name in ("tokens", "largest_id")}
        return {**facts, **by_feature, "lengths": row_lengths, "side_lengths": lengths}

    def check_training(self, hparams):
        """Checks the training split and returns facts about it as a `TrainingSplit`.

        Raises:
            UserError: see `check`; also if no example is within the length limits.
        """
        problem, facts = self.problem, self.check()
        cut = manifests.count_cut(problem, hparams, facts)
        facts = self.seen_facts(hparams, facts)
        longest = manifests.longest_row(problem, hparams)
        examples, dropped = manifests.count_kept(facts["lengths"], longest, hparams.min_length)
        if longest < getattr(problem, "sequence_length", 0) and manifests.count_kept(facts["lengths"], longest)[1]:
            raise UserError(
                f"batch_size={hparams.batch_size}: too small for the rows of {problem.full_name}, which have "
                f"{problem.sequence_length} ids. Expected at least {problem.sequence_length}, or shorter rows."
            )
        if not examples:
            raise UserError(
                f"{problem.full_name}: none of the {dropped:,} training examples has between "
                f"min_length={hparams.min_length} and max_length={longest} ids. Change these hyperparameters."
            )
        return TrainingSplit(facts, examples, dropped, cut)

    def examples(self, hparams):
        """Yields each example as {feature: list of ids}, see `ExampleReader.examples`."""
        return self._reader(hparams, "infer").examples()

    def batches(self, hparams, encoders):
        """Returns an endless stream of batches for the training split, or one pass over any other split.

        See `batching`.
        """
        from t2t_lite.data import batching

        batches = batching.training_batches if self.split == DatasetSplit.TRAIN else batching.evaluation_batches
        return batches(self.problem, hparams, self.paths, encoders)

    def _reader(self, hparams, mode):
        # TensorFlow is imported only inside functions, since finding the records does not need it.
        from t2t_lite.data.example_reader import ExampleReader

        return ExampleReader(self.problem, hparams, mode, self.paths)


@dataclasses.dataclass(frozen=True)
class TrainingSplit:
    """Facts about the training split, with the number of examples within the length limits.

    Attributes:
        facts: `Records.seen_facts`.
        examples, dropped: int, the numbers of examples within and outside the limits.
        cut: int, the number of examples that are truncated to the limits.
    """

    facts: dict
    examples: int
    dropped: int
    cut: int


def fit_dataset(records, hparams=None):
    """Returns a `tf.data.Dataset` of ({feature: ids}, labels), int32 [rows, length], padded with 0.

    The labels are the targets. Labels that are numbers become float32 [rows], scaled from 0 (the lowest) to 1 (the
    highest). For masked language models the labels are int32 [n], the original ids at the masked positions of all rows,
    since `TransformerEncoder` returns logits only for these positions. If such a problem has further tasks, the labels
    are a dict {feature: ids}.

    Args:
        records: Records; `preprocess_example`, `_rev`, `_copy` and `corrupt` of their problem are applied. The split
            "train" gives an endless stream in a new order for each pass (set `fit`'s `steps_per_epoch`), the same
            stream as in t2t-trainer on one replica. "eval" and "test" give one pass.
        hparams: HParams, or the name of a set. Only batch_size (tokens), max_length, min_length, random_seed,
            bpe_dropout and the hyperparameters that `preprocess_example` reads are used. If None, the values of the
            Transformer paper are used.

    Raises:
        UserError: data are missing or damaged, no example is within the length limits, or the problem has masked ids
            and a `tf.distribute` strategy with several replicas is active.
    """
    problem, hparams = records.problem, HParams() if hparams is None else registry.hparams(hparams)
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if registry.task_of(problem).labels_are_of_all_rows and replicas > 1:
        raise UserError(  # Keras would split rows and labels independently
            f"{problem.full_name}: `fit` cannot distribute masked ids over {replicas} replicas. Use one replica, or "
            "the Trainer."
        )
    if records.split == DatasetSplit.TRAIN:
        records.check_training(hparams)
    else:
        records.check()
    batches = records.batches(hparams, problem.get_feature_encoders(records.data_dir))
    fit_labels = registry.task_of(problem).fit_labels
    return batches.map(lambda batch: (batch, fit_labels(batch, problem.features)))
