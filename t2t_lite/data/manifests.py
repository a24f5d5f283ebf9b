"""Reads manifests of finished and unfinished data, without trusting their contents."""

import os
import re

from t2t_lite import files
from t2t_lite.data.splits import FILE_TAGS
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import check_schema

_MOST_SHARDS = 99_999  # five digits in a name
_COUNTS = {str: int}
_VOCABULARY = re.compile(r"vocab\.[^/\\]+")
_BEGUN = {"request": dict, "to_learn?": [str]}


def manifest_path(problem, data_dir):
    """Returns the path of a problem's manifest, `<data_dir>/<problem>-manifest.json`."""
    return os.path.join(data_dir, f"{problem.dataset_filename()}-manifest.json")


def find_manifest(problem, data_dir):
    """Returns the manifest of a problem's data, see `read_manifest`, or {} if the problem wrote its files itself.

    Raises:
        UserError: the manifest is damaged.
    """
    path = manifest_path(problem, data_dir)
    return read_manifest(path, problem.record_features) if files.exists(path) else {}


def read_manifest(path, features):
    """Returns a manifest, a dict: "request", "splits" {split: facts, see `split_facts`}, "vocabulary" {feature: …};
    newer ones also have "vocabulary_files", the names of the files that the encoders read.

    Args:
        path: str.
        features: names of the features of the records.

    Raises:
        UserError: the file is missing, damaged, or was not written by t2t-datagen.
    """
    newer = {f"{name}?": kind for name, kind in _newer_counts(features).items()}
    facts = {"shards": int, **_first_counts(features), **newer, "bytes?": [int], "removed?": _COUNTS}
    facts |= {"units?": _COUNTS, "text?": _COUNTS}  # "text": of older ones
    vocabulary = {str: {"size": int, "sha256": str}}
    schema = {"request": {"problem?": str}, "splits": {str: facts}, "vocabulary": vocabulary}
    manifest = files.read_json(path, {**schema, "vocabulary_files?": [str]})
    if not manifest["splits"]:
        raise UserError(f"{path}: 'splits' is empty: it names no data. Delete the file and run t2t-datagen again.")
    for split, facts in manifest["splits"].items():
        where = f"{path}: splits: {shown(split)}"
        if split not in FILE_TAGS:
            raise UserError(f"{where}: no such split. Expected {', '.join(FILE_TAGS)}.")
        if not 1 <= facts["shards"] <= _MOST_SHARDS:
            raise UserError(f"{where}: {shown(facts['shards'])} shards. Expected 1 to {_MOST_SHARDS:,}.")
        check_counts(facts, where)
    return manifest


def read_begun(path):
    """Returns the dict that was written when generation began. Raises `UserError` for a damaged file.

    "to_learn" lists the vocabulary files that did not exist, without names that could be those of other files.
    """
    begun = files.read_json(path, _BEGUN)
    return begun | {"to_learn": [name for name in begun.get("to_learn", []) if _VOCABULARY.fullmatch(name)]}


def check_facts(facts, features, where):
    """Raises `UserError`, which names `where`, unless a JSON value has the form of `split_facts.Facts.as_json`."""
    check_schema(facts, _first_counts(features) | _newer_counts(features), where)
    check_counts(facts, where)


def _first_counts(features):
    return {"examples": int, "tokens": dict.fromkeys(features, int)}


def _newer_counts(features):
    """Returns the form of the counts that older manifests lack."""
    of_features = {"side_lengths": dict.fromkeys(features, _COUNTS), "largest_id": dict.fromkeys(features, int)}
    return {"lengths": _COUNTS, **of_features}


def check_counts(facts, where):
    """Raises `UserError` if a number is negative or a length is not a number."""
    lengths = [facts.get("lengths", {}), *facts.get("side_lengths", {}).values()]
    for name in {name for counts in lengths for name in counts}:
        if not re.fullmatch(r"[0-9]{1,9}", name):
            raise UserError(f"{where}: {shown(name)} is no length. Expected a number of ids.")
    groups = [*lengths, facts["tokens"], facts.get("largest_id", {}), facts.get("removed", {}), facts.get("units", {})]
    numbers = [facts["examples"], *facts.get("bytes", []), *(n for counts in groups for n in counts.values())]
    if wrong := [number for number in numbers if not 0 <= number < 2**63]:
        raise UserError(f"{where}: the number {shown(wrong[0])} is out of range. Expected counts from 0.")
