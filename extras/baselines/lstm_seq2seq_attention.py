"""LSTMs with attention, structured like GNMT (Wu et al. 2016); the sets mirror tensor2tensor's models/lstm.py."""

from typing import ClassVar

import keras
from keras import ops

from t2t_lite.layers import Dropout, masked_softmax
from t2t_lite.layers.base import Layer, Orthogonal
from t2t_lite.layers.checks import check_choices
from t2t_lite.models.encoder_decoder import EncoderDecoder, shifted_right
from t2t_lite.models.transformer_parts import build_parts
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting

MECHANISMS = ("bahdanau", "luong")


def lstm(size, **options):
    """Returns a `keras.layers.LSTM` that returns all outputs and the last state, also with 16-bit weights."""
    # cuDNN is off, since compiled steps and searches use XLA, which cannot use cuDNN's kernels.
    layer = keras.layers.LSTM(size, return_sequences=True, return_state=True, use_cudnn=False, **options)
    layer.cell.recurrent_initializer = Orthogonal(seed=layer.cell.recurrent_initializer.seed)
    return layer


class Attention(Layer):
    """Attention to a memory h_j with the weights softmax_j(score(q, h_j)).

    "bahdanau" is additive, v · tanh(W q + U h_j) (Bahdanau et al. 2015, appendix A.1.2); "luong" is multiplicative,
    q · U h_j (Luong et al. 2015, equation 8: "general").
    """

    def __init__(self, mechanism: str, size: int, **kwargs):
        super().__init__(**kwargs)
        check_choices(MECHANISMS, mechanism=mechanism)
        common = {"use_bias": False, "dtype": self.dtype_policy}
        self.key = keras.layers.Dense(size, name="key", **common)
        self.query = self.score = None
        if mechanism == "bahdanau":
            self.query = keras.layers.Dense(size, name="query", **common)
            self.score = keras.layers.Dense(1, name="score", **common)

    def build(self, input_shape):
        """Creates the weights for queries and a memory [B, T, size]."""
        build_parts(input_shape, self.key, self.query, self.score)

    def call(self, queries, keys, values, mask):
        """Maps queries [B, T, size], keys and values [B, S, size], and a mask [B, S] to ([B, T, size], weights)."""
        if self.score is None:
            scores = ops.matmul(queries, ops.swapaxes(keys, 1, 2))
        else:
            inner = ops.tanh(ops.expand_dims(self.query(queries), 2) + ops.expand_dims(keys, 1))  # [B, T, S, size]
            scores = ops.squeeze(self.score(inner), -1)
        weights = masked_softmax(scores, ops.expand_dims(mask, 1))
        return ops.matmul(weights, values), weights


@register_model("lstm_seq2seq_attention")
@keras.saving.register_keras_serializable("baselines")
class LSTMSeq2SeqAttention(EncoderDecoder):
    """An encoder and a decoder of LSTMs with attention, structured like GNMT.

    The encoder's first layer is bidirectional, and both stacks have residual connections from the third layer on. The
    decoder's first layer provides the attention queries; each layer above it reads the attended context in addition to
    the layer below. (In GNMT, the queries are the first layer's outputs of the previous step.) The first decoder layer
    starts with the last state of the backward LSTM, and layer i with the last state of encoder layer i.

    `dropout` is the dropout rate for each layer's input, and `hidden_size` the size of embeddings, cells and attention.
    """

    HPARAMS: ClassVar = {
        "attention_mechanism": setting(
            "bahdanau", choices=MECHANISMS, argument="mechanism", fixed=True,
            meaning="The score of attention: additive (bahdanau) or multiplicative (luong).",
        )
    }  # fmt: skip

    def __init__(
        self, vocab_size, target_vocab_size=None, num_layers=2, mechanism="bahdanau", dropout=0.2, **kwargs
    ):  # fmt: skip
        super().__init__(vocab_size, target_vocab_size, **kwargs)
        if num_layers < 2:
            raise ValueError(
                f"`num_layers` must be at least 2, because the layers above the first one read the attended context: "
                f"received num_layers={num_layers}."
            )
        size, common = self.config["hidden_size"], {"dtype": self.dtype_policy}
        self.backward = lstm(size, go_backwards=True, name="encoder_backward", **common)
        self.encoder = [lstm(size, name=f"encoder_{i}", **common) for i in range(num_layers)]
        self.decoder = [lstm(size, name=f"decoder_{i}", **common) for i in range(num_layers)]
        self.encoder_dropouts = [Dropout(dropout, name=f"encoder_dropout_{i}", **common) for i in range(num_layers)]
        self.decoder_dropouts = [Dropout(dropout, name=f"decoder_dropout_{i}", **common) for i in range(num_layers)]
        self.attention = Attention(mechanism, size, name="attention", **common)

    def build_layers(self, shape):
        """Creates the weights of all layers."""
        twice = (*shape[:-1], 2 * shape[-1])
        self.backward.build(shape)
        for i, (encoder, decoder) in enumerate(zip(self.encoder, self.decoder, strict=True)):
            encoder.build(twice if i == 1 else shape)
            decoder.build(twice if i > 0 else shape)
        self.attention.build(shape)

    def flops(self, lengths, rows=1):
        """See `SequenceModel`.

        One key is computed for each input; scores and a weighted sum over all inputs are computed for each target.
        """
        from t2t_lite.extras.describe.cost import counted_flops, layer_flops

        counted, width = counted_flops(self, lengths, rows), lengths["inputs"]
        key, product = layer_flops(self.attention.key, width), 2 * self.config["hidden_size"]
        once = 0 if self.attention.score is None else product
        targets = counted["targets"] - key - once + 2 * product * width
        return {"inputs": counted["inputs"] + key, "targets": targets}

    def encode(self, inputs, training=None):
        """Maps ids, int [B, S], to {"hidden", "keys": [B, S, hidden], "mask": bool [B, S], "states": [[h, c]]}."""
        self.build_if_needed()
        inputs = ops.convert_to_tensor(inputs)
        x, mask, states = self.input_embedding(inputs), inputs != 0, []
        for i, (layer, dropout) in enumerate(zip(self.encoder, self.encoder_dropouts, strict=True)):
            dropped = dropout(x, training=training)
            output, *state = layer(dropped, mask=mask)
            if i == 0:
                backward, *state = self.backward(dropped, mask=mask)
                output = ops.concatenate([output, ops.flip(backward, axis=1)], axis=-1)
            x = output + x if i > 1 else output
            states.append(state)
        return {"hidden": x, "keys": self.attention.key(x), "mask": mask, "states": states}

    def decode(self, x, memory, training=None):
        """Maps the shifted targets' embeddings [B, T, hidden] to the inputs of the softmax, [B, T, hidden]."""
        return self._decode(x, memory, training)[0]

    def _decode(self, x, memory, training=None):
        """Like `decode`, but also returns the attention weights, [B, T, S]."""

        def run(i, x, state):
            dropped = self.decoder_dropouts[i](x, training=training)
            return self.decoder[i](dropped, initial_state=list(state))

        x, weights, _ = self._through_layers(run, x, memory, memory["states"])
        return x, weights

    def first_state(self, memory):
        """Returns the initial state [h, c] of each layer, [B, hidden]."""
        return memory["states"]

    def step(self, x, state, memory, position):
        """Maps x and each layer's [h, c], all [B, K, hidden], to (outputs [B, K, hidden], the next states)."""

        def run(i, x, state):
            size, shape = state[0].shape[-1], ops.shape(state[0])
            rows = [ops.reshape(tensor, (-1, size)) for tensor in state]
            _, rows = self.decoder[i].cell(ops.reshape(x, (-1, x.shape[-1])), rows)
            state = [ops.reshape(tensor, shape) for tensor in rows]
            return state[0], *state

        x, _, states = self._through_layers(run, x, memory, state)
        return x, states

    def _through_layers(self, run, x, memory, states):
        """Runs the decoder, given a function of (layer number, inputs, state) that returns (outputs, h, c)."""
        after, context = [], None
        for i, state in enumerate(states):
            read = x if context is None else ops.concatenate([x, context], axis=-1)
            output, *state = run(i, read, state)
            if context is None:
                context, weights = self.attention(output, memory["keys"], memory["hidden"], memory["mask"])
            x = output + x if i > 1 else output
            after.append(list(state))
        return x, weights, after

    def attention_weights(self, inputs):
        """Returns {"memory": [attention weights [B, 1, T, S]]}: see `t2t_lite.models.outputs`."""
        memory = self.encode(inputs["inputs"])
        embedded = self.target_embedding(inputs["targets"])
        weights = self._decode(shifted_right(embedded), memory)[1]
        return {"memory": [ops.expand_dims(weights, 1)]}
