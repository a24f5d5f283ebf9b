"""The base of encoder-decoders of any layers: embeddings, the shift of the targets, and the cache for decoding."""

import keras
from keras import ops

from t2t_lite.layers.checks import check_sizes, shape_of
from t2t_lite.layers.dropout import number_seeds
from t2t_lite.layers.masks import with_mask
from t2t_lite.layers.token_embedding import TokenEmbedding
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.models.transformer_parts import build_embeddings


class EncoderDecoder(SequenceModel):
    """Base of models that read "inputs" and predict "targets" one after the other, decoded step by step from a state.

    It has embeddings and a softmax, and feeds the decoder with the targets shifted right; the first input is the zero
    vector. A subclass calls the base's constructor, makes its layers there, and has five methods:

        build_layers(shape)                      creates their weights, for sequences of the shape (None, None, hidden)
        encode(inputs, training=None)            int ids [B, S] -> memory, a dict of tensors with the batch first; it
                                                 calls `build_if_needed`
        decode(x, memory, training=None)         the shifted targets' embeddings [B, T, hidden] -> [B, T, hidden]
        first_state(memory)                      -> the state that the first step reads, tensors [B, …]
        step(x, state, memory, position)         [B, K, hidden], of K beams, and their state [B, K, …] -> ([B, K,
                                                 hidden], the next state), as `decode` computes it at a position

    `extras/baselines/` has five such models. Their hyperparameters become arguments of the constructor, which are all
    in `config`: see `from_hparams`.

    Args:
        vocab_size: int, ids of the inputs, and of the targets when shared.
        target_vocab_size: int, ids of the targets; None: one vocabulary for both.
        hidden_size: int, size of the embeddings and of the states that the softmax reads.
        tie_embeddings: bool, whether embeddings and softmax share one matrix.

    Raises:
        ValueError: a size is not positive.
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
        self.config = dict(vars(self)["_arguments"])  # including a subclass's: see `t2t_lite.layers.base`
        self.vocab_size, self.target_vocab_size = vocab_size, target_vocab_size or vocab_size
        self.input_embedding, self.target_embedding, self.softmax = tied_embeddings(
            self.make_embedding, vocab_size, target_vocab_size, tie_embeddings
        )

    def make_embedding(self, size, name):
        """Returns the `TokenEmbedding` of a vocabulary. Override it for other initial values or scales."""
        return TokenEmbedding(size, self.config["hidden_size"], dtype=self.dtype_policy, name=name)

    def token_embeddings(self):
        """Returns the look-ups of both sides, which may be one."""
        return {"inputs": self.input_embedding, "targets": self.target_embedding}

    def build(self, input_shape=None):
        """Creates all weights; `input_shape` is not used."""
        if self.built:
            return
        build_embeddings(self.input_embedding, self.target_embedding, self.softmax)
        self.build_layers((None, None, self.config["hidden_size"]))
        number_seeds(self)
        self.built = True

    def call(self, inputs, training=None):
        """Teacher-forced pass.

        Args:
            inputs: dict of int ids "inputs" [B, S] and "targets" [B, T], padded with 0.
            training: bool.

        Returns:
            float32 logits [B, T, target_vocab_size]; those at position t see targets before t.
        """
        self.check_inputs(inputs)  # again: fit on JAX calls this, not the model
        memory = self.encode(inputs["inputs"], training=training)
        x = shifted_right(self.target_embedding(inputs["targets"]))
        logits = self.logits(self.decode(x, memory, training=training))
        return with_mask(logits, self.compute_mask(inputs))

    def logits(self, hidden, matrix=None):
        """[..., hidden] -> float32 [..., target_vocab_size]; `matrix`: see `TokenEmbedding.reverse_matrix`."""
        return self.softmax(hidden, reverse=True, matrix=matrix)

    def init_cache(self, memory, max_length, beam_size=1):
        """Returns the cache before decoding starts; its size does not depend on `max_length`.

        Args:
            memory: from `encode`, batch B.
            max_length: not used.
            beam_size: int K.

        Returns:
            {"beams": the state of each beam, [B, K, …], "shared": the softmax's matrix, "fixed": the memory}.
        """
        state = keras.tree.map_structure(
            lambda x: ops.repeat(ops.expand_dims(x, 1), beam_size, axis=1), self.first_state(memory)
        )
        return {"beams": state, "shared": self.softmax.reverse_matrix(), "fixed": memory}

    def decode_step(self, ids, position, cache):
        """Decodes one position of every beam.

        Args:
            ids: int32 [B * K], the tokens before this position; ignored at position 0 (the zero vector).
            position: int32 scalar.
            cache: from `init_cache` or the last step, its "beams" reordered by parent.

        Returns:
            (float32 logits [B * K, target_vocab_size], new cache).
        """
        memory = cache["fixed"]
        batch = shape_of(keras.tree.flatten(memory)[0])[0]
        x = self.target_embedding(ops.reshape(ids, (batch, -1)))
        x = ops.where(position > 0, x, ops.zeros_like(x))
        x, state = self.step(x, cache["beams"], memory, position)
        logits = self.logits(ops.reshape(x, (-1, self.config["hidden_size"])), cache["shared"])
        return logits, {**cache, "beams": state}


def tied_embeddings(make, vocab_size, target_vocab_size, tie, **bias):
    """Makes the look-ups of inputs and targets, and the softmax; one layer if they share a matrix.

    Args:
        make: function(number of ids, name, **bias) that returns a `TokenEmbedding`.
        vocab_size: int, ids of the inputs.
        target_vocab_size: int, ids of the targets; None: one vocabulary for both.
        tie: bool, whether look-ups and softmax share one matrix.
        **bias: further arguments of the layer that is the softmax.

    Returns:
        (inputs, targets, softmax), `TokenEmbedding`s.
    """
    target_size = target_vocab_size or vocab_size
    if tie and target_vocab_size is None:
        shared = make(vocab_size, "embedding", **bias)
        return shared, shared, shared
    inputs = make(vocab_size, "input_embedding")
    targets = make(target_size, "target_embedding", **(bias if tie else {}))
    return inputs, targets, targets if tie else make(target_size, "softmax_embedding", **bias)


def shifted_right(x):
    """Returns embeddings x [B, T, hidden] one position later: the first input of a decoder is the zero vector."""
    return ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
