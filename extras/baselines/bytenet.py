"""ByteNet (Kalchbrenner et al. 2016): dilated convolutions; mirrors tensor2tensor's models/bytenet.py."""

from typing import ClassVar

import keras
from keras import ops

from t2t_lite.extras.baselines.convolution import KERNEL_HPARAMS, Convolution, read_at
from t2t_lite.layers import Dropout, LayerNormalization
from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_sizes
from t2t_lite.models.encoder_decoder import EncoderDecoder
from t2t_lite.models.transformer_parts import build_parts
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting

EPSILON = 1e-6  # epsilon of the layer normalizations, as in tensor2tensor


class ConvolutionBlock(Layer):
    """A block with a ReLU, a convolution without bias and a layer normalization for each dilation."""

    def __init__(self, size: int, kernel_size: int, dilations: list, causal: bool = False, **kwargs):
        super().__init__(**kwargs)
        common = {"dtype": self.dtype_policy}
        options = {"causal": causal, "use_bias": False, **common}
        self.convolutions = [
            Convolution(size, kernel_size, dilation, name=f"convolution_{i}", **options)
            for i, dilation in enumerate(dilations)
        ]
        self.norms = [LayerNormalization(epsilon=EPSILON, name=f"norm_{i}", **common) for i in range(len(dilations))]
        self.size = size

    def build(self, input_shape):
        """Creates the weights for inputs [B, T, any size]."""
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            inner = (*input_shape[:-1], self.size)
            convolution.build(inner if i else input_shape)
            norm.build(inner)

    def call(self, inputs, mask=None):
        """Maps [B, T, …] to [B, T, size]."""
        x = inputs
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = norm(convolution(ops.relu(x), mask=mask))
        return x

    def compute_output_shape(self, input_shape):
        """Returns [B, T, size]."""
        return (*input_shape[:-1], self.size)

    def first_past(self, batch, size):
        """Returns the initial past of each convolution, given the size of the inputs."""
        sizes = [size, *[self.size] * (len(self.convolutions) - 1)]
        return [layer.first_past(batch, input_size) for layer, input_size in zip(self.convolutions, sizes, strict=True)]

    def step(self, x, pasts):
        """Computes the next position: see `Convolution.step`; `pasts` lists the past of each convolution."""
        after = []
        for convolution, norm, past in zip(self.convolutions, self.norms, pasts, strict=True):
            x, past = convolution.step(ops.relu(x), past)
            x = norm(x)
            after.append(past)
        return x, after


class ResidualBlock(Layer):
    """Computes x + dropout(block(norm(x))), where the block has dilations 1, 2, 4, …"""

    def __init__(self, size: int, kernel_size: int, num_layers: int, dropout: float, causal: bool, **kwargs):
        super().__init__(**kwargs)
        common = {"dtype": self.dtype_policy}
        dilations = [2**i for i in range(num_layers)]
        self.norm = LayerNormalization(epsilon=EPSILON, name="norm", **common)
        self.block = ConvolutionBlock(size, kernel_size, dilations, causal, name="block", **common)
        self.dropout = Dropout(dropout, name="dropout", **common)

    def build(self, input_shape):
        """Creates the weights for inputs [B, T, size]."""
        build_parts(input_shape, self.norm, self.block)

    def call(self, inputs, mask=None, training=None):
        """Maps [B, T, size] to [B, T, size]."""
        return inputs + self.dropout(self.block(self.norm(inputs), mask=mask), training=training)

    def step(self, x, pasts):
        """Computes the next position: see `ConvolutionBlock.step`."""
        added, pasts = self.block.step(self.norm(x), pasts)
        return x + added, pasts


@register_model("bytenet")
@keras.saving.register_keras_serializable("baselines")
class ByteNet(EncoderDecoder):
    """ByteNet: an encoder and a decoder of dilated convolutions, with the decoder on top of the encoder.

    The decoder has no attention: it reads the previous target and the encoder's output at its own position. Targets may
    be longer than inputs, so the encoder also computes positions past the end of the inputs, half as many as there are
    inputs. These additional positions read only their neighbours. Past them, the decoder reads zeros. All convolutions
    read zeros before the start and past the end of a sequence. In tensor2tensor, which also pads inputs and targets to
    a multiple of 50 positions, the result depends on the padding of a batch.

    `hidden_size` is the size of embeddings and convolutions, `num_layers` the number of convolutions per block,
    `num_blocks` the number of encoder blocks and of decoder blocks, and `dropout` the dropout rate for the output
    of a block.
    """

    HPARAMS: ClassVar = {
        **KERNEL_HPARAMS,
        "num_block_repeat": setting(
            4, 1, 64, argument="num_blocks", fixed=True, meaning="Number of encoder blocks, and of decoder blocks."
        ),
    }

    def __init__(
        self, vocab_size, target_vocab_size=None, num_layers=4, num_blocks=4, kernel_size=3, dropout=0.2, **kwargs
    ):
        super().__init__(vocab_size, target_vocab_size, **kwargs)
        check_sizes(num_layers=num_layers, num_blocks=num_blocks)
        size, common = self.config["hidden_size"], {"dtype": self.dtype_policy}
        sizes = size, kernel_size, num_layers, dropout
        self.encoder = [ResidualBlock(*sizes, causal=False, name=f"encoder_{i}", **common) for i in range(num_blocks)]
        self.start = ConvolutionBlock(size, kernel_size, [1], causal=True, name="decoder_start", **common)
        self.decoder = [ResidualBlock(*sizes, causal=True, name=f"decoder_{i}", **common) for i in range(num_blocks)]

    def build_layers(self, shape):
        """Creates the weights of all layers."""
        self.start.build((*shape[:-1], 2 * shape[-1]))
        build_parts(shape, *self.encoder, *self.decoder)

    def flops(self, lengths, rows=1):
        """See `SequenceModel`; the encoder computes 1.5 times as many positions as there are inputs."""
        from t2t_lite.extras.describe.cost import counted_flops

        counted, width = counted_flops(self, lengths, rows), lengths["inputs"]
        return counted | {"inputs": counted["inputs"] * (width + width // 2) / width}

    def encode(self, inputs, training=None):
        """Maps ids, int [B, S], to {"hidden": [B, S + S // 2, hidden]}, with zeros past the end of a row."""
        self.build_if_needed()
        inputs = ops.convert_to_tensor(inputs)
        width = ops.shape(inputs)[1]
        lengths = ops.sum(ops.cast(inputs != 0, "int32"), axis=1, keepdims=True)
        at = ops.arange(width + width // 2, dtype="int32")
        mask = at < lengths + lengths // 2
        x = read_at(self.input_embedding(inputs), at)
        for layer in self.encoder:
            x = layer(x, mask=mask, training=training)
        return {"hidden": ops.where(ops.expand_dims(mask, -1), x, ops.zeros_like(x))}

    def decode(self, x, memory, training=None):
        """Maps the shifted targets' embeddings [B, T, hidden] to the inputs of the softmax, [B, T, hidden]."""
        read = read_at(memory["hidden"], ops.arange(ops.shape(x)[1], dtype="int32"))
        x = self.start(ops.concatenate([read, x], axis=-1))
        for layer in self.decoder:
            x = layer(x, training=training)
        return x

    def first_state(self, memory):
        """Returns the initial past of each convolution, which contains only zeros."""
        batch, _, size = ops.shape(memory["hidden"])
        blocks = (layer.block.first_past(batch, size) for layer in self.decoder)
        return [self.start.first_past(batch, 2 * size), *blocks]

    def step(self, x, state, memory, position):
        """Maps x [B, K, hidden] and pasts [B, K, width, …] to (outputs [B, K, hidden], the next pasts)."""
        read = read_at(memory["hidden"], ops.reshape(ops.cast(position, "int32"), (1,)))
        read = ops.broadcast_to(read, ops.shape(x))  # shared by all beams
        x, past = self.start.step(ops.concatenate([read, x], axis=-1), state[0])
        after = [past]
        for layer, past in zip(self.decoder, state[1:], strict=True):
            x, past = layer.step(x, past)
            after.append(past)
        return x, after
