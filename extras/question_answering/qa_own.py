"""`qa_own`: answers questions about the user's own texts with a span of the text.

    t2t-datagen --problem=qa_own --train_files=train.json --dev_files=dev.json --vocab_size=8000 --data_dir=D

Files are in the format of SQuAD 1.1. `D/qa_own.json` stores all settings, so that later commands need only
`--data_dir=D`.
"""

import numbers
import os

from t2t_lite import registry
from t2t_lite.corpora import downloads
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.errors import UserError, shown
from t2t_lite.extras.question_answering import qa_settings as qa_settings
from t2t_lite.extras.question_answering.squad import read_squad
from t2t_lite.extras.question_answering.windows import DOC_STRIDE, PositionEncoder, windows
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_problem import kept
from t2t_lite.problems.own_settings import LABELLED, own_settings
from t2t_lite.problems.published_files import PublishedFiles, files_of_splits
from t2t_lite.registry import register_problem

_SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"


class SpanProblem(Text2TextProblem):
    """Maps a question and its context to the span of the answer. Subclasses define `generate_samples`.

    Samples are {"inputs": str, "context": str, "answer": (start, end)}: the question, its context, and the character
    offsets of the answer in the context. A context that is too long for one row is split into `windows`. Each window
    that contains the whole answer becomes a record: its ids are the `inputs`, and the `targets` are the positions,
    counted from 1, of the first and the last id that overlap the answer. Samples whose answer does not fit into a
    window are skipped and counted.

    Attributes:
        sequence_length: int, the maximum length of a row, in ids.
        doc_stride: int, number of context ids between the starts of two successive windows.
    """

    text_features = ("inputs",)
    task = "spans"
    eval_decode_metric = None
    targets_are_places = True
    expected_sample = '"inputs": str, "context": str, "answer": (start, end)'
    sequence_length = 383  # BERT's maximum length of 384, minus one for [CLS]
    doc_stride = DOC_STRIDE

    def texts(self, sample):
        """Returns the question and the context: see `Text2TextProblem.texts`."""
        return [sample.get("inputs"), sample.get("context")]

    def feature_encoders(self, data_dir):
        """Returns {"inputs": the vocabulary, "targets": a `PositionEncoder`}."""
        return {**super().feature_encoders(data_dir), "targets": PositionEncoder(self.sequence_length)}

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": ids, "targets": [first, last]} for each window that contains an answer."""
        encoder = self.feature_encoders(data_dir)["inputs"]
        for sample in self.nonblank_samples(data_dir, tmp_dir, dataset_split):
            start, end = _checked_answer(self.name, sample)
            has_window = False
            for window in windows(encoder, sample["inputs"], sample["context"], self.sequence_length, self.doc_stride):
                if at := window.at(start, end):
                    has_window = True
                    yield {"inputs": window.ids, "targets": list(at)}
            if not has_window:
                self.removed["answers that do not fit into a window"] += 1

    def generation_settings(self):
        """Adds the length and the stride of windows to the settings: see `Problem.generation_settings`."""
        rows = {"sequence_length": self.sequence_length, "doc_stride": self.doc_stride}
        return {**super().generation_settings(), **rows}


def squad_samples(path, removed, on_bad_line=None):
    """Yields the samples of a file in SQuAD's format, each with the question's most frequent answer.

    Args:
        path: str.
        removed: Counter of skipped samples by reason; it is increased for questions without an answer (SQuAD 2.0).
        on_bad_line: see `read_squad`.
    """
    for question in read_squad(path, on_bad_line=on_bad_line):
        if question.answers:
            yield {"inputs": question.question, "context": question.context, "answer": question.answer}
        else:
            removed["questions without an answer"] += 1


def _checked_answer(name, sample):
    match sample.get("answer"):
        case (numbers.Integral() as start, numbers.Integral() as end) if 0 <= start < end <= len(sample["context"]):
            return int(start), int(end)
    raise UserError(
        f"{name}: generate_samples yielded the answer {shown(sample.get('answer'))}. Expected (start, end), offsets "
        f"into the context, which has {len(sample['context']):,} characters."
    )


@registry.register_problem
class QaOwn(OwnCorpus, SpanProblem):
    """Question answering on the user's own files, which are in SQuAD's format."""

    example_flags = "--train_files=train.json --dev_files=dev.json"
    expected_lines = "files in SQuAD's format"
    sample_unit = "questions"
    settings = own_settings(
        *LABELLED, "sequence_length", "doc_stride", "problem",
        sequence_length=SpanProblem.sequence_length, doc_stride=SpanProblem.doc_stride, vocab_type="subwords",
    )  # fmt: skip

    sequence_length = kept("sequence_length", "The maximum length of a row, in ids.")
    doc_stride = kept("doc_stride", "The number of context ids between the starts of two successive windows.")

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": question, "context": str, "answer": (start, end)}."""
        for facts in self.files_of(dataset_split):
            yield from squad_samples(facts["path"], self.removed, self.on_bad_line)


@register_problem
class Squad(PublishedFiles, SpanProblem):
    """SQuAD 1.1; answers are spans of the paragraphs, whereas tensor2tensor's models generate answers."""

    text_files = files_of_splits("{}-v1.1.json", "train", "dev")

    def prepare_generation(self, data_dir, tmp_dir):
        """Finds or downloads the two files of SQuAD, then learns the vocabulary."""
        downloads.provide([[f"{_SQUAD}/{name}", ("text", name)] for name in self.text_files.values()], tmp_dir)
        SpanProblem.prepare_generation(self, data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": question, "context": str, "answer": (start, end)}."""
        path = os.path.join(tmp_dir, self.text_files[dataset_split])
        return squad_samples(path, self.removed, self.on_bad_line)
