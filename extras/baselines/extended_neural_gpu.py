"""The extended Neural GPU (Kaiser and Bengio 2016), whose decoder reads its outputs: active memory, no attention."""

import keras
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.shapes import shape_of
from t2t_lite.models.encoder_decoder import EncoderDecoder
from t2t_lite.registry import register_model

from .neural_gpu import ConvolutionalGRU, NeuralGPU, tape_at


class OutputStep(Layer):
    """The step before an output, a cell of `keras.layers.RNN` whose state is the decoder's tape."""

    def __init__(self, size: int, kernel_size: int, num_layers: int, **kwargs):
        super().__init__(**kwargs)
        self.state_size, self.output_size = [size], size
        options = {"kernel_size": kernel_size, "dtype": self.dtype_policy}
        self.units = [ConvolutionalGRU(size, name=f"gru_{i}", **options) for i in range(num_layers)]

    def build(self, input_shape):
        """Creates the weights; the sizes of both tapes are known without `input_shape`."""
        for unit in self.units:
            unit.build((None, None, 2 * self.output_size))

    def call(self, inputs, states):
        """Changes the decoder's tape, and reads the output from it.

        The inputs are, beside each other, the outputs before, [B, W, size]; 1 at each position that is there; 1 at that
        of the output; in training what the tape is multiplied with, [B, W, size]. The state is the tape [B, W, size].
        """
        size, (tape,) = self.output_size, states
        outputs, is_there, here, factors = ops.split(inputs, [size, size + 1, size + 2], axis=-1)
        if factors.shape[-1]:
            tape = tape * factors
        for unit in self.units:
            tape = unit(tape, beside=outputs, mask=is_there[..., 0] > 0) * is_there
        return ops.sum(tape * here, axis=1), [tape]


@register_model("extended_neural_gpu")
@keras.saving.register_keras_serializable("baselines")
class ExtendedNeuralGPU(NeuralGPU):
    """A Neural GPU that encodes, and one that decodes, each of whose steps predicts one target.

    The decoder's tape begins as the encoder ends. Its convolutional GRUs also read a second tape, on which each target
    is written at its position once it is known; the next one is predicted from its position on the first tape
    (figure 5). All memory changes in each step, so decoding takes time in proportion to its length: there is no
    attention to a part of it.

    A tape is as long as the input, or as the outputs where they are longer: outputs may have any length. Convolutions
    read zeros past it. Arguments: see `NeuralGPU`; each step of the decoder has `num_layers` GRUs and a dropout mask of
    its own, too.
    """

    logits = EncoderDecoder.logits

    def __init__(self, vocab_size, target_vocab_size=None, num_layers=2, kernel_size=3, dropout=0.1, **kwargs):
        super().__init__(vocab_size, target_vocab_size, num_layers, kernel_size, dropout, **kwargs)
        own = {"dtype": self.dtype_policy}
        cell = OutputStep(self.config["hidden_size"], kernel_size, num_layers, name="step", **own)
        self.output_dropout = type(self.dropout)(dropout, name="output_dropout", **own)
        self.outputs_of_steps = keras.layers.RNN(cell, return_sequences=True, name="output_steps", **own)

    def build_layers(self, shape):
        """Creates the weights of the GRUs."""
        super().build_layers(shape)
        self.outputs_of_steps.build((None, None, None, None))

    def flops(self, lengths, rows=1):
        """See `SequenceModel`: each target's step changes a whole tape."""
        from t2t_lite.extras.describe.cost import layer_flops

        counted, width = super().flops(lengths, rows), max(lengths.values())
        step = layer_flops(self.outputs_of_steps, width)
        return counted | {"targets": counted["targets"] + (width - 1) * step}

    def encode(self, inputs, training=None):
        """int ids [B, S] -> {"hidden" [B, S, hidden], the tape after all steps; "length" int32 [B], of the inputs}."""
        memory = super().encode(inputs, training=training)
        lengths = ops.sum(ops.cast(ops.convert_to_tensor(inputs) != 0, "int32"), axis=1)
        return {**memory, "length": lengths}

    def decode(self, x, memory, training=None):
        """The shifted targets' embeddings [B, T, hidden] -> what the softmax reads, [B, T, hidden]."""
        batch, length, size = shape_of(x)
        tape = _widened(memory, length)
        width = shape_of(tape)[1]
        at, steps = ops.arange(width, dtype="int32"), ops.arange(length, dtype="int32")[:, None]
        written = tape_at({"hidden": x}, at + 1)  # a target at its own position
        seen = ops.cast(at < steps, x.dtype)[None, :, :, None] * written[:, None]  # [B, T, W, hidden]
        parts = [seen, _flags(at, steps, memory, x.dtype)]
        if training:
            parts.append(self.output_dropout(ops.ones((batch, length, width, size), x.dtype), training=True))
        return self.outputs_of_steps(ops.concatenate(parts, axis=-1), initial_state=[tape])

    def init_cache(self, memory, max_length, beam_size=1):
        """As `EncoderDecoder.init_cache`; past the inputs, both tapes have room for `max_length` more positions.

        The room is a tensor of its own, so that its size is known where that of the inputs is not.
        """
        cache = super().init_cache(memory, max_length, beam_size)
        batch, beams, _, size = shape_of(cache["beams"][0])
        room = ops.zeros((batch, beams, max_length, size), memory["hidden"].dtype)
        return {**cache, "beams": tuple((tape, room) for tape in cache["beams"])}

    def first_state(self, memory):
        """Returns the decoder's tape, and that of its outputs, [B, W, hidden]."""
        return memory["hidden"], ops.zeros_like(memory["hidden"])

    def step(self, x, state, memory, position):
        """[B, K, hidden], the two tapes [B, K, W, hidden] and their room -> ([B, K, hidden], the same after it)."""
        tape, written = (ops.concatenate(parts, axis=2) for parts in state)
        batch, beams, width, size = shape_of(tape)
        at, position = ops.arange(width, dtype="int32"), ops.cast(position, "int32")
        written = written + ops.cast(at == position - 1, x.dtype)[:, None] * ops.expand_dims(x, 2)
        flags = ops.broadcast_to(
            _flags(at, ops.reshape(position, (1, 1)), memory, x.dtype), (batch, beams, width, 2)
        )  # the same for all beams
        inputs = ops.reshape(ops.concatenate([written, flags], axis=-1), (-1, width, size + 2))
        output, (after,) = self.outputs_of_steps.cell(inputs, [ops.reshape(tape, (-1, width, size))])
        after, read = ops.reshape(after, (batch, beams, width, size)), shape_of(state[0][0])[2]
        parts = tuple((tape[:, :, :read], tape[:, :, read:]) for tape in (after, written))
        return ops.reshape(output, (batch, beams, size)), parts


def _widened(memory, length):
    """Returns the tape of a memory with room for outputs of a length."""
    width = shape_of(memory["hidden"])[1]
    both_known = isinstance(width, int) and isinstance(length, int)
    width = max(width, length) if both_known else ops.maximum(width, length)
    return tape_at(memory, ops.arange(width, dtype="int32"))


def _flags(at, steps, memory, dtype):
    """Positions int32 [W], steps int32 [T, 1] -> [B, T, W, 2], 1 where a position is there, and where the output is."""
    lengths = ops.maximum(memory["length"][:, None, None], steps + 1)  # [B, T, 1]
    is_there = ops.cast(at < lengths, dtype)
    here = ops.broadcast_to(ops.cast(at == steps, dtype), shape_of(is_there))
    return ops.stack([is_there, here], axis=-1)
