"""The parts of a data set, and the kinds of vocabulary, under tensor2tensor's names."""

import enum


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
