"""Users' own models: one with a setting of its own, one of a single stack, and one that Keras alone knows."""

from typing import ClassVar

import keras
import numpy as np

from t2t_lite import registry
from t2t_lite.layers import TokenEmbedding, TransformerEncoderLayer, TransformerStack, number_seeds
from t2t_lite.models import Transformer
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.settings.ranges import setting


@registry.register_model("own_model")
@keras.saving.register_keras_serializable("tests")
class OwnModel(Transformer):
    """A Transformer that is told a window."""

    HPARAMS: ClassVar = {
        "window": setting(8, 1, 64, argument="window", fixed=True, meaning="Positions of the window."),
        "note": setting("", meaning="What the user wants to remember."),
    }

    def __init__(self, *sizes, window=8, **kwargs):
        super().__init__(*sizes, **kwargs)
        self.config["window"] = window


@registry.register_model("own_language_model")
@keras.saving.register_keras_serializable("tests")
class OwnLanguageModel(SequenceModel):
    """Predicts each target from those before it, by one stack."""

    features: ClassVar = {"targets": 2}

    def __init__(
        self,
        vocab_size,
        target_vocab_size=None,
        hidden_size=32,
        filter_size=80,
        num_heads=4,
        num_encoder_layers=1,
        tie_embeddings=True,
        dropout=0.1,
        **kwargs,
    ):
        config = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        super().__init__(**kwargs)
        self.config, self.vocab_size, self.target_vocab_size = config, vocab_size, target_vocab_size or vocab_size
        options = {"dropout": dropout, "dtype": self.dtype_policy}
        self.embedding = TokenEmbedding(vocab_size, hidden_size, name="embedding", dtype=self.dtype_policy)
        self.softmax = (
            self.embedding if tie_embeddings else TokenEmbedding(vocab_size, hidden_size, name="softmax_embedding")
        )
        self.stack = TransformerStack(
            [
                TransformerEncoderLayer(num_heads, filter_size, name=f"stack_{i}", **options)
                for i in range(num_encoder_layers)
            ],
            name="stack",
        )

    def stacks(self):
        return {"targets": self.stack}

    def token_embeddings(self):
        return {"targets": self.embedding}

    def build(self, input_shape=None):
        for layer in {id(layer): layer for layer in (self.embedding, self.softmax)}.values():
            layer.build()
        self.stack.build((None, None, self.config["hidden_size"]))
        number_seeds(self)
        self.built = True

    def call(self, inputs, training=None):
        x = self.embedding(inputs["targets"])
        x = keras.ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        causal = keras.ops.tril(keras.ops.ones((x.shape[1], x.shape[1]), "bool"))[None]
        return self.softmax(self.stack(x, attention_mask=causal, training=training), reverse=True)


@registry.register_model("own_plain_model")
class OwnPlainModel(keras.Model):
    """Has its weights once it is called, on a batch of its problem."""

    def __init__(self, vocab_size):
        super().__init__()
        self.table = keras.layers.Embedding(vocab_size, vocab_size)

    @classmethod
    def from_hparams(cls, hparams, vocab_size, target_vocab_size=None):
        return cls(vocab_size)

    def call(self, inputs, training=None):
        return self.table(inputs["targets"])


class Called(keras.Model):
    """Has weights only once it is called."""

    def __init__(self, hparams, vocab_size):
        super().__init__()
        self.embedding = keras.layers.Embedding(vocab_size, hparams.hidden_size)
        self.dense = keras.layers.Dense(vocab_size)

    @classmethod
    def from_hparams(cls, hparams, vocab_size, target_vocab_size=None):
        return cls(hparams, vocab_size)

    def call(self, inputs, training=None):
        return self.dense(self.embedding(inputs["targets"]))


class WithValues(Called):
    """Has a weight that can't be made without its value."""

    def __init__(self, hparams, vocab_size):
        super().__init__(hparams, vocab_size)
        self.scale = keras.Variable(np.ones(3, "float32"))
