"""Small models of each task behind t2t-insights-server, and their problems."""

import tensorflow as tf

from t2t_lite.data.problem import Problem, Text2SelfProblem
from tests.decoding.parity import Labels, Parity


class Letters(Text2SelfProblem):
    """Of a language model whose ids are letters."""


class Classifier(Parity):
    def count_params(self):
        return 7


class Classes(Problem):
    task = "classification"


class Shown(Problem):
    """A problem of some task, of two texts."""

    num_texts = 2

    def __init__(self, task):
        super().__init__()
        self.task = task


def tags(batch, training):
    return 5 * tf.one_hot(1 + batch["inputs"] % 2, Labels.vocab_size)


def spans(batch, training):
    return tf.pad(5 * tf.one_hot([[4, 5]], tf.shape(batch["inputs"])[1]), [[0, 0], [0, 0], [1, 0]])


spans.count_params = lambda: 7
