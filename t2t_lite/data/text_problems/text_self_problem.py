"""Text problems without inputs, for language models (tensor2tensor's text_problems.py)."""

import functools
import itertools
import re
import types

from t2t_lite.corpora import plain_text
from t2t_lite.data.splits import DatasetSplit, generated
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.errors import NotWritten
from t2t_lite.evaluation import loss_units
from t2t_lite.settings.ranges import Choices, typed_value
from t2t_lite.text.vocabulary import EOS_ID

_SHORTEST_PIECE, _LONGEST_PIECE = 1000, 1300  # characters
_BETWEEN_WORDS = re.compile(r"(?<=\S) (?=\S)")


class Text2SelfProblem(Text2TextProblem):
    """A text for language modelling. Subclasses define `generate_samples`, as in tensor2tensor.

    Samples are {"targets": str}. Records and batches hold only `targets`, which end in 1. The manifest stores each
    split's numbers of words, characters and bytes, so that evaluation can report the loss per unit.
    """

    features = types.MappingProxyType({"targets": 2})
    text_features = ("targets",)
    task = "language_model"
    eval_decode_metric = None
    has_inputs = False
    loss_metrics = loss_units.TEXT_MEASURES

    def nonblank_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields the samples that are not blank and counts their text; see `Text2TextProblem`."""
        for sample in super().nonblank_samples(data_dir, tmp_dir, dataset_split):
            self.count_text(sample["targets"], ends=True)
            yield sample

    def count_text(self, text, ends):
        """Adds a text to the counts of units. If `ends` is true, its end counts as one word, character and byte."""
        self.unit_counts.update(
            word=len(text.split()) + ends,
            character=len(text) + ends,
            byte=len(text.encode(errors="surrogatepass")) + ends,
        )


class ChoppedTextProblem(Text2SelfProblem):
    """A problem with documents that are split into rows of `sequence_length` ids.

    Subclasses define `sequence_length` and the paths of their files.

    The ids of each document end in 1, and the next document follows in the same row. Text is encoded in pieces of about
    1,000 characters. In every 16,384 pieces of text, only the last row can be shorter than `sequence_length`. The dev
    and test sets keep the order of the text: the concatenated records are the ids of the whole text.

    Attributes:
        sequence_length: number of ids in a full row.
        remainder_policy: what to do with shorter rows: "pad" keeps them, and "drop" removes them. With "drop", there
            are no losses per word, character or byte, since these are not counted per row.
    """

    is_generate_per_split = True
    rows_are_windows = True
    ordered_splits = (DatasetSplit.EVAL, DatasetSplit.TEST)
    max_samples_for_vocab = 100_000  # a sample is a piece of text of about 1,000 characters
    remainder_policy = "pad"

    @property
    def sequence_length(self):
        """The number of ids in a full row."""
        raise NotWritten(f"{type(self).__name__}: define sequence_length.")

    def train_text_filepaths(self, tmp_dir):
        """Returns the paths of the training files (UTF-8, optionally compressed); may download the files first."""
        raise NotWritten(f"{type(self).__name__}: define train_text_filepaths, or generate_documents.")

    def dev_text_filepaths(self, tmp_dir):
        """Returns the paths of the development files."""
        raise NotWritten(f"{type(self).__name__}: define dev_text_filepaths, or generate_documents.")

    def test_text_filepaths(self, tmp_dir):
        """Returns the paths of the test files; called only if `dataset_splits` has a test set."""
        raise NotWritten(f"{type(self).__name__}: define test_text_filepaths, or generate_documents.")

    def filepath_to_unicode_strings(self, filepath):
        """Yields the text of a file in parts of any length."""
        return plain_text.read_text(filepath, self.on_bad_line)

    def generate_documents(self, data_dir, tmp_dir, dataset_split):
        """Yields the documents of a split, each as an iterable of consecutive strings; by default one per file."""
        paths = {
            DatasetSplit.TRAIN: self.train_text_filepaths,
            DatasetSplit.EVAL: self.dev_text_filepaths,
            DatasetSplit.TEST: self.test_text_filepaths,
        }
        return map(self.filepath_to_unicode_strings, paths[dataset_split](tmp_dir))

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"targets": a piece of text, "ends": whether the document ends with this piece}."""
        documents = self.generate_documents(data_dir, tmp_dir, dataset_split)
        for document in generated(documents, f"{self.name}: generate_documents", "documents, each an iterable of str"):
            for text, is_last in _pieces(document):
                yield {"targets": text, "ends": is_last}

    def nonblank_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields and counts all samples; blank text is kept, because it is part of its document."""
        counts_text = self.remainder_policy != "drop"  # the text of dropped rows would lower the loss per byte
        last_character = " "
        for sample in self.checked_samples(self.generate_samples(data_dir, tmp_dir, dataset_split)):
            text, ends = sample["targets"], sample["ends"]
            if counts_text:
                self.count_text(text, ends)
                # a word at the border of two pieces must be counted once, not twice
                self.unit_counts["word"] -= not (last_character.isspace() or text[:1].isspace())
            last_character = " " if ends else text[-1]
            yield sample

    def sample_encoder(self, data_dir):
        """Returns a function that encodes consecutive samples into rows; see `Text2TextProblem`."""
        encoder = self.feature_encoders(data_dir)["targets"]
        return functools.partial(_rows, encoder, self.sequence_length, self.remainder_policy == "pad")

    def generation_settings(self):
        """Returns the settings of text problems and the settings for rows, such as `sequence_length`."""
        typed_value("remainder_policy", self.remainder_policy, str, Choices(("pad", "drop")))
        rows = {"sequence_length": self.sequence_length, "remainder_policy": self.remainder_policy}
        return {**super().generation_settings(), **rows}


def _pieces(parts):
    """Splits a document, given in parts, into pieces of text; yields (piece, whether it is the last piece)."""
    # A piece ends before a single space between two words, so that every vocabulary gives the same ids as for the whole
    # text. If there is no such space, a piece ends after a line end or anywhere.
    rest = ""
    for part in parts:
        rest, begin = rest + part, 0
        while len(rest) - begin > _LONGEST_PIECE:
            first, last = begin + _SHORTEST_PIECE, begin + _LONGEST_PIECE
            boundary = _BETWEEN_WORDS.search(rest, first, last)
            end = boundary.start() if boundary else rest.rfind("\n", first, last) + 1 or last
            yield rest[begin:end], False
            begin = end
        rest = rest[begin:]
    if rest:
        yield rest, True


def _rows(encoder, length, keeps_rest, samples):
    ends = ([], [EOS_ID])
    ids = list(itertools.chain.from_iterable([*encoder.encode(s["targets"]), *ends[s["ends"]]] for s in samples))
    stop = len(ids) if keeps_rest else len(ids) // length * length
    return [{"targets": ids[start : start + length]} for start in range(0, stop, length)]
