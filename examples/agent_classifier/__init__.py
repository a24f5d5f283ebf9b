"""Adds your own classifier and trains it from the command line: is the agent of a sentence a person or an animal?

It needs only the code below: a problem, a model with an additional cost, an hparams set and a metric. If you copy this
code to extras/agent_classifier/agent_classifier.py, it becomes an extra. Here, the folder is a `--t2t_usr_dir`:

    t2t-datagen --t2t_usr_dir=examples/agent_classifier --problem=sentence_agent --data_dir=data
    t2t-trainer --t2t_usr_dir=examples/agent_classifier --problem=sentence_agent --hparams_set=agent_classifier_tiny \
      --data_dir=data --output_dir=train --train_steps=400
    python -c "import t2t_lite; print(t2t_lite.load('train').predict(['the dog is seen by a girl'])[0].label)"
"""

import itertools
import random

import keras
import tensorflow as tf
from keras import ops

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Text2ClassProblem
from t2t_lite.hparams.transformer import transformer_tiny
from t2t_lite.layers import SinusoidalPositionEmbedding, TokenEmbedding, TransformerEncoderLayer

NOUNS = {
    "person": ["man", "woman", "boy", "girl", "doctor", "teacher"],
    "animal": ["dog", "cat", "horse", "bear", "wolf", "goat"],
}
VERBS = {"sees": "seen", "follows": "followed", "likes": "liked", "finds": "found", "hears": "heard"}


@registry.register_problem
class SentenceAgent(Text2ClassProblem):
    """Active and passive sentences, labelled with the kind of their agent."""

    is_generate_per_split, approx_vocab_size, num_classes = False, 320, 2
    dataset_splits = ({"split": DatasetSplit.TRAIN, "shards": 4}, {"split": DatasetSplit.EVAL, "shards": 1})

    def class_labels(self, data_dir):
        """Returns the names of the classes."""
        return list(NOUNS)

    def eval_metrics(self):
        """Returns the evaluation metrics."""
        return ["accuracy", "matthews_correlation"]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields each sentence once, in a random order, with the index of its class."""
        combined = [
            (list(NOUNS).index(agent), who, *verb, whom)
            for agent, other in itertools.permutations(NOUNS)
            for who, verb, whom in itertools.product(NOUNS[agent], VERBS.items(), NOUNS[other])
        ]
        for label, who, active, participle, whom in random.Random(1).sample(combined, len(combined)):
            yield {"inputs": f"the {who} {active} a {whom}", "label": label}
            yield {"inputs": f"the {whom} is {participle} by a {who}", "label": label}


def _matthews(counts):
    """Returns Matthews' correlation from counts [3, 3], whose first row and column stand for "no class"."""
    (a, b), (c, d) = counts[1:, 1:]
    return (a * d - b * c) / max(((a + b) * (a + c) * (d + b) * (d + c)) ** 0.5, 1)


@registry.register_metric(result=_matthews)
def matthews_correlation(logits, labels):
    """Returns the counts of (label, prediction) in a batch."""
    predicted, labels = tf.reshape(tf.argmax(logits, -1), [-1]), tf.reshape(labels, [-1])
    return tf.math.confusion_matrix(labels, predicted, num_classes=3)


@registry.register_hparams(model="agent_classifier")
def agent_classifier_tiny():
    """Two layers of size 32, with small batches and a high learning rate."""
    rate = "learning_rate_constant=0.1,learning_rate_warmup_steps=100"
    return transformer_tiny().parse(f"hidden_size=32,filter_size=64,batch_size=256,{rate}")


@registry.register_model
class AgentClassifier(keras.Model):
    """Encoder layers and attention pooling; a cost on the attention's entropy makes it focus on few words."""

    @classmethod
    def from_hparams(cls, hparams, vocab_size, target_vocab_size=None):
        """Builds the model of a run."""
        model = cls()
        model.embed = [TokenEmbedding(vocab_size, hparams.hidden_size, mask_zero=True), SinusoidalPositionEmbedding()]
        sizes = hparams.num_heads, hparams.filter_size
        model.encode = [TransformerEncoderLayer(*sizes) for _ in range(hparams.num_hidden_layers)]
        model.point, model.head = keras.layers.Dense(1), keras.layers.Dense(target_vocab_size)
        return model

    def call(self, batch, training=None):
        """{"inputs": [B, S], "targets": [B]} -> logits [B, 1 + classes], and the costs [B]."""
        x = batch["inputs"]
        for layer in self.embed + self.encode:
            x = layer(x, training=training) if layer in self.encode else layer(x)
        weights = ops.softmax(ops.where(batch["inputs"][..., None] != 0, self.point(x), -1e9), axis=1)
        entropy = -ops.sum(weights * ops.log(weights + 1e-9), axis=(1, 2))
        return {"targets": self.head(ops.sum(weights * x, axis=1)), "costs": {"targets": 0.05 * entropy}}
