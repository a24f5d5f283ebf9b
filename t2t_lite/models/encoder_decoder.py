"""The base class for autoregressive encoder-decoder models, with embeddings, shifted targets and a decoding cache."""

import keras
from keras import ops

from t2t_lite.layers.checks import check_sizes, shape_of
from t2t_lite.layers.dropout import number_seeds
from t2t_lite.layers.masks import with_mask
from t2t_lite.layers.token_embedding import TokenEmbedding
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.models.transformer_parts import build_parts


class EncoderDecoder(SequenceModel):
    """Base class for autoregressive models of any architecture that predict "targets" from "inputs".

    The base class has the embeddings and the output layer. It shifts the targets right, so that the decoder's first
    input is the zero vector. A subclass creates its layers in its constructor, after calling the base
    constructor, and defines five methods:

        build_layers(shape)                      creates the layers' weights, for the shape (None, None, hidden)
        encode(inputs, training=None)            maps int ids [B, S] to a memory, a dict of tensors with the batch axis
                                                 first; must call `build_if_needed`
        decode(x, memory, training=None)         maps the shifted targets' embeddings [B, T, hidden] to [B, T, hidden]
        first_state(memory)                      returns the state before the first step, tensors [B, …]
        step(x, state, memory, position)         maps the embeddings of K beams [B, K, hidden] and their state [B, K, …]
                                                 to ([B, K, hidden], the next state); must match `decode`

    `extras/baselines/` has five such models. Hyperparameters become arguments of the constructor, which are all
    recorded in `config`: see `from_hparams`.

    Args:
        vocab_size: int, the vocabulary size of the inputs (and of the targets, if shared).
        target_vocab_size: int, the vocabulary size of the targets. Defaults to one vocabulary for both.
        hidden_size: int, the size of the embeddings and of the states before the output layer.
        tie_embeddings: bool, whether the embeddings and the output layer share one matrix.

    Raises:
        ValueError: if a size is not positive.
    """

    def __init__(
        self,
        vocab_size: int,
        target_vocab_size: int | None = None,
        hidden_size: int = 512,
        tie_embeddings: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(vocab_size=vocab_size, target_vocab_size=target_vocab_size, hidden_size=hidden_size)
        self.config = dict(vars(self)["_arguments"])  # including a subclass's arguments: see `t2t_lite.layers.base`
        self.vocab_size, self.target_vocab_size = vocab_size, target_vocab_size or vocab_size
        self.input_embedding, self.target_embedding, self.softmax = tied_embeddings(
            self.make_embedding, vocab_size, target_vocab_size, tie_embeddings
        )

    def make_embedding(self, size, name):
        """Creates a `TokenEmbedding` for a vocabulary. Override this to change its initial values or scale."""
        return TokenEmbedding(size, self.config["hidden_size"], dtype=self.dtype_policy, name=name)

    def token_embeddings(self):
        """Returns the embedding layers of inputs and targets, which may be the same layer."""
        return {"inputs": self.input_embedding, "targets": self.target_embedding}

    def build(self, input_shape=None):
        """Creates all weights; `input_shape` is unused."""
        if self.built:
            return
        build_parts((None, None), self.input_embedding, self.target_embedding, self.softmax)
        self.build_layers((None, None, self.config["hidden_size"]))
        number_seeds(self)

    def call(self, inputs, training=None):
        """Runs a teacher-forced pass and returns the logits.

        Args:
            inputs: dict of int ids "inputs" [B, S] and "targets" [B, T], padded with 0.
            training: bool.

        Returns:
            float32 logits [B, T, target_vocab_size]. The logits at position t depend on the targets before t.
        """
        self.check_inputs(inputs)  # checked here as well, because `fit` on JAX bypasses `__call__`
        memory = self.encode(inputs["inputs"], training=training)
        x = shifted_right(self.target_embedding(inputs["targets"]))
        logits = self.logits(self.decode(x, memory, training=training))
        return with_mask(logits, self.compute_mask(inputs))

    def logits(self, hidden, matrix=None):
        """Maps hidden states [..., hidden] to float32 logits; for `matrix` see `TokenEmbedding.reverse_matrix`."""
        return self.softmax(hidden, reverse=True, matrix=matrix)

    def init_cache(self, memory, max_length, beam_size=1):
        """Returns the cache for the start of decoding. Its size does not depend on `max_length`.

        Args:
            memory: the result of `encode` for a batch of size B.
            max_length: unused.
            beam_size: int, K.

        Returns:
            {"beams": the state of each beam, [B, K, …], "shared": the matrix for the logits, "fixed": the memory}.
        """
        state = keras.tree.map_structure(
            lambda x: ops.repeat(ops.expand_dims(x, 1), beam_size, axis=1), self.first_state(memory)
        )
        return {"beams": state, "shared": self.softmax.reverse_matrix(), "fixed": memory}

    def decode_step(self, ids, position, cache):
        """Decodes one position of every beam.

        Args:
            ids: int32 [B * K], the tokens before this position. At position 0 the ids are ignored, and the decoder's
                input is the zero vector.
            position: int32 scalar.
            cache: from `init_cache` or the previous step, with "beams" reordered by parent.

        Returns:
            (float32 logits [B * K, target_vocab_size], the updated cache).
        """
        memory = cache["fixed"]
        batch = shape_of(keras.tree.flatten(memory)[0])[0]
        x = self.target_embedding(ops.reshape(ids, (batch, -1)))
        x = ops.where(position > 0, x, ops.zeros_like(x))
        x, state = self.step(x, cache["beams"], memory, position)
        logits = self.logits(ops.reshape(x, (-1, self.config["hidden_size"])), cache["shared"])
        return logits, {**cache, "beams": state}


def tied_embeddings(make, vocab_size, target_vocab_size, tie, **bias):
    """Creates the embeddings of inputs and targets, and the output layer. One layer may serve as several.

    Args:
        make: function(vocabulary size, name, **bias) that returns a `TokenEmbedding`.
        vocab_size: int, the vocabulary size of the inputs.
        target_vocab_size: int, the vocabulary size of the targets. Defaults to one vocabulary for both.
        tie: bool, whether the embeddings and the output layer share one matrix.
        **bias: further arguments for the layer that is used as the output layer.

    Returns:
        (inputs, targets, softmax), all of them `TokenEmbedding`.
    """
    target_size = target_vocab_size or vocab_size
    if tie and target_vocab_size is None:
        shared = make(vocab_size, "embedding", **bias)
        return shared, shared, shared
    inputs = make(vocab_size, "input_embedding")
    targets = make(target_size, "target_embedding", **(bias if tie else {}))
    return inputs, targets, targets if tie else make(target_size, "softmax_embedding", **bias)


def shifted_right(x):
    """Shifts embeddings x [B, T, hidden] right by one position, so that the first input is the zero vector."""
    return ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
