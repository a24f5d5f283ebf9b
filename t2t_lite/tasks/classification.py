"""The tasks of classification (a class for each text) and regression (a number for each text)."""

import dataclasses

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.corpora.plain_text import as_field
from t2t_lite.errors import UserError, shown
from t2t_lite.evaluation import answer_scores
from t2t_lite.tasks.encoder_task import EncoderTask
from t2t_lite.text.class_label_encoder import RealEncoder, as_number


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The predicted class of one text.

    Attributes:
        label: str, the most probable class.
        probabilities: {label: float}, the probabilities of all classes, which sum up to 1.
        truncated: bool, whether the text was longer than the model's longest input and therefore truncated.
    """

    label: str
    probabilities: dict[str, float]
    truncated: bool = False


class LabelTask(EncoderTask):
    """Predicts labels of texts or words; `scores` are probabilities, float32 [rows, …, labels], without id 0."""

    def __init__(self, problem, encoders):
        super().__init__(problem, encoders)
        self.labels = [encoders["targets"].decode([label]) for label in range(1, encoders["targets"].vocab_size)]

    def scores(self, logits):
        """See `EncoderTask`."""
        return tf.nn.softmax(logits[..., 1:])

    def choose(self, logits, inputs):
        """Returns the ids of the most probable labels: see `EncoderTask.choose`."""
        return 1 + tf.argmax(logits[..., 1:], axis=-1, output_type=tf.int32)

    def best_labels(self, scores):
        """Maps scores float32 [rows, …, labels] to labels, string [rows, …], in a graph."""
        return tf.gather(tf.constant(self.labels), tf.argmax(scores, -1))


@registry.register_task("classification")
class ClassificationTask(LabelTask):
    """Classifies texts or pairs of texts."""

    eval_metrics = ("accuracy",)
    head = "class"
    problems = ("classify_own", "classify_pair_own")
    metrics = answer_scores.CLASS_METRICS

    def scores(self, logits):
        """Converts logits to the labels' probabilities, float32 [rows, labels]: see `LabelTask`."""
        return super().scores(tf.reshape(logits, [tf.shape(logits)[0], len(self.labels) + 1]))

    def answer(self, reading, scores, n_best):
        """Converts the scores of a text to a `Prediction`."""
        (row,) = scores
        probabilities = dict(zip(self.labels, row.tolist(), strict=True))
        return Prediction(self.labels[int(np.argmax(row))], probabilities, reading.truncated)

    def compared(self, inputs, targets, chosen):
        """Returns the predicted and the expected label: see `EncoderTask`."""
        return [self.encoders["targets"].decode(ids) for ids in (chosen, targets)]

    @staticmethod
    def as_line(answer):
        """Formats a `Prediction` as its label and the label's probability."""
        return f"{as_field(answer.label)}\t{answer.probabilities[answer.label]:.6f}"

    @classmethod
    def shown(cls, answer):
        """See `EncoderTask`."""
        return answer.label, [sorted(answer.probabilities.items(), key=lambda one: -one[1])]

    @classmethod
    def predictions(cls, path, reference):
        """See `EncoderTask`."""
        answers = super().predictions(path, reference)
        if not {*answers} & {*reference.answers}:
            raise UserError(
                f"{path}: no line begins with a label that occurs in {reference.path}, such as "
                f"{shown(reference.answers[0])}. Expected labels in the first column."
            )
        answer_scores.warn_of_forms(path, answers, reference.answers)
        return answers

    def outputs(self, scores):
        """Returns an export's outputs: see `EncoderTask`. Probabilities are in the order of the problem's classes."""
        return {"labels": self.best_labels(scores), "probabilities": scores}

    def card(self):
        """See `EncoderTask`."""
        outputs = f"`labels` string [batch], `probabilities` float32 [batch, {len(self.labels)}]"
        return {"classes": ", ".join(self.labels)}, outputs


@dataclasses.dataclass(frozen=True)
class Value:
    """The number that a model predicts for one text.

    Attributes:
        value: float, which may be slightly outside the range of the numbers in the training files.
        truncated: bool, whether the text was longer than the model's longest input and therefore truncated.
    """

    value: float
    truncated: bool = False


@registry.register_task("regression")
class RegressionTask(EncoderTask):
    """Predicts a number. `scores`, [rows, 1], are positions between the lowest and the highest number in training."""

    eval_metrics = ("pearson", "spearman")
    head = "real"
    problems = ("regress_own", "regress_pair_own")
    has_perplexity = False
    metrics = answer_scores.NUMBER_METRICS
    columns = ("number",)
    output = "values"

    @staticmethod
    def fit_labels(batch, features):
        """Returns the targets as positions from 0 (the lowest number) to 1 (the highest number): see `Task`."""
        return RealEncoder.place(tf.cast(batch["targets"], tf.float32))

    def scores(self, logits):
        """See `EncoderTask`."""
        return logits

    def answer(self, reading, scores, n_best):
        """Converts the scores of a text to a `Value`."""
        (row,) = scores
        return Value(self.encoders["targets"].value(row.item()), reading.truncated)

    def choose(self, logits, inputs):
        """See `EncoderTask`."""
        return logits[:, 0]

    def compared(self, inputs, targets, chosen):
        """Returns the predicted and the expected number: see `EncoderTask`."""
        encoder = self.encoders["targets"]
        return [encoder.value(place.item()) for place in (chosen, encoder.place(targets))]

    @staticmethod
    def as_line(answer):
        """Formats a `Value` as its number."""
        return f"{answer.value:.6g}"

    as_label = staticmethod(as_number)

    def is_labelled(self, line):
        """Returns whether a line begins with a number and a tab: see `EncoderTask`."""
        return "\t" in line and as_number(line.partition("\t")[0]) is not None

    def outputs(self, scores):
        """See `EncoderTask`."""
        return {"values": self.encoders["targets"].value(scores[:, 0])}

    def card(self):
        """See `EncoderTask`."""
        encoder = self.encoders["targets"]
        return {"numbers": f"{encoder.lowest:g} to {encoder.highest:g} in training"}, "`values` float32 [batch]"
