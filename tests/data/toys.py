"""Problems of a few generated sentences: by pieces, by words, by bytes, and in one stream for all splits."""

import pathlib

from t2t_lite.data.problem import DatasetSplit, Text2TextProblem, VocabType
from tests.data import corpus


class ToyText(Text2TextProblem):
    name = "toy_text"
    approx_vocab_size = 300
    is_generate_per_split = True
    dataset_splits = [{"split": s, "shards": n} for s, n in ((DatasetSplit.TRAIN, 3), (DatasetSplit.EVAL, 1))]  # noqa: RUF012
    language_pair = ("en", "de")
    count = 60

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        pairs = corpus.sentence_pairs(self.count if dataset_split == DatasetSplit.TRAIN else 20, seed=dataset_split)
        for inputs, targets in pairs:
            yield {"inputs": inputs, "targets": targets}


class ToyStream(ToyText):
    """One stream for all splits, written with tensor2tensor's properties."""

    name = "toy_stream"

    @property
    def approx_vocab_size(self):
        return 300

    @property
    def is_generate_per_split(self):
        return False


class ToyWords(ToyText):
    name = "toy_words"
    vocab_type = VocabType.TOKEN
    oov_token = "<UNK>"


class ToyBytes(ToyText):
    name = "toy_bytes"
    vocab_type = VocabType.CHARACTER


def files_in(folder):
    """Returns {name: bytes} of the files in a folder."""
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
