"""Facts about a split, which are counted while it is written and checked before training, without reading it again.

A manifest stores them as `splits.<split>`, beside "shards" and "removed":

    "examples"      their number
    "tokens"        {"inputs": ids with EOS, "targets": …}
    "lengths"       {"<ids of the longer side, with EOS>": examples}
    "side_lengths"  {"inputs": {"<ids>": examples}, "targets": …}
    "largest_id"    {"inputs": id, "targets": id}
    "bytes"         [size of each shard]
"""

import collections

import numpy as np
import tensorflow as tf

from t2t_lite.data import records
from t2t_lite.data.records import LARGEST_ID, SIDES
from t2t_lite.errors import UserError, counted, shown

_LONGER = "longer"
_NEEDED = {"lengths", "side_lengths", "largest_id", "bytes"}  # older manifests lack them
_RECORDS_AT_ONCE = 2**12


class Facts:
    """Counts of examples, accumulated from lists of them, results of `as_json`, and arrays."""

    def __init__(self):
        self._lengths = {side: collections.Counter() for side in (*SIDES, _LONGER)}
        self._largest_id = dict.fromkeys(SIDES, 0)

    def add_examples(self, examples):
        """Adds a list of {"inputs": ids, "targets": ids}, which `check_examples` has passed."""
        ids = {side: [example[side] for example in examples] for side in SIDES}
        self._add(
            {side: np.array([len(found) for found in of_side], np.int64) for side, of_side in ids.items()},
            {side: int(max(set().union(*of_side), default=0)) for side, of_side in ids.items()},
        )

    def add_batch(self, inputs, targets):
        """Adds ragged int32 [n, (length)] of both sides, as `records.parse_batch` returns them."""
        self._add(
            {"inputs": inputs.row_lengths().numpy(), "targets": targets.row_lengths().numpy()},
            {"inputs": int(inputs.flat_values.numpy().max()), "targets": int(targets.flat_values.numpy().max())},
        )

    def _add(self, lengths, largest_id):
        lengths[_LONGER] = np.maximum(lengths["inputs"], lengths["targets"])
        for side, counter in self._lengths.items():
            values, counts = np.unique(lengths[side], return_counts=True)
            counter.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        self._note_largest(largest_id)

    def add_json(self, facts):
        """Adds the result of another `as_json`."""
        for side, counter in self._lengths.items():
            found = facts["lengths"] if side == _LONGER else facts["side_lengths"][side]
            counter.update({int(length): count for length, count in found.items()})
        self._note_largest(facts["largest_id"])

    def _note_largest(self, largest_id):
        self._largest_id = {side: max(largest, largest_id[side]) for side, largest in self._largest_id.items()}

    def as_json(self):
        """Returns the counts as JSON values; see the module's docstring."""
        lengths = {
            side: {str(length): counter[length] for length in sorted(counter)}
            for side, counter in self._lengths.items()
        }
        return {
            "examples": self._lengths[_LONGER].total(),
            "tokens": {side: sum(n * count for n, count in self._lengths[side].items()) for side in SIDES},
            "lengths": lengths.pop(_LONGER),
            "side_lengths": lengths,
            "largest_id": dict(self._largest_id),
        }


def check_examples(examples):
    """Raises `UserError` unless all examples are {"inputs": ids, "targets": ids} with at least one id per side."""
    try:
        different = set().union(*(example[side] for example in examples for side in SIDES))
        if all(len(example[side]) for example in examples for side in SIDES) and all(map(_is_id, different)):
            return
    except (TypeError, KeyError, IndexError):  # of what is no dict, or no list
        pass
    fault = next(filter(None, map(_fault, examples)))
    raise UserError(
        f"an example {fault}. Expected ids from 0 to {LARGEST_ID} as inputs and as targets: see the problem's encoder "
        "and what it generates."
    )


def _fault(example):
    if not isinstance(example, dict):
        return f"is {shown(example)}"
    for side in SIDES:
        ids = example.get(side, ())
        if not isinstance(ids, list | tuple | np.ndarray):
            return f"has {shown(ids)} as {side}"
        if not len(ids):
            return f"has no id in {side}"
        wrong = [i for i in ids if not _is_id(i)]
        if wrong:
            return f"has the id {shown(wrong[0])} in {side}"
    return None


def _is_id(value):
    return isinstance(value, int | np.integer) and 0 <= value <= LARGEST_ID


def read_facts(paths):
    """Reads all records and returns their facts, except those of the files ("bytes").

    Raises:
        UserError: a file is missing or damaged, or has other contents; the message names it.
    """
    facts = Facts()
    for path in paths:
        with records.naming_damage(path):
            batches = tf.data.TFRecordDataset(path).batch(_RECORDS_AT_ONCE)
            for inputs, targets in batches.map(records.parse_batch, num_parallel_calls=2):
                facts.add_batch(inputs, targets)
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
    """Raises `UserError` if a side has an id outside its vocabulary.

    Args:
        facts: facts of a split.
        encoders: {"inputs": encoder, "targets": encoder}, as in the files.
        where: path or pattern to name in the message.
    """
    for side, largest in facts["largest_id"].items():
        size = encoders[side].vocab_size
        if largest >= size:
            raise UserError(
                f"{where}: id {largest} in {side} is outside the vocabulary of {size}. Records and vocabulary do not "
                "belong together: run t2t-datagen into an empty folder."
            )


def row_lengths(problem, facts):
    """Returns {ids: examples} of the longer side as a model sees it; with `_copy` it sees only one side."""
    seen = problem.maybe_reverse_and_copy({side: side for side in SIDES})
    return facts["side_lengths"][seen["inputs"]] if seen["inputs"] == seen["targets"] else facts["lengths"]


def count_kept(lengths, max_length, min_length=0):
    """Returns (examples kept, examples left out) of {ids: examples} by length; `max_length` 0: no limit."""
    kept = sum(n for length, n in lengths.items() if min_length <= int(length) <= (max_length or int(length)))
    return kept, sum(lengths.values()) - kept


def check_split(problem, data_dir, split, max_length=0, min_length=0, reads_records=False):
    """Checks a split before it is used. If the manifest has its facts, the time does not depend on its size.

    Otherwise (an older manifest, or a problem that wrote its files itself) all records are read.

    Args:
        problem: Problem.
        data_dir: str.
        split: a name in `DatasetSplit`.
        max_length: ids; longer examples are left out; 0: no limit.
        min_length: ids; examples that are shorter on both sides are left out.
        reads_records: whether to read all records in any case, to find a changed byte now instead of hours later.

    Returns:
        (paths of the shards, number of examples kept, number left out).

    Raises:
        UserError: a shard is missing, damaged, or has changed in size, or an id is outside its side's vocabulary.
    """
    paths, facts = find_facts(problem, data_dir, split)
    facts = read_facts(paths) if reads_records or not facts else facts
    check_ids(facts, problem.feature_encoders(data_dir), f"{paths[0]} and its like" if paths[1:] else paths[0])
    return paths, *count_kept(row_lengths(problem, facts), max_length, min_length)
