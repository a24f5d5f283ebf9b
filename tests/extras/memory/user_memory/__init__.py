"""A user's folder: a small recurrent model that carries its state from batch to batch, and a text for it."""

from typing import ClassVar

import keras
import numpy as np
from keras import ops

from t2t_lite import registry
from t2t_lite.data.problem import ChoppedTextProblem, VocabType
from t2t_lite.layers import Dropout, TokenEmbedding, number_seeds
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.settings.ranges import setting


@registry.register_problem("user_memory_text")
class UserMemoryText(ChoppedTextProblem):
    """Rows of 12 bytes."""

    vocab_type = VocabType.CHARACTER
    sequence_length = 12
    dataset_splits = ({"split": "train", "shards": 1}, {"split": "eval", "shards": 1})

    def generate_documents(self, data_dir, tmp_dir, dataset_split):
        draw = np.random.default_rng(len(dataset_split))
        yield ["".join(draw.choice([*"ab "], size=1207 if dataset_split == "train" else 131))]


@registry.register_model("user_memory")
@keras.saving.register_keras_serializable("tests")
class UserMemory(SequenceModel):
    """Adds up what it has read, which fades from segment to segment, and counts the ids."""

    features: ClassVar = {"targets": 2}
    HPARAMS: ClassVar = {"segment_length": setting(4, 1, 64, fixed=True, meaning="Ids of a segment.")}

    def __init__(self, vocab_size, target_vocab_size=None, hidden_size=8, dropout=0.1, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = self.target_vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.embedding = TokenEmbedding(vocab_size, hidden_size, dtype=self.dtype_policy, name="embedding")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(hidden_size, "tanh", dtype=self.dtype_policy, name="dense")
        self.softmax = self.embedding

    def build(self, input_shape=None):
        self.embedding.build()
        self.dense.build((None, None, self.hidden_size))
        number_seeds(self)
        self.built = True

    def initial_state(self, rows, training=False):
        return {"sum": ops.zeros((rows, self.hidden_size), self.compute_dtype), "read": ops.zeros((rows,), "int64")}

    def call(self, inputs, training=None):
        targets = ops.convert_to_tensor(inputs["targets"])
        before = ops.cast(inputs.get("before", ops.zeros_like(targets[:, 0])), targets.dtype)
        state = inputs.get("state") or self.initial_state(1)
        x = self.embedding(ops.concatenate([ops.where(before == 0, 1, before)[:, None], targets[:, :-1]], axis=1))
        sums = state["sum"][:, None] + ops.cumsum(self.dropout(x, training=training), axis=1)
        logits = self.softmax(self.dense(sums), reverse=True)
        new = {"sum": sums[:, -1] * 0.75, "read": state["read"] + ops.cast(ops.shape(targets)[1], "int64")}
        return {"targets": logits, "state": new}

    def compute_mask(self, inputs, mask=None):
        return None
