"""A plain Keras model with the same inputs: what it can't do, no row of the table asks of the others."""

import keras

from t2t_lite import registry
from tests.models.every_model import Row


@registry.register_model("plain_keras_model")
@keras.saving.register_keras_serializable("tests")
class PlainKerasModel(keras.Model):
    """Reads the inputs by a mean and the targets by an LSTM; it is written as Keras' guides write a model."""

    needed_features = ("inputs", "targets")

    def __init__(self, vocab_size, hidden_size, dropout=0.1, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size, self.hidden_size, self.dropout_rate = vocab_size, hidden_size, dropout
        own = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(vocab_size, hidden_size, **own)
        self.lstm = keras.layers.LSTM(hidden_size, return_sequences=True, **own)
        self.dropout = keras.layers.Dropout(dropout, **own)
        self.dense = keras.layers.Dense(vocab_size, **own)

    def build(self, input_shape=None):
        if self.built:
            return
        shape = (None, None, self.hidden_size)
        self.embedding.build((None, None))
        self.lstm.build(shape)
        self.dense.build(shape)

    def call(self, inputs, training=None):
        memory = keras.ops.mean(self.embedding(inputs["inputs"]), axis=1, keepdims=True)
        x = keras.ops.pad(self.embedding(inputs["targets"]), ((0, 0), (1, 0), (0, 0)))[:, :-1]
        return self.dense(self.dropout(self.lstm(x + memory), training=training))

    def get_config(self):
        sizes = {"vocab_size": self.vocab_size, "hidden_size": self.hidden_size, "dropout": self.dropout_rate}
        return {**super().get_config(), **sizes}


PLAIN = {"plain": Row("plain_keras_model", {})}
