"""The task of giving a number to a text."""

import dataclasses

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.evaluation import answer_metrics
from t2t_lite.tasks.encoder_task import EncoderTask
from t2t_lite.text.real_encoder import RealEncoder, as_number


@dataclasses.dataclass(frozen=True)
class Value:
    """The number that belongs to one text.

    Attributes:
        value: float. It may lie a little outside of the training files' numbers.
        truncated: bool, whether the text was longer than the model's longest input and therefore truncated.
    """

    value: float
    truncated: bool = False


@registry.register_task("regression")
class RegressionTask(EncoderTask):
    """Numbers of texts, or of pairs. `scores` are places in the range of the training files' numbers [rows, 1]."""

    eval_metrics = ("pearson", "spearman")
    head = "real"
    problems = ("regress_own", "regress_pair_own")
    has_perplexity = False
    metrics = answer_metrics.OF_NUMBERS
    columns = ("number",)
    output = "values"

    @staticmethod
    def fit_labels(batch, features):
        """See `Task`: places between the lowest number, 0, and the highest, 1."""
        return RealEncoder.place(tf.cast(batch["targets"], tf.float32))

    def scores(self, logits):
        """See `EncoderTask`."""
        return logits

    def answer(self, reading, scores, n_best):
        """Returns a `Value`."""
        (row,) = scores
        return Value(self.encoders["targets"].value(row.item()), reading.truncated)

    def choose(self, logits, inputs):
        """See `EncoderTask`."""
        return logits[:, 0]

    def compared(self, inputs, targets, chosen):
        """See `EncoderTask`: two numbers."""
        encoder = self.encoders["targets"]
        return [encoder.value(place.item()) for place in (chosen, encoder.place(targets))]

    @staticmethod
    def as_line(answer):
        """Returns the number."""
        return f"{answer.value:.6g}"

    as_label = staticmethod(as_number)

    def outputs(self, scores):
        """See `EncoderTask`."""
        return {"values": self.encoders["targets"].value(scores[:, 0])}

    def card(self):
        """See `EncoderTask`."""
        encoder = self.encoders["targets"]
        return {"numbers": f"{encoder.lowest:g} to {encoder.highest:g} in training"}, "`values` float32 [batch]"
