"""SQuAD 1.1 under tensor2tensor's name: looked for in `--tmp_dir`, or downloaded there."""

import os

from t2t_lite.corpora import downloads
from t2t_lite.extras.question_answering.span_problem import SpanProblem, squad_samples
from t2t_lite.problems.published_files import PublishedFiles, files_of_splits
from t2t_lite.registry import register_problem

_SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"


@register_problem
class Squad(PublishedFiles, SpanProblem):
    """SQuAD 1.1, answers as parts of paragraphs; tensor2tensor's model writes them."""

    text_files = files_of_splits("{}-v1.1.json", "train", "dev")

    def prepare_generation(self, data_dir, tmp_dir):
        """Finds or downloads the two files; then makes the vocabulary."""
        downloads.provide([[f"{_SQUAD}/{name}", ("text", name)] for name in self.text_files.values()], tmp_dir)
        SpanProblem.prepare_generation(self, data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": question, "context": str, "answer": (start, end)}."""
        path = os.path.join(tmp_dir, self.text_files[dataset_split])
        return squad_samples(path, self.removed, self.on_bad_line)
