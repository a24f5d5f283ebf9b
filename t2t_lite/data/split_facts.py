"""Facts about a split, which are counted while it is written and checked before training, without reading it again.

A manifest stores them as `splits.<split>`, beside "shards" and "removed":

    "examples"      their number
    "tokens"        {feature: ids with EOS}
    "lengths"       {"<ids of the longest feature, with EOS>": examples}
    "side_lengths"  {feature: {"<ids>": examples}}
    "largest_id"    {feature: id}
    "bytes"         [size of each shard]
"""

import collections
import dataclasses
import hashlib
import os

import numpy as np
import tensorflow as tf

from t2t_lite import files
from t2t_lite.data import records
from t2t_lite.data.example_reader import ExampleReader
from t2t_lite.data.records import LARGEST_ID, SIDES
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.files.file_errors import translated

_NEEDED = {"lengths", "side_lengths", "largest_id", "bytes"}  # older manifests lack them
_RECORDS_AT_ONCE = 2**12
_BYTES_OF_A_FINGERPRINT = 2**16  # of each shard: several hundred sentences of a shuffled set


class Facts:
    """Counts of examples, accumulated from lists of them, results of `as_json`, and arrays.

    Args:
        features: names of the features.
    """

    def __init__(self, features):
        self._longest = collections.Counter()
        self._lengths = {name: collections.Counter() for name in features}
        self._largest_id = dict.fromkeys(features, 0)

    def add_examples(self, examples):
        """Adds a list of {feature: ids}, which `check_examples` has passed."""
        ids = {name: [example[name] for example in examples] for name in self._lengths}
        self._add(
            {name: np.array([len(found) for found in of_name], np.int64) for name, of_name in ids.items()},
            {name: int(max(set().union(*of_name), default=0)) for name, of_name in ids.items()},
        )

    def add_batch(self, batch):
        """Adds {feature: ragged int32 [n, (length)]}, as `records.parse_batch` returns it."""
        self._add(
            {name: ids.row_lengths().numpy() for name, ids in batch.items()},
            {name: int(ids.flat_values.numpy().max()) for name, ids in batch.items()},
        )

    def _add(self, lengths, largest_id):
        _count(self._longest, np.maximum.reduce(list(lengths.values())))
        for name, counter in self._lengths.items():
            _count(counter, lengths[name])
        self._note_largest(largest_id)

    def add_json(self, facts):
        """Adds the result of another `as_json`."""
        self._longest.update(_by_number(facts["lengths"]))
        for name, counter in self._lengths.items():
            counter.update(_by_number(facts["side_lengths"][name]))
        self._note_largest(facts["largest_id"])

    def _note_largest(self, largest_id):
        self._largest_id = {name: max(largest, largest_id[name]) for name, largest in self._largest_id.items()}

    def as_json(self):
        """Returns the counts as JSON values; see the module's docstring."""
        return {
            "examples": self._longest.total(),
            "tokens": {name: sum(n * count for n, count in found.items()) for name, found in self._lengths.items()},
            "lengths": _by_text(self._longest),
            "side_lengths": {name: _by_text(found) for name, found in self._lengths.items()},
            "largest_id": dict(self._largest_id),
        }


def _count(counter, lengths):
    counter.update(dict(zip(*(found.tolist() for found in np.unique(lengths, return_counts=True)), strict=True)))


def _by_number(lengths):
    return {int(length): count for length, count in lengths.items()}


def _by_text(lengths):
    return {str(length): lengths[length] for length in sorted(lengths)}


def check_examples(examples, features=SIDES):
    """Raises `UserError` unless all examples are {feature: ids} with at least one id in each feature."""
    try:
        rows = [example[name] for example in examples for name in features]
        kinds = set().union(*(map(type, row) for row in rows))  # to a set 1.0 is 1
        if all(map(len, rows)) and all(map(_is_id, set().union(*rows))) and not any(map(_is_float, kinds)):
            return
    except (TypeError, KeyError, IndexError):  # of what is no dict, or no list
        pass
    fault = next(filter(None, (_fault(example, features) for example in examples)))
    raise UserError(
        f"an example {fault}. Expected ids from 0 to {LARGEST_ID} as {' and as '.join(features)}: see the problem's "
        "encoder and what it generates."
    )


def _fault(example, features):
    if not isinstance(example, dict):
        return f"is {shown(example)}"
    for name in features:
        ids = example.get(name, ())
        if not isinstance(ids, list | tuple | np.ndarray):
            return f"has {shown(ids)} as {name}"
        if not len(ids):
            return f"has no id in {name}"
        wrong = [i for i in ids if not _is_id(i)]
        if wrong:
            return f"has the id {shown(wrong[0])} in {name}"
    return None


def _is_float(kind):
    return issubclass(kind, float | np.floating)


def _is_id(value):
    return isinstance(value, int | np.integer) and 0 <= value <= LARGEST_ID


def read_facts(paths, features=SIDES):
    """Reads all records and returns their facts, except those of the files ("bytes").

    Raises:
        UserError: a file is missing or damaged, or has other contents; the message names it.
    """
    facts = Facts(features)
    for path in paths:
        with records.naming_damage(path, features=features):
            for batch in tf.data.TFRecordDataset(path).batch(_RECORDS_AT_ONCE).prefetch(1):
                facts.add_batch(records.parse_batch(batch, features))
    return facts.as_json()


def find_facts(problem, data_dir, split):
    """Returns (paths of a split's shards, its facts from the manifest, or {} if that does not have all of them).

    Raises:
        UserError: shards are missing, or their sizes differ from the manifest's.
    """
    paths = problem.shard_paths(data_dir, split)
    facts = problem.manifest(data_dir).get("splits", {}).get(split, {})
    if not facts.keys() >= _NEEDED:
        return paths, {}
    check_sizes(paths, facts["bytes"], f"t2t-datagen --problem={problem.name} --data_dir={data_dir}")
    return paths, facts


def fingerprint(paths):
    """Returns what tells records from others, a str: of the shards' names, sizes and beginnings, wherever they are.

    Raises:
        UserError: a shard is missing or unreadable.
    """
    found = hashlib.sha256()
    for path in paths:
        with translated(path), files.open_stream(path) as shard:
            facts = [
                os.path.basename(path),
                files.size(path),
                hashlib.sha256(shard.read(_BYTES_OF_A_FINGERPRINT)).hexdigest(),
            ]
        found.update(repr(facts).encode())
    return found.hexdigest()


def text_counts(problem, data_dir, split):
    """Returns {"ids", "words", "characters", "bytes"} of the text of a language model's split; of others {}."""
    if problem.task != "language_model":
        return {}
    facts = problem.manifest(data_dir).get("splits", {}).get(split, {})
    return {"ids": facts["tokens"]["targets"], **facts["text"]} if "text" in facts else {}


def check_sizes(paths, sizes, command):
    """Raises `UserError` if sizes (bytes) of files have changed since they were written; it names the first file."""
    if len(paths) != len(sizes):
        raise UserError(
            f"{paths[0]} and its like: {counted(len(paths), 'shard')}, but {len(sizes)} by the manifest. Delete "
            f"them and run: {command}"
        )
    for path, size in zip(paths, sizes, strict=True):
        found = tf.io.gfile.stat(path).length
        if found != size:
            raise UserError(
                f"{path}: has {found:,} bytes, but {size:,} when it was written: cut off or replaced. Delete it and "
                f"run: {command}"
            )


def check_ids(facts, encoders, where):
    """Raises `UserError` if a feature has an id outside its vocabulary.

    Args:
        facts: facts of a split.
        encoders: {feature: encoder}, as in the files.
        where: path or pattern to name in the message.
    """
    for name, encoder in encoders.items():
        if (largest := facts["largest_id"].get(name, 0)) >= encoder.vocab_size:
            raise UserError(
                f"{where}: id {largest} in {name} is outside the vocabulary of {encoder.vocab_size}. Records and "
                "vocabulary do not belong together: run t2t-datagen into an empty folder."
            )


def check_split(problem, data_dir, split, reads_records=False):
    """Checks a split before it is used. If the manifest has its facts, the time does not depend on its size.

    Otherwise (an older manifest, or a problem that wrote its files itself) all records are read.

    Args:
        problem: Problem.
        data_dir: str.
        split: a name in `DatasetSplit`.
        reads_records: whether to read all records in any case, to find a changed byte now instead of hours later.

    Returns:
        (paths of the shards, facts of the split).

    Raises:
        UserError: a shard is missing, damaged, or has changed in size, or an id is outside its feature's vocabulary.
    """
    paths, facts = find_facts(problem, data_dir, split)
    facts = read_facts(paths, problem.record_features) if reads_records or not facts else facts
    check_ids(facts, problem.open_encoders(data_dir), f"{paths[0]} and its like" if paths[1:] else paths[0])
    return paths, facts


def seen_facts(problem, hparams, paths, facts):
    """Returns the facts of training examples as a model sees them: after `preprocess_example`, `_rev` and `_copy`.

    If the problem overrides `preprocess_example`, all records are read for this.
    """
    reader = ExampleReader(problem, hparams, "train", paths)
    if reader.preprocesses:
        batches = reader.batched(tf.data.TFRecordDataset(reader.paths), _RECORDS_AT_ONCE).map(reader.parse)
        seen = Facts(batches.element_spec)
        with reader.naming_damage():
            for batch in batches:
                seen.add_batch(batch)
        return seen.as_json()
    lengths = problem.maybe_reverse_and_copy(facts["side_lengths"])
    of_rows = lengths["inputs"] if problem.was_copy else facts["lengths"]  # with `_copy`, a model sees one side alone
    by_feature = {name: problem.maybe_reverse_and_copy(facts[name]) for name in ("tokens", "largest_id")}
    return {**facts, **by_feature, "lengths": of_rows, "side_lengths": lengths}


def count_kept(lengths, max_length, min_length=0):
    """Returns (examples kept, examples left out) of {ids: examples} by length; `max_length` 0: no limit."""
    kept = sum(n for length, n in lengths.items() if min_length <= int(length) <= (max_length or int(length)))
    return kept, sum(lengths.values()) - kept


@dataclasses.dataclass(frozen=True)
class TrainingSplit:
    """The training examples of a problem within the limits of length.

    Attributes:
        paths: list of str, the shards.
        facts: `seen_facts`.
        examples, dropped: int, the examples within the limits, and outside.
        cut: int, the examples that are cut to be within the limits.
    """

    paths: list
    facts: dict
    examples: int
    dropped: int
    cut: int


def longest_row(problem, hparams):
    """Returns the most ids of a training row: `Problem.max_length`, or `batch_size` where that is less."""
    return min(problem.max_length(hparams) or hparams.batch_size, hparams.batch_size)


def count_cut(problem, hparams, facts):
    """Returns how many examples of a split a problem cuts; facts: of the split, as it is stored."""
    return count_kept(facts["lengths"], problem.max_length(hparams))[1] if problem.cuts_rows else 0


def check_training_split(problem, hparams, data_dir):
    """Returns the checked TrainingSplit.

    Raises:
        UserError: as `check_split`, or no example is within the limits.
    """
    paths, facts = check_split(problem, data_dir, DatasetSplit.TRAIN)
    cut = count_cut(problem, hparams, facts)
    facts = seen_facts(problem, hparams, paths, facts)
    longest = longest_row(problem, hparams)
    examples, dropped = count_kept(facts["lengths"], longest, hparams.min_length)
    if longest < getattr(problem, "sequence_length", 0) and count_kept(facts["lengths"], longest)[1]:
        raise UserError(
            f"batch_size={hparams.batch_size}: {problem.full_name} has rows of {problem.sequence_length} ids, and a "
            f"row must fit into a batch. Expected a batch_size of {problem.sequence_length} or more, or shorter rows."
        )
    if not examples:
        raise UserError(
            f"{problem.full_name}: none of the {dropped:,} training examples has between "
            f"min_length={hparams.min_length} and max_length={longest} ids. Change these hyperparameters."
        )
    return TrainingSplit(paths, facts, examples, dropped, cut)
