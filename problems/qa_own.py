"""`qa_own`: questions on the user's own texts, which a part of the text answers.

    t2t-datagen --problem=qa_own --train_files=train.json --dev_files=dev.json --vocab_size=8000 --data_dir=D

A file has the format of SQuAD 1.1. `D/qa_own.json` stores everything that was asked for, so that later commands need
only `--data_dir=D`.
"""

import types

from t2t_lite import registry
from t2t_lite.data.problem import SpanProblem
from t2t_lite.data.text_problems.span_problem import squad_samples
from t2t_lite.problems.labelled_own import LabelledOwn, remembered
from t2t_lite.ranges import SEQUENCE_LENGTH, typed_value


def _is_length(value):
    return type(value) is int and value in SEQUENCE_LENGTH


@registry.register_problem
class QaOwn(LabelledOwn, SpanProblem):
    """Questions, their contexts and their answers, given to `configure`."""

    example_flags = "--train_files=train.json --dev_files=dev.json"
    expected_lines = "files in SQuAD's format"
    _CONFIG = types.MappingProxyType(remembered(sequence_length=_is_length, doc_stride=_is_length))

    def configure(
        self,
        train_files=(),
        dev_files=(),
        test_files=(),
        sequence_length=None,
        doc_stride=None,
        vocab_size=None,
        vocab_type=None,
        vocab_from=(),
        max_samples_for_vocab=None,
    ):
        """Sets what to generate from; the arguments are t2t-datagen's flags of these names.

        Args:
            train_files, dev_files, test_files: paths of files, which may be compressed (`.gz`, `.bz2`, `.xz`).
            sequence_length: int, the most ids of a question and a part of its context together; None: 383.
            doc_stride: int, ids of a context from the start of a part to that of the next one; None: 128.
            vocab_size, vocab_type, vocab_from, max_samples_for_vocab: see `LabelledOwn.configure`.

        Raises:
            UserError: as `LabelledOwn.configure`.
        """
        self.configure_files(
            train_files, dev_files, test_files, vocab_size, vocab_type, vocab_from, max_samples_for_vocab
        )
        for name, given in (("sequence_length", sequence_length), ("doc_stride", doc_stride)):
            value = typed_value(f"--{name}", given, int | None, SEQUENCE_LENGTH)
            self.config[name] = getattr(SpanProblem, name) if value is None else value

    @property
    def sequence_length(self):
        """The most ids of a row."""
        return self.config["sequence_length"]

    @property
    def doc_stride(self):
        """Ids of a context from the start of a window to that of the next one."""
        return self.config["doc_stride"]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": question, "context": str, "answer": (start, end)}."""
        for facts in self.files_of(dataset_split):
            yield from squad_samples(facts["path"], self.removed, self.on_bad_line)
