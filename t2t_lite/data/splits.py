"""The parts of a data set and the kinds of vocabulary, under tensor2tensor's names; what generators must return."""

import collections.abc
import enum

from t2t_lite.errors import UserError, shown


class DatasetSplit:
    """The parts of a data set; their files are named `-train-`, `-dev-` and `-test-`."""

    TRAIN = "train"
    EVAL = "eval"
    TEST = "test"


class VocabType(enum.Enum):
    """How text becomes ids: by SentencePiece pieces, GPT-2's byte-level BPE, UTF-8 bytes, or a user's words."""

    SUBWORD = "subwords"
    BYTE_LEVEL_BPE = "byte_level_bpe"
    CHARACTER = "character"
    TOKEN = "tokens"


FILE_TAGS = {DatasetSplit.TRAIN: "train", DatasetSplit.EVAL: "dev", DatasetSplit.TEST: "test"}

# The names of the parts in a prepared tensorflow-datasets set.
PREPARED = {DatasetSplit.TRAIN: "train", DatasetSplit.EVAL: "validation", DatasetSplit.TEST: "test"}


def named_split(name):
    """Returns the part of a data set that a user names; "dev" is "eval", as in files' names.

    Raises:
        UserError: there is no such part.
    """
    split = DatasetSplit.EVAL if name == FILE_TAGS[DatasetSplit.EVAL] else name
    if split not in FILE_TAGS:
        raise UserError(f"split={shown(name)}: expected one of {', '.join(FILE_TAGS)}.")
    return split


def generated(samples, what, expected):
    """Returns `samples`. Raises `UserError` if a method returned something else, such as None for lack of a `yield`.

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
