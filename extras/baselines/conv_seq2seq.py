"""ConvS2S, convolutional sequence-to-sequence learning (Gehring et al. 2017)."""

from typing import ClassVar

import keras
from keras import ops

from t2t_lite.extras.baselines.convolution import KERNEL_HPARAMS, Convolution
from t2t_lite.layers import Dropout, LearnedPositionEmbedding, TokenEmbedding, masked_softmax
from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_rates, check_sizes
from t2t_lite.models.encoder_decoder import EncoderDecoder, shifted_right
from t2t_lite.models.transformer_parts import build_parts
from t2t_lite.registry import register_model

HALF = 0.5**0.5  # scales a sum of two terms to the variance of one term (section 3.5)


def normal(inputs, keep=1.0, gain=1.0):
    """Returns the initializer N(0, gain · keep / inputs), which preserves the variance (section 3.5)."""
    return keras.initializers.RandomNormal(stddev=(gain * keep / inputs) ** 0.5)


class GatedConvolution(Layer):
    """Dropout, a convolution to twice the size, and a gated linear unit: A ⊙ σ(B) (section 3.2)."""

    def __init__(self, size: int, kernel_size: int, dropout: float, causal: bool = False, **kwargs):
        super().__init__(**kwargs)
        common = {"dtype": self.dtype_policy}
        initializer = normal(kernel_size * size, 1 - dropout, 4.0)  # gain 4, because the gate halves its input
        self.dropout = Dropout(dropout, name="dropout", **common)
        self.convolution = Convolution(
            2 * size, kernel_size, causal=causal, kernel_initializer=initializer, name="convolution", **common
        )

    def build(self, input_shape):
        """Creates the weights for inputs [B, T, size]."""
        self.convolution.build(input_shape)

    def call(self, inputs, mask=None, training=None):
        """Maps [B, T, size] to [B, T, size]."""
        return _gated(self.convolution(self.dropout(inputs, training=training), mask=mask))

    def step(self, x, past):
        """Computes the next position: see `Convolution.step`."""
        x, past = self.convolution.step(x, past)
        return _gated(x), past


def _gated(x):
    values, gates = ops.split(x, 2, axis=-1)
    return values * ops.sigmoid(gates)


class Attention(Layer):
    """Attention of a decoder layer to the encoder, with a residual connection (section 3.3)."""

    def __init__(self, size: int, **kwargs):
        super().__init__(**kwargs)
        common = {"kernel_initializer": normal(size), "dtype": self.dtype_policy}
        self.query = keras.layers.Dense(size, name="query", **common)
        self.output_layer = keras.layers.Dense(size, name="output", **common)

    def build(self, input_shape):
        """Creates the weights for inputs [B, T, size]."""
        build_parts(input_shape, self.query, self.output_layer)

    def call(self, inputs, embedded, memory):
        """Maps the layer's outputs and the targets' embeddings, [B, T, size], to ([B, T, size], attention weights)."""
        queries = (self.query(inputs) + embedded) * HALF
        scores = ops.matmul(queries, ops.swapaxes(memory["keys"], 1, 2))
        weights = masked_softmax(scores, ops.expand_dims(memory["mask"], 1))
        # m, the number of inputs: with equal weights, the context's variance is 1 / m
        length = ops.sum(ops.cast(memory["mask"], "float32"), axis=1)
        context = ops.matmul(weights, memory["values"]) * ops.cast(ops.sqrt(length), inputs.dtype)[:, None, None]
        return (self.output_layer(context) + inputs) * HALF, weights


@register_model("conv_seq2seq")
@keras.saving.register_keras_serializable("baselines")
class ConvSeq2Seq(EncoderDecoder):
    """ConvS2S: gated convolutions in encoder and decoder, with attention in every decoder layer.

    Position embeddings are learned. The keys of attention are the encoder's outputs z, and its values are z + e, where
    e are the input embeddings. In training, the encoder's gradient is divided by twice the number of attention layers,
    as in the authors' code (fairseq).

    Unlike in the paper, there is no weight normalization (Salimans and Kingma 2016). `hidden_size` is the size of
    embeddings and convolutions. `dropout` is the dropout rate for the embeddings, and for the inputs of each
    convolution and of the softmax.
    """

    HPARAMS: ClassVar = KERNEL_HPARAMS

    def __init__(
        self, vocab_size, target_vocab_size=None, num_encoder_layers=20, num_decoder_layers=20, kernel_size=3,
        dropout=0.1, max_position=1024, **kwargs
    ):  # fmt: skip
        super().__init__(vocab_size, target_vocab_size, **kwargs)
        check_sizes(num_encoder_layers=num_encoder_layers, num_decoder_layers=num_decoder_layers)
        check_rates(dropout=dropout)
        size, common, keep = self.config["hidden_size"], {"dtype": self.dtype_policy}, 1 - dropout
        self.max_length = max_position
        self.positions = {
            side: LearnedPositionEmbedding(max_position, _embeddings(), name=f"{side}_position", **common)
            for side in ("encoder", "decoder")
        }
        self.dropouts = {  # one dropout layer per use, because two calls of a layer would sample the same mask
            name: Dropout(dropout, name=f"{name}_dropout", **common) for name in ("encoder", "decoder", "output")
        }
        self.maps = {  # projections before and after the convolutions
            name: keras.layers.Dense(size, kernel_initializer=normal(size, part), name=name, **common)
            for name, part in (("encoder_in", keep), ("encoder_out", 1), ("decoder_in", keep), ("decoder_out", 1))
        }
        sizes = {"size": size, "kernel_size": kernel_size, "dropout": dropout, **common}
        self.encoder = [GatedConvolution(**sizes, name=f"encoder_{i}") for i in range(num_encoder_layers)]
        self.decoder = [GatedConvolution(**sizes, causal=True, name=f"decoder_{i}") for i in range(num_decoder_layers)]
        self.attentions = [Attention(size, name=f"attention_{i}", **common) for i in range(num_decoder_layers)]

    def make_embedding(self, size, name):
        """Returns an unscaled `TokenEmbedding`, initialized from N(0, 0.1).

        With scaling, the attention scores would be too large to train.
        """
        options = {"embeddings_initializer": _embeddings(), "scale": False, "dtype": self.dtype_policy, "name": name}
        return TokenEmbedding(size, self.config["hidden_size"], **options)

    def build_layers(self, shape):
        """Creates the weights of all layers."""
        parts = [*self.positions.values(), *self.maps.values(), *self.encoder, *self.decoder, *self.attentions]
        build_parts(shape, *parts)

    def flops(self, lengths, rows=1):
        """See `SequenceModel`; also counts the attention scores and weighted sums, which no layer computes."""
        from t2t_lite.extras.describe.cost import counted_flops

        counted = counted_flops(self, lengths, rows)
        products = 4 * self.config["hidden_size"] * lengths["inputs"] * len(self.attentions)
        return counted | {"targets": counted["targets"] + products}

    def encode(self, inputs, training=None):
        """Maps ids, int [B, S], to {"keys", "values": [B, S, hidden], "mask": bool [B, S]}."""
        self.build_if_needed()
        inputs = ops.convert_to_tensor(inputs)
        mask = inputs != 0
        embedded = self.positions["encoder"](self.input_embedding(inputs))
        embedded = self.dropouts["encoder"](embedded, training=training)
        x = self.maps["encoder_in"](embedded)
        for layer in self.encoder:
            x = (layer(x, mask=mask, training=training) + x) * HALF
        x = self.maps["encoder_out"](x)
        if training:
            share = 1 / (2 * len(self.attentions))
            x = x * share + ops.stop_gradient(x * (1 - share))
        return {"keys": x, "values": (x + embedded) * HALF, "mask": mask}

    def decode(self, x, memory, training=None):
        """Maps the shifted targets' embeddings [B, T, hidden] to the inputs of the softmax, [B, T, hidden]."""
        return self._decode(x, memory, training)[0]

    def _decode(self, x, memory, training=None):
        """Like `decode`, but also returns each layer's attention weights, [B, T, S]."""
        embedded = self.dropouts["decoder"](self.positions["decoder"](x), training=training)
        x, weights_of_layers = self.maps["decoder_in"](embedded), []
        for layer, attention in zip(self.decoder, self.attentions, strict=True):
            inner, weights = attention(layer(x, training=training), embedded, memory)
            x = (inner + x) * HALF
            weights_of_layers.append(weights)
        return self.dropouts["output"](self.maps["decoder_out"](x), training=training), weights_of_layers

    def first_state(self, memory):
        """Returns the initial past of each convolution, which contains only zeros."""
        batch, _, size = ops.shape(memory["keys"])
        return [layer.convolution.first_past(batch, size) for layer in self.decoder]

    def step(self, x, state, memory, position):
        """Maps x [B, K, hidden] and pasts [B, K, width, hidden] to (outputs [B, K, hidden], the next pasts)."""
        embedded = self.positions["decoder"](x, position=position)
        x, after = self.maps["decoder_in"](embedded), []
        for layer, attention, past in zip(self.decoder, self.attentions, state, strict=True):
            inner, past = layer.step(x, past)
            x = (attention(inner, embedded, memory)[0] + x) * HALF
            after.append(past)
        return self.maps["decoder_out"](x), after

    def attention_weights(self, inputs):
        """Returns {"memory": [attention weights [B, 1, T, S] of each layer]}: see `t2t_lite.models.outputs`."""
        memory = self.encode(inputs["inputs"])
        _, weights_of_layers = self._decode(shifted_right(self.target_embedding(inputs["targets"])), memory)
        return {"memory": [ops.expand_dims(weights, 1) for weights in weights_of_layers]}


def _embeddings():
    return keras.initializers.RandomNormal(stddev=0.1)
