"""Reads and validates the manifests of finished and unfinished data, and computes the facts that they store.

Facts about a split, such as its number of examples, are counted while the split is written. Training checks these facts
without reading the split again. A manifest stores them as `splits.<split>`, together with "shards" and "removed":

    "examples"      number of examples
    "tokens"        {feature: total number of ids, including EOS}
    "lengths"       {"<length>": number of examples whose longest feature has this length, including EOS}
    "side_lengths"  {feature: {"<length>": number of examples}}
    "largest_id"    {feature: id}
    "bytes"         [size of each shard in bytes]
"""

import collections
import os
import re

import numpy as np
import tensorflow as tf

from t2t_lite import files
from t2t_lite.data import record_format
from t2t_lite.data.record_format import LARGEST_ID, SIDES
from t2t_lite.data.splits import FILE_TAGS
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.files.safe_json import check_schema

MOST_SHARDS = 99_999  # maximum number of shards, since a shard's number has five digits in file names
_COUNTS = {str: int}
_VOCABULARY = re.compile(r"vocab\.[^/\\]+")
_BEGUN = {"request": dict, "to_learn?": [str]}
RECORDS_AT_ONCE = 2**12


def manifest_path(problem, data_dir):
    """Returns the path of a problem's manifest, `<data_dir>/<problem>-manifest.json`."""
    return os.path.join(data_dir, f"{problem.dataset_filename()}-manifest.json")


def find_manifest(problem, data_dir):
    """Returns the manifest of a problem's data, see `read_manifest`; {} if the data have no manifest.

    Raises:
        UserError: the manifest is damaged.
    """
    path = manifest_path(problem, data_dir)
    return read_manifest(path, problem.record_features) if files.exists(path) else {}


def read_manifest(path, features):
    """Reads and validates a manifest; returns it as a dict.

    It has "request", "splits" {split: facts, see the module's docstring}, "vocabulary" {feature: …} and
    "vocabulary_files", the names of the files that the encoders read.

    Args:
        path: str.
        features: names of the features of the records.

    Raises:
        UserError: the file is missing, damaged, or was not written by t2t-datagen.
    """
    facts = {"shards": int, **_schema(features), "bytes": [int], "removed?": _COUNTS, "units?": _COUNTS}
    vocabulary = {str: {"size": int, "sha256": str}}
    schema = {"request": {"problem?": str}, "splits": {str: facts}, "vocabulary": vocabulary}
    manifest = files.read_json(path, {**schema, "vocabulary_files": [str]})
    if not manifest["splits"]:
        raise UserError(f"{path}: 'splits' is empty. Delete the file and run t2t-datagen again.")
    for split, facts in manifest["splits"].items():
        where = f"{path}: splits: {shown(split)}"
        if split not in FILE_TAGS:
            raise UserError(f"{where}: no such split. Expected one of {', '.join(FILE_TAGS)}.")
        if not 1 <= facts["shards"] <= MOST_SHARDS:
            raise UserError(f"{where}: {shown(facts['shards'])} shards. Expected 1 to {MOST_SHARDS:,}.")
        check_counts(facts, where)
    return manifest


def read_begun(path):
    """Returns the manifest that was written when generation began. Raises `UserError` if the file is damaged.

    "to_learn" lists the vocabulary files that did not exist at that time. Names that do not look like the name of a
    vocabulary file are dropped.
    """
    begun = files.read_json(path, _BEGUN)
    return begun | {"to_learn": [name for name in begun.get("to_learn", []) if _VOCABULARY.fullmatch(name)]}


def check_facts(facts, features, where):
    """Raises `UserError`, with `where` in its message, unless a JSON value has the form of `Facts.as_json`."""
    check_schema(facts, _schema(features), where)
    check_counts(facts, where)


def _schema(features):
    """Returns the schema of `Facts.as_json`."""
    of_feature, lengths = dict.fromkeys(features, int), dict.fromkeys(features, _COUNTS)
    return {
        "examples": int, "tokens": of_feature, "lengths": _COUNTS, "side_lengths": lengths, "largest_id": of_feature
    }  # fmt: skip


def check_counts(facts, where):
    """Raises `UserError` if a count is out of range or a length is not a number."""
    lengths = [facts["lengths"], *facts["side_lengths"].values()]
    for name in {name for counts in lengths for name in counts}:
        if not re.fullmatch(r"[0-9]{1,9}", name):
            raise UserError(f"{where}: {shown(name)} is not a length. Expected a number of ids.")
    groups = [*lengths, facts["tokens"], facts["largest_id"], facts.get("removed", {}), facts.get("units", {})]
    numbers = [facts["examples"], *facts.get("bytes", []), *(n for counts in groups for n in counts.values())]
    if wrong := [number for number in numbers if not 0 <= number < 2**63]:
        raise UserError(f"{where}: the number {shown(wrong[0])} is out of range. Expected a count, 0 or more.")


class Facts:
    """Counts the examples and ids of a split; examples are added as lists, as batches, or as results of `as_json`.

    Args:
        features: names of the features.
    """

    def __init__(self, features):
        self._longest = collections.Counter()
        self._lengths = {name: collections.Counter() for name in features}
        self._largest_id = dict.fromkeys(features, 0)

    def add_examples(self, examples):
        """Adds a list of {feature: ids} that has passed `check_examples`."""
        ids = {name: [example[name] for example in examples] for name in self._lengths}
        self._add(
            {name: np.array([len(row) for row in rows], np.int64) for name, rows in ids.items()},
            {name: int(max(set().union(*rows), default=0)) for name, rows in ids.items()},
        )

    def add_batch(self, batch):
        """Adds {feature: ragged int32 [n, (length)]}, as `record_format.parse_batch` returns it."""
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
        """Adds the counts that `as_json` returned for other examples."""
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
            "tokens": {name: sum(n * count for n, count in counts.items()) for name, counts in self._lengths.items()},
            "lengths": _by_text(self._longest),
            "side_lengths": {name: _by_text(counts) for name, counts in self._lengths.items()},
            "largest_id": dict(self._largest_id),
        }


def _count(counter, lengths):
    counter.update(dict(zip(*(array.tolist() for array in np.unique(lengths, return_counts=True)), strict=True)))


def _by_number(lengths):
    return {int(length): count for length, count in lengths.items()}


def _by_text(lengths):
    return {str(length): lengths[length] for length in sorted(lengths)}


def check_examples(examples, features=SIDES):
    """Raises `UserError` unless all examples are {feature: ids} with at least one id in each feature."""
    try:
        rows = [example[name] for example in examples for name in features]
        # the types of the ids are checked separately, since a set does not distinguish 1.0 from 1
        kinds = set().union(*(map(type, row) for row in rows))
        are_integers = all(issubclass(kind, int | np.integer) for kind in kinds)
        if all(map(len, rows)) and are_integers and all(map(_is_id, set().union(*rows))):
            return
    except (TypeError, KeyError, IndexError):  # an example is not a dict, or a feature is not a list
        pass
    fault = next(filter(None, (_fault(example, features) for example in examples)))
    raise UserError(
        f"an example {fault}. Expected ids from 0 to {LARGEST_ID} as {' and as '.join(features)}: check the problem's "
        "encoder and the samples that it generates."
    )


def _fault(example, features):
    if not isinstance(example, dict):
        return f"is {shown(example)}"
    for name in features:
        ids = example.get(name, ())
        if not isinstance(ids, list | tuple | np.ndarray) or getattr(ids, "shape", None) == ():
            return f"has {shown(ids)} as {name}"
        if not len(ids):
            return f"has no id in {name}"
        wrong = [i for i in ids if not _is_id(i)]
        if wrong:
            return f"has the id {shown(wrong[0])} in {name}"
    return None


def _is_id(value):
    return isinstance(value, int | np.integer) and 0 <= value <= LARGEST_ID


def read_facts(paths, features=SIDES):
    """Reads all records and returns their facts, except the sizes of the files ("bytes").

    Raises:
        UserError: a file is missing or damaged, or a record is invalid; the message names the file.
    """
    facts = Facts(features)
    for path in paths:
        with record_format.naming_damage(path, features=features):
            for batch in tf.data.TFRecordDataset(path).batch(RECORDS_AT_ONCE).prefetch(1):
                facts.add_batch(record_format.parse_batch(batch, features))
    return facts.as_json()


def check_sizes(paths, sizes, command):
    """Raises `UserError` if the size in bytes of a file has changed; the message names the first such file."""
    if len(paths) != len(sizes):
        raise UserError(
            f"{paths[0]} and so on: found {counted(len(paths), 'shard')}, but the manifest lists {len(sizes)}. "
            f"Delete the shards and run: {command}"
        )
    for path, size in zip(paths, sizes, strict=True):
        actual = files.size(path)
        if actual != size:
            raise UserError(
                f"{path}: has {actual:,} bytes, but had {size:,} when it was written. It was truncated or replaced: "
                f"delete it and run: {command}"
            )


def check_ids(facts, encoders, where):
    """Raises `UserError` if a feature has an id outside its vocabulary.

    Args:
        facts: facts of a split.
        encoders: {feature: encoder} of the records on disk, before `_rev` and `_copy`.
        where: path or pattern to name in the message.
    """
    for name, encoder in encoders.items():
        if (largest := facts["largest_id"].get(name, 0)) >= encoder.vocab_size:
            raise UserError(
                f"{where}: id {largest} in {name} is outside the vocabulary of {encoder.vocab_size}. Records and "
                "vocabulary do not match: run t2t-datagen into an empty folder."
            )


def count_kept(lengths, max_length, min_length=0):
    """Returns (number of examples within the limits, number of examples outside them).

    `lengths` is {length: number of examples}. max_length=0 means no limit.
    """
    count = sum(n for length, n in lengths.items() if min_length <= int(length) <= (max_length or int(length)))
    return count, sum(lengths.values()) - count


def longest_row(problem, hparams):
    """Returns the maximum number of ids in a training row: `Problem.max_length`, or `batch_size` if that is smaller."""
    return min(problem.max_length(hparams) or hparams.batch_size, hparams.batch_size)


def count_cut(problem, hparams, facts):
    """Returns the number of examples of a split that a problem truncates; `facts` describes the stored split."""
    return count_kept(facts["lengths"], problem.max_length(hparams))[1] if problem.cuts_rows else 0
