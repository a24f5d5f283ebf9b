"""The records of a split on disk: paths, facts, fingerprint, checks, and batches, also for Keras' `fit`."""

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
from t2t_lite.data.named_problems import datagen_command
from t2t_lite.data.splits import FILE_TAGS, DatasetSplit, named_split
from t2t_lite.errors import UserError
from t2t_lite.files.file_errors import translated
from t2t_lite.settings.config import HParams

_BYTES_OF_A_FINGERPRINT = 2**16  # per shard: several hundred sentences of a shuffled set


class Records:
    """A split that t2t-datagen, or the problem itself, has written. Files are read lazily.

    Args:
        problem: Problem; examples are those of a model, after `_rev` and `_copy`.
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
            UserError: shards are missing, or those of two sets are mixed; the message gives the pattern and the next
                command.
        """
        pattern, paths = os.path.join(*self._pattern), self._shards()
        paths = [path for path in paths if re.search(r"-\d{5}-of-\d{5}$", path)]
        if not paths:
            raise UserError(f"{pattern}: no such records. Run: {self._command}")
        totals = {int(path[-5:]) for path in paths}
        if len(totals) > 1:
            raise UserError(
                f"{pattern}: found shards of sets of {' and of '.join(map(str, sorted(totals)))}. Delete the wrong "
                f"ones and run: {self._command}"
            )
        total = totals.pop()
        if len(paths) != total:
            raise UserError(f"{pattern}: found {len(paths)} of {total} shards. Run again: {self._command}")
        return paths

    def exist(self):
        """Returns whether any shard exists, even if the set is incomplete."""
        return any(self._shards())

    def _shards(self):
        folder, name = self._pattern
        return files.list_files(folder, fnmatch.translate(name))

    @property
    def _pattern(self):
        """The folder of the shards, and the pattern of their names."""
        if self.problem.overrides("filepattern"):
            return os.path.split(self.problem.filepattern(self.data_dir, self.split))
        name = f"{glob.escape(self.problem.dataset_filename())}-{FILE_TAGS[self.split]}-?????-of-?????"
        return self.data_dir, name

    @property
    def _command(self):
        return datagen_command(self.problem, self.data_dir)

    @functools.cached_property
    def facts(self):
        """The facts of the split from the manifest, see `manifests`; {} if the manifest lacks some of them.

        Raises:
            UserError: shards are missing, or their sizes differ from the manifest's.
        """
        paths, facts = self.paths, self._manifest_facts()
        if not facts.keys() >= manifests.NEWER:
            return {}
        manifests.check_sizes(paths, facts["bytes"], self._command)
        return facts

    def _manifest_facts(self):
        return find_manifest(self.problem, self.data_dir).get("splits", {}).get(self.split, {})

    def unit_counts(self):
        """Returns {unit such as "id" or "word": its count in the split}, see `losses_by_unit`; {} if not counted."""
        facts = self._manifest_facts()
        older = {name.removesuffix("s"): count for name, count in facts.get("text", {}).items()}
        counts = facts.get("units", older)
        return {"id": facts["tokens"]["targets"], **counts} if counts else {}

    def fingerprint(self, shards=None):
        """Returns a str that identifies these records in any folder: a hash of the shards' names, sizes and beginnings.

        Args:
            shards: int, number of shards to hash; None: all.

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
        """Raises `UserError` if the vocabulary in the folder is not the one that the records were encoded with.

        Args:
            encoders: {feature: encoder}, as in the files.
        """
        expected = find_manifest(self.problem, self.data_dir).get("vocabulary", {})
        for feature, encoder in encoders.items():
            sha256 = expected.get(feature, {}).get("sha256", encoder.fingerprint)
            if sha256 != encoder.fingerprint:
                where = getattr(encoder, "path", None) or f"{feature} of {self.problem.name}"
                raise UserError(
                    f"{where}: this vocabulary ({encoder.vocab_size} entries, SHA-256 {encoder.fingerprint[:12]}…) is "
                    f"not the one the records in {self.data_dir} were made with ({expected[feature]['size']} entries, "
                    f"SHA-256 {sha256[:12]}…). Put that file back, or delete the records and run t2t-datagen."
                )

    def check(self, reads_records=False):
        """Checks the split before it is used, and returns its facts.

        If the manifest has them, the time does not depend on the split's size. Otherwise (an older manifest, or a
        problem that wrote its files itself) all records are read.

        Args:
            reads_records: whether to read all records in any case, to find a changed byte now instead of hours later.

        Raises:
            UserError: the vocabulary has changed; a shard is missing, damaged, or has changed in size; or an id is
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
        """Returns `facts` of training examples as a model sees them: after `preprocess_example`, `_rev` and `_copy`.

        If the problem overrides `preprocess_example`, all records are read for this.
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
        of_rows = lengths["inputs"] if problem.was_copy else facts["lengths"]  # with `_copy`, a model sees one side
        by_feature = {name: problem.maybe_reverse_and_copy(facts[name]) for name in ("tokens", "largest_id")}
        return {**facts, **by_feature, "lengths": of_rows, "side_lengths": lengths}

    def check_training(self, hparams):
        """Returns the checked `TrainingSplit`.

        Raises:
            UserError: as `check`, or no example is within the length limits.
        """
        problem, facts = self.problem, self.check()
        cut = manifests.count_cut(problem, hparams, facts)
        facts = self.seen_facts(hparams, facts)
        longest = manifests.longest_row(problem, hparams)
        examples, dropped = manifests.count_kept(facts["lengths"], longest, hparams.min_length)
        if longest < getattr(problem, "sequence_length", 0) and manifests.count_kept(facts["lengths"], longest)[1]:
            raise UserError(
                f"batch_size={hparams.batch_size}: too small for a row of {problem.full_name}, which has "
                f"{problem.sequence_length} ids. Expected {problem.sequence_length} or more, or shorter rows."
            )
        if not examples:
            raise UserError(
                f"{problem.full_name}: none of the {dropped:,} training examples has between "
                f"min_length={hparams.min_length} and max_length={longest} ids. Change these hyperparameters."
            )
        return TrainingSplit(facts, examples, dropped, cut)

    def examples(self, hparams, mode="infer"):
        """Yields {feature: list of ids} of all examples, see `ExampleReader.examples`."""
        return self._reader(hparams, mode).examples()

    def batches(self, hparams, encoders):
        """Returns the endless stream of batches of the training split, or one pass of another. See `batching`."""
        from t2t_lite.data import batching

        batches = batching.training_batches if self.split == DatasetSplit.TRAIN else batching.evaluation_batches
        return batches(self.problem, hparams, self.paths, encoders)

    def _reader(self, hparams, mode):
        # Here, as above, since looking for records needs no TensorFlow.
        from t2t_lite.data.example_reader import ExampleReader

        return ExampleReader(self.problem, hparams, mode, self.paths)


@dataclasses.dataclass(frozen=True)
class TrainingSplit:
    """The training examples of a problem within the length limits.

    Attributes:
        facts: `Records.seen_facts`.
        examples, dropped: int, the numbers of examples within and outside of the limits.
        cut: int, the number of examples that are truncated to the limits.
    """

    facts: dict
    examples: int
    dropped: int
    cut: int


def fit_dataset(problem, data_dir, split=DatasetSplit.TRAIN, hparams=None):
    """Returns a `tf.data.Dataset` of ({feature: ids}, labels), int32 [rows, length], padded with 0.

    The labels are the targets. Numbers become float32 [rows], scaled from 0, the lowest, to 1, the highest. Masked ids
    become int32 [n], the masked positions row by row, since `TransformerEncoder` has logits for these alone. A masked
    problem with further tasks has a dict of labels, {feature: ids}.

    Args:
        problem: Problem; its `preprocess_example`, `_rev`, `_copy` and `corrupt` are applied.
        data_dir: str, the folder that t2t-datagen wrote.
        split: "train": an endless stream in a new order for each pass (set `fit`'s `steps_per_epoch`), the same as
            t2t-trainer's on one replica. "eval" (or "dev") or "test": one pass.
        hparams: HParams, or the name of a set; of it batch_size (tokens), max_length, min_length, random_seed and
            bpe_dropout are used, and what `preprocess_example` reads; None: the paper's.

    Raises:
        UserError: the split does not exist, data are missing or damaged, no example is within the length limits, or the
            problem has masked ids and a `tf.distribute` strategy of several replicas is active.
    """
    hparams = HParams() if hparams is None else registry.hparams(hparams)
    split = named_split(split)
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if registry.task_of(problem).labels_are_of_all_rows and replicas > 1:
        raise UserError(  # Keras would split rows and labels independently
            f"{problem.full_name}: `fit` cannot distribute masked ids over {replicas} replicas. Expected one, or the "
            "Trainer."
        )
    records = Records(problem, data_dir, split)
    if split == DatasetSplit.TRAIN:
        records.check_training(hparams)
    else:
        records.check()
    batches = records.batches(hparams, problem.get_feature_encoders(data_dir))
    fit_labels = registry.task_of(problem).fit_labels
    return batches.map(lambda batch: (batch, fit_labels(batch, problem.features)))
