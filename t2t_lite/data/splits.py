"""The parts of a data set, and the kinds of vocabulary, under tensor2tensor's names."""

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
