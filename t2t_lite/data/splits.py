"""Defines the splits of a data set and the vocabulary types, with the names that they have in tensor2tensor.

Also describes the user's own files of each split, and detects whether they have changed since records were generated.
"""

import collections.abc
import enum
import os

from t2t_lite import files
from t2t_lite.errors import LOGGER, UserError, shown
from t2t_lite.files.file_system import status
from t2t_lite.files.pipes import is_device


class DatasetSplit:
    """The splits of a data set; the names of their files contain `-train-`, `-dev-` and `-test-`."""

    TRAIN = "train"
    EVAL = "eval"
    TEST = "test"


class VocabType(enum.Enum):
    """The vocabulary types: SentencePiece pieces, GPT-2's byte-level BPE, UTF-8 bytes, or a user's words."""

    SUBWORD = "subwords"
    BYTE_LEVEL_BPE = "byte_level_bpe"
    CHARACTER = "character"
    TOKEN = "tokens"


SENTENCEPIECE = ("normalization", "character_coverage", "split_digits")  # settings of `VocabType.SUBWORD` alone
FILE_TAGS = {DatasetSplit.TRAIN: "train", DatasetSplit.EVAL: "dev", DatasetSplit.TEST: "test"}
# {split: its name in a prepared tensorflow-datasets set}
PREPARED = {DatasetSplit.TRAIN: "train", DatasetSplit.EVAL: "validation", DatasetSplit.TEST: "test"}
FLAGS = {DatasetSplit.TRAIN: "train_files", DatasetSplit.EVAL: "dev_files", DatasetSplit.TEST: "test_files"}


def named_split(name):
    """Returns the split that a user has named; "dev", which file names contain, means "eval".

    Raises:
        UserError: no split has this name.
    """
    split = DatasetSplit.EVAL if name == FILE_TAGS[DatasetSplit.EVAL] else name
    if split not in FILE_TAGS:
        raise UserError(f"split={shown(name)}: expected one of {', '.join(FILE_TAGS)}.")
    return split


def generated(samples, what, expected):
    """Returns `samples`. Raises `UserError` if they are not iterable, for example if a method lacks `yield`.

    Args:
        samples: the result of the method.
        what: str, the name of the method.
        expected: str, a description of a sample.
    """
    if isinstance(samples, str | bytes | collections.abc.Mapping) or not isinstance(samples, collections.abc.Iterable):
        raise UserError(
            f"{what} returned {shown(samples)}. Expected a generator or a list of {expected}: `yield` each sample."
        )
    return samples


def warn_of_others(samples, name, features):
    """Yields samples; warns if the first one has a feature that records will not contain.

    Args:
        samples: iterable of {feature: ids}.
        name: str, the name of the problem.
        features: names of the features of records.
    """
    for number, sample in enumerate(samples):
        if number == 0 and isinstance(sample, dict) and (others := {*sample} - {*features}):
            LOGGER.warning(
                f"{name}: records will not contain {', '.join(sorted(map(shown, others)))}, which "
                "generate_encoded_samples yields. If the model needs these ids, declare them in the problem's features."
            )
        yield sample


def with_content(facts, recorded):
    """Returns {"path", "bytes", "sha256", "changed"} for the current state of a corpus file.

    The file is read only if its size or times differ from those in `recorded`, so an edit that changes neither the size
    nor the times is not detected.
    """
    # imported late, because importing NumPy would delay `t2t-datagen --help`
    from t2t_lite.files.hashes import file_sha256

    path = facts["path"]
    if not files.exists(path):  # a missing corpus is not an error, since finished data can be used without it
        return facts
    size, modified, _ = status(path)
    times = [modified] if files.is_remote(path) else [modified, os.stat(path).st_ctime_ns]
    if recorded.get("bytes") == size and recorded.get("changed") == times:
        return recorded
    return {"path": path, "bytes": size, "sha256": file_sha256(path, size, *times), "changed": times}


def describe_files(split, paths):
    """Returns [{"path", "bytes"}, …] for the files given by a flag. Raises `UserError` if a path is not a file."""

    flag = f"--{FLAGS[split]}={','.join(paths)}"
    for at, path in enumerate(paths):
        if not files.exists(path):
            joined = [",".join(paths[at:end]) for end in range(at + 2, len(paths) + 1)]
            whole = next(filter(files.exists, joined), "")
            remedy = f"Put quotation marks around a path with a comma: '\"{whole}\"'" if whole else "Check the path"
            raise UserError(f"{flag}: no such file: {path}. {remedy}.")
        if files.is_folder(path):
            raise UserError(f"{flag}: {path} is a folder. Expected a file.")
        if not files.size(path) and not is_device(path):  # otherwise found when the files before it have been read
            raise UserError(f"{flag}: {path}: the file is empty. Expected a file with text.")
    return [{"path": path, "bytes": files.size(path)} for path in map(full_path, paths)]


def full_path(path):
    """Returns a path that is valid from any working directory: a file's absolute path, or a remote file's URL."""
    return path.rstrip("/") if files.is_remote(path) else os.path.abspath(path)
