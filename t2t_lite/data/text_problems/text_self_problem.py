"""Problems of text alone, for language models (tensor2tensor's text_problems.py)."""

import types

from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.evaluation import loss_units


class Text2SelfProblem(Text2TextProblem):
    """Text that a language model learns. Subclasses write `generate_samples`, as in tensor2tensor.

    Samples are {"targets": str}. Records and batches hold only `targets`, which end in 1. The manifest holds the counts
    of a split's text, with which evaluations give the loss per word, character and byte.
    """

    features = types.MappingProxyType({"targets": 2})
    text_features = ("targets",)
    task = "language_model"
    eval_decode_metric = None
    loss_metrics = loss_units.OF_TEXT

    def nonblank_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields and counts the samples that are not blank; see `Text2TextProblem`."""
        for sample in super().nonblank_samples(data_dir, tmp_dir, dataset_split):
            self.count_text(sample["targets"], ends=True)
            yield sample

    def count_text(self, text, ends):
        """Adds a text to the counts; its end (`ends`, bool) is one word, one character and one byte."""
        self.unit_counts.update(
            word=len(text.split()) + ends,
            character=len(text) + ends,
            byte=len(text.encode(errors="surrogatepass")) + ends,
        )
