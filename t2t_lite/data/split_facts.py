"""What is known of a split without reading it: counted while it is written, checked before it is trained on.

A manifest keeps it as `splits.<split>`, beside "shards" and "removed":

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
from t2t_lite.errors import UserError

SIDES = ("inputs", "targets")
_LONGER = "longer"
_NEEDED = {"lengths", "side_lengths", "largest_id", "bytes"}  # older manifests lack them
_RECORDS_AT_ONCE = 2**12


class Facts:
    """Counts of examples that add up: of lists of them, of what `as_json` returned, of arrays."""

    def __init__(self):
        self._lengths = {side: collections.Counter() for side in (*SIDES, _LONGER)}
        self._largest_id = dict.fromkeys(SIDES, 0)

    def add_examples(self, examples):
        """Adds a list of {"inputs": ids, "targets": ids}. Raises `UserError` for an id below 0."""
        ids = {side: [example.get(side, ()) for example in examples] for side in SIDES}
        different = {side: set().union(*of_side) for side, of_side in ids.items()}
        self._add(
            {side: np.array([len(found) for found in of_side], np.int64) for side, of_side in ids.items()},
            {side: int(max(found, default=0)) for side, found in different.items()},
            {side: int(min(found, default=0)) for side, found in different.items()},
        )

    def add_batch(self, inputs, targets, path):
        """Adds ragged int32 [n, (length)] of both sides, from the file `path`. Raises `UserError` for an id below 0."""
        ids = {"inputs": inputs.flat_values.numpy(), "targets": targets.flat_values.numpy()}
        self._add(
            {"inputs": inputs.row_lengths().numpy(), "targets": targets.row_lengths().numpy()},
            {side: int(found.max(initial=0)) for side, found in ids.items()},
            {side: int(found.min(initial=0)) for side, found in ids.items()},
            f"{path}: ",
        )

    def _add(self, lengths, largest_id, smallest_id, where=""):
        for side, smallest in smallest_id.items():
            if smallest < 0:
                raise UserError(
                    f"{where}an example has the id {smallest} in {side}. Expected ids from 0: see its encoder."
                )
        lengths[_LONGER] = np.maximum(lengths["inputs"], lengths["targets"])
        for side, counter in self._lengths.items():
            values, counts = np.unique(lengths[side], return_counts=True)
            counter.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        self._note_largest(largest_id)

    def add_json(self, facts):
        """Adds what `as_json` returned."""
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


def read_facts(paths):
    """Reads all records and returns their facts, those of the files ("bytes") left out.

    Raises:
        UserError: a file is missing, damaged, or does not hold such examples; it is named.
    """
    facts = Facts()
    for path in paths:
        with records.naming_damage(path):
            batches = tf.data.TFRecordDataset(path).batch(_RECORDS_AT_ONCE)
            for inputs, targets in batches.map(records.parse_batch, num_parallel_calls=2):
                facts.add_batch(inputs, targets, path)
    return facts.as_json()


def find_facts(problem, data_dir, split):
    """Returns (paths of a split's shards, its facts by the manifest: {} where that does not have them all).

    Raises:
        UserError: shards are missing, or of another size than the manifest says.
    """
    paths = problem.shard_paths(data_dir, split)
    facts = problem.manifest(data_dir).get("splits", {}).get(split, {})
    if not facts.keys() >= _NEEDED:
        return paths, {}
    check_sizes(paths, facts["bytes"], f"t2t-datagen --problem={problem.name} --data_dir={data_dir}")
    return paths, facts


def check_sizes(paths, sizes, command):
    """Raises `UserError` where files have other sizes (bytes) than they were written with; the first is named."""
    if len(paths) != len(sizes):
        raise UserError(
            f"{paths[0]} and its like: {len(paths)} shards, but {len(sizes)} by the manifest. Delete them and run: "
            f"{command}"
        )
    for path, size in zip(paths, sizes, strict=True):
        found = tf.io.gfile.stat(path).length
        if found != size:
            raise UserError(
                f"{path}: has {found:,} bytes, but {size:,} when it was written: cut off or replaced. Delete it and "
                f"run: {command}"
            )


def check_ids(facts, encoders, where):
    """Raises `UserError` where a side has an id outside its vocabulary.

    Args:
        facts: of a split.
        encoders: {"inputs": encoder, "targets": encoder}, as the files hold them.
        where: what to name in the message: a path or pattern.
    """
    for side, largest in facts["largest_id"].items():
        size = encoders[side].vocab_size
        if largest >= size:
            raise UserError(
                f"{where}: id {largest} in {side} is outside the vocabulary of {size}. Records and vocabulary do not "
                "belong together: run t2t-datagen into an empty folder."
            )


def row_lengths(problem, facts):
    """Returns {ids: examples} of the longer side as a model sees it: `_copy` shows one side only."""
    seen = problem.preprocess_example({side: side for side in SIDES})
    return facts["side_lengths"][seen["inputs"]] if seen["inputs"] == seen["targets"] else facts["lengths"]


def count_kept(lengths, max_length, min_length=0):
    """Returns (examples kept, examples left out) of {ids: examples} under limits of length; `max_length` 0: none."""
    kept = sum(n for length, n in lengths.items() if min_length <= int(length) <= (max_length or int(length)))
    return kept, sum(lengths.values()) - kept


def check_split(problem, data_dir, split, max_length=0, min_length=0):
    """Checks a split before it is used, in a time that does not depend on its size where the manifest has the facts.

    Where it has not (an older one, or a problem that wrote its files itself) all records are read.

    Args:
        problem: Problem.
        data_dir: str.
        split: of `DatasetSplit`.
        max_length: ids; longer examples are left out; 0: none.
        min_length: ids; examples shorter on both sides are left out.

    Returns:
        (paths of the shards, number of examples kept, number left out).

    Raises:
        UserError: a shard is missing, damaged, or of another size than when it was written; an id is outside its
            side's vocabulary.
    """
    paths, facts = find_facts(problem, data_dir, split)
    facts = facts or read_facts(paths)
    check_ids(facts, problem.feature_encoders(data_dir), f"{paths[0]} and its like" if paths[1:] else paths[0])
    return paths, *count_kept(row_lengths(problem, facts), max_length, min_length)
