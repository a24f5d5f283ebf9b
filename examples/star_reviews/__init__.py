"""Adds your own task: predicts the number of stars of a review, including fractions.

The task defines the targets, the meaning of the model's output, and how answers are computed, compared, written and
exported. Together with a problem, a model with a head for ordered classes, and a metric, it forms a `--t2t_usr_dir`
folder, which all commands accept:

    t2t-datagen --t2t_usr_dir=examples/star_reviews --problem=star_reviews --data_dir=data
    t2t-trainer --t2t_usr_dir=examples/star_reviews --problem=star_reviews --hparams_set=transformer_tiny \
      --data_dir=data --output_dir=train --train_steps=300 \
      --hparams=hidden_size=32,filter_size=64,batch_size=256,learning_rate_constant=0.1,learning_rate_warmup_steps=100
    t2t-decoder --output_dir=train --decode_from_file=reviews.txt --decode_to_file=stars.tsv
    t2t-score --t2t_usr_dir=examples/star_reviews --task=stars --predictions=stars.tsv --reference=labelled.tsv
    t2t-exporter --output_dir=train
    t2t-insights-server --output_dir=train
"""

import dataclasses
import random
from types import MappingProxyType

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Text2ClassProblem
from t2t_lite.evaluation.answer_scores import AnswerMetric
from t2t_lite.layers import TokenEmbedding, TransformerEncoderLayer
from t2t_lite.tasks.encoder_task import EncoderTask
from t2t_lite.text.class_label_encoder import as_number

WORDS = {"great": 1, "lovely": 1, "fine": 1, "awful": -1, "dull": -1, "bad": -1, "the": 0, "film": 0, "was": 0, "so": 0}
STARS = 5


@dataclasses.dataclass(frozen=True)
class Review:
    """The number of stars of a review, from 1 to 5, and whether the review was truncated."""

    stars: float
    truncated: bool = False


def _is_within_one(predicted, expected):
    return np.abs(np.subtract(predicted, expected)) < 1


@registry.register_task("stars")
class StarsTask(EncoderTask):
    """Stars of reviews. `scores` are the expected numbers of stars, float32 [rows]."""

    model = "ordered_classes"
    eval_metrics = ("within_one_star",)
    metrics = MappingProxyType({"within_one_star": AnswerMetric(_is_within_one, np.mean)})
    columns = ("stars",)
    unit = "review"
    output = "stars"
    as_label = staticmethod(as_number)

    def scores(self, logits):
        """Returns the expected number of stars, 1 to 5, from the probabilities; id 0 is padding."""
        return tf.linalg.matvec(tf.nn.softmax(logits[:, 1:]), tf.range(1.0, STARS + 1))

    def answer(self, reading, scores, n_best):
        """Returns a `Review`."""
        (stars,) = scores
        return Review(float(stars), reading.truncated)

    def choose(self, logits, inputs):
        """Returns each review's expected number of stars, for evaluations."""
        return self.scores(logits)

    def compared(self, inputs, targets, chosen):
        """Returns the predicted and the gold number of stars; the id of a class equals its number of stars."""
        return float(chosen), float(targets)

    @staticmethod
    def as_line(answer):
        """Returns a line of t2t-decoder's output."""
        return f"{answer.stars:.2f}"

    def outputs(self, scores):
        """Returns the outputs of an export."""
        return {"stars": scores}

    def card(self):
        """Returns the rows of an export's model card, and its description of the outputs."""
        return {"stars": f"1 to {STARS}"}, "`stars` float32 [batch]"


@registry.register_problem
class StarReviews(Text2ClassProblem):
    """Random reviews whose words determine their stars."""

    task = "stars"
    is_generate_per_split = False
    approx_vocab_size = 320
    num_classes = STARS
    dataset_splits = ({"split": DatasetSplit.TRAIN, "shards": 4}, {"split": DatasetSplit.EVAL, "shards": 1})

    def class_labels(self, data_dir):
        """Returns the names of the classes."""
        return [str(1 + stars) for stars in range(STARS)]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields reviews with the index of their class, which is the number of stars minus 1."""
        draw = random.Random(1)
        for _ in range(1000):
            words = draw.choices([*WORDS], k=draw.randint(3, 9))
            yield {"inputs": " ".join(words), "label": min(max(2 + sum(WORDS[word] for word in words), 0), STARS - 1)}


class OrderedHead(keras.layers.Layer):
    """Computes logits of ordered classes 1 to C (McCullagh 1980) from a score and thresholds between the classes."""

    def build(self, shape):
        """Creates the weights."""
        self.direction = self.add_weight(shape=(shape[-1], 1), name="direction")
        self.steps = self.add_weight(shape=(STARS - 1,), initializer="zeros", name="steps")

    def call(self, x):
        """[B, hidden] -> [B, 1 + C]."""
        steps = ops.cumsum(ops.softplus(self.steps)) - STARS / 2
        above = ops.pad(ops.sigmoid(x @ self.direction - steps), ((0, 0), (1, 1)), constant_values=0)
        above = above + ops.one_hot([0], STARS + 1)  # all reviews have at least one star
        logits = ops.log(ops.maximum(above[:, :-1] - above[:, 1:], 1e-6))
        return ops.pad(logits, ((0, 0), (1, 0)), constant_values=-1e9)


@registry.register_model
class OrderedClasses(keras.Model):
    """Encoder layers and an `OrderedHead`, which reads the sum of their outputs over all positions of a text."""

    @classmethod
    def from_hparams(cls, hparams, vocab_size, target_vocab_size=None):
        """Builds the model of a run."""
        model = cls()
        model.embedding = TokenEmbedding(vocab_size, hparams.hidden_size, mask_zero=True)
        model.encoder = TransformerEncoderLayer(num_heads=hparams.num_heads, filter_size=hparams.filter_size)
        model.head = OrderedHead()
        return model

    def call(self, batch, training=None):
        """{"inputs": [B, S], "targets": [B]} -> logits [B, 1 + classes]."""
        x = self.encoder(self.embedding(batch["inputs"]), training=training)
        is_there = ops.cast(batch["inputs"] != 0, x.dtype)[..., None]
        return self.head(ops.sum(x * is_there, axis=1) / STARS)
