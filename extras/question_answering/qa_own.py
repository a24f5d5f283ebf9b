"""`qa_own`: questions on the user's own texts, answered by a span of the text.

    t2t-datagen --problem=qa_own --train_files=train.json --dev_files=dev.json --vocab_size=8000 --data_dir=D

A file has the format of SQuAD 1.1. `D/qa_own.json` stores everything that was asked for, so that later commands need
only `--data_dir=D`.
"""

from t2t_lite import registry
from t2t_lite.extras.question_answering import qa_settings as qa_settings
from t2t_lite.extras.question_answering.span_problem import SpanProblem, squad_samples
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_problem import kept
from t2t_lite.problems.own_settings import LABELLED, own_settings


@registry.register_problem
class QaOwn(OwnCorpus, SpanProblem):
    """Questions, their contexts and their answers, given to `configure`."""

    example_flags = "--train_files=train.json --dev_files=dev.json"
    expected_lines = "files in SQuAD's format"
    sample_unit = "questions"
    settings = own_settings(
        *LABELLED, "sequence_length", "doc_stride", "problem",
        sequence_length=SpanProblem.sequence_length, doc_stride=SpanProblem.doc_stride, vocab_type="subwords",
    )  # fmt: skip

    sequence_length = kept("sequence_length", "The maximum length of a row in ids.")
    doc_stride = kept("doc_stride", "The number of ids from the start of a window to that of the next one.")

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": question, "context": str, "answer": (start, end)}."""
        for facts in self.files_of(dataset_split):
            yield from squad_samples(facts["path"], self.removed, self.on_bad_line)
