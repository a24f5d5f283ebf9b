"""The Neural GPU (Kaiser and Sutskever 2016) and the Extended Neural GPU (Kaiser and Bengio 2016)."""

import math
from typing import ClassVar

import keras
from keras import ops

from t2t_lite.extras.baselines.convolution import KERNEL_HPARAMS, Convolution, read_at
from t2t_lite.layers import Dropout
from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import at_least, check_sizes, shape_of
from t2t_lite.models.encoder_decoder import EncoderDecoder
from t2t_lite.models.transformer_parts import build_parts
from t2t_lite.registry import register_model
from t2t_lite.text.vocabulary import EOS_ID

END_MARGIN = 10.0  # past the tape, the odds of EOS against all other ids are e^10 to 1


class ConvolutionalGRU(Layer):
    """Computes u ⊙ s + (1 - u) ⊙ tanh(U * (r ⊙ s) + b), section 2, with saturating gates (Kaiser and Bengio 2016).

    If there is a second sequence p, a term W * p is added to each of the three convolutions.
    """

    def __init__(self, size: int, kernel_size: int, **kwargs):
        super().__init__(**kwargs)
        common = {"dtype": self.dtype_policy}
        self.reset = Convolution(size, kernel_size, bias_initializer="ones", name="reset", **common)
        self.gate = Convolution(size, kernel_size, bias_initializer="ones", name="gate", **common)
        self.candidate = Convolution(size, kernel_size, name="candidate", **common)

    def build(self, input_shape):
        """Creates the weights for inputs [B, T, size], where size is the sum of the sizes of both sequences."""
        build_parts(input_shape, self.reset, self.gate, self.candidate)

    def call(self, inputs, beside=None, mask=None):
        """Maps [B, T, size], and a second sequence [B, T, any size] or None, to [B, T, size]."""

        def read(x):
            return x if beside is None else ops.concatenate([x, beside], axis=-1)

        reset, gate = (_saturating_sigmoid(layer(read(inputs), mask=mask)) for layer in (self.reset, self.gate))
        return gate * inputs + (1 - gate) * ops.tanh(self.candidate(read(reset * inputs), mask=mask))


def _saturating_sigmoid(x):
    return ops.clip(1.2 * ops.sigmoid(x) - 0.1, 0.0, 1.0)


class TapeStep(Layer):
    """One step of the Neural GPU: a cell for `keras.layers.RNN` whose state is a tape instead of a vector."""

    def __init__(self, size: int, kernel_size: int, num_layers: int, **kwargs):
        super().__init__(**kwargs)
        self.state_size, self.output_size, self.read_size = [size, 1], size, size
        options = {"kernel_size": kernel_size, "dtype": self.dtype_policy}
        self.units = [ConvolutionalGRU(size, name=f"gru_{i}", **options) for i in range(num_layers)]

    def build(self, input_shape):
        """Creates the weights; `input_shape` is not used."""
        build_parts((None, None, self.read_size), *self.units)

    def call(self, inputs, states):
        """Runs one step of the recurrence.

        The inputs are the dropout factors of the tape, [B, T, size] or [B, 1, 1], with an additional last column that
        is 0 for rows that have finished. The states are the tape [B, T, size], and a mask [B, T] that is 0 past its
        end.
        """
        (tape, is_there), factors, runs = states, inputs[..., :-1], inputs[:, :1, -1:]
        x = tape * factors
        for unit in self.units:
            x = unit(x, mask=is_there > 0)
        x = ops.where(runs > 0, x, tape)
        return x[:, 0], [x, is_there]


@register_model("neural_gpu")
@keras.saving.register_keras_serializable("baselines")
class NeuralGPU(EncoderDecoder):
    """The Neural GPU: convolutional GRUs that change a tape of embedded inputs, with one step per input.

    The final cell at a position predicts the target at this position, independently of the other targets. An output is
    therefore at most as long as its input: past the tape, the logits predict EOS (id 1). Each row has its own number of
    steps, and convolutions read zeros past the row's end; in tensor2tensor they read the batch's padding.

    Each step drops different cells of the tape (section 3). With one dropout mask for all steps, the remaining cells
    would be scaled up in every step and grow exponentially. `hidden_size` is the size of a cell, and `num_layers` the
    number of GRUs per step. Expect a lower accuracy than in the paper, whose results need a curriculum of growing
    lengths and many runs (sections 3 and 4).
    """

    HPARAMS: ClassVar = KERNEL_HPARAMS

    def __init__(self, vocab_size, target_vocab_size=None, num_layers=1, kernel_size=3, dropout=0.1, **kwargs):
        super().__init__(vocab_size, target_vocab_size, **kwargs)
        check_sizes(num_layers=num_layers)
        common = {"dtype": self.dtype_policy}
        self.dropout = Dropout(dropout, name="dropout", **common)
        cell = TapeStep(self.config["hidden_size"], kernel_size, num_layers, name="step", **common)
        self.steps = keras.layers.RNN(cell, return_state=True, name="steps", **common)

    def build_layers(self, shape):
        """Creates the weights of the GRUs."""
        self.steps.build((None, None, None, None))

    def flops(self, lengths, rows=1):
        """See `SequenceModel`; there are as many steps as inputs, and each step changes the whole tape."""
        from t2t_lite.extras.describe.cost import counted_flops, layer_flops

        counted, width = counted_flops(self, lengths, rows), lengths["inputs"]
        step = layer_flops(self.steps, width)
        return {"inputs": width * step, "targets": counted["targets"] - step}

    def encode(self, inputs, training=None):
        """Maps ids, int [B, S], to {"hidden": [B, S, hidden]}, the tape after all steps, with zeros past its end."""
        self.build_if_needed()
        inputs = ops.convert_to_tensor(inputs)
        tape = self.input_embedding(inputs)
        is_there = ops.cast(inputs != 0, tape.dtype)
        batch, length, size = ops.shape(tape)
        width, size = (length, size) if training else (1, 1)
        factors = self.dropout(ops.ones((batch, length, width, size), tape.dtype), training=training)
        runs = ops.broadcast_to(is_there[:, :, None, None], (batch, length, width, 1))
        _, tape, _ = self.steps(ops.concatenate([factors, runs], axis=-1), initial_state=[tape, is_there])
        return {"hidden": tape * ops.expand_dims(is_there, -1)}

    def decode(self, x, memory, training=None):
        """Returns the tape at the targets' positions; `x`, the targets' embeddings [B, T, hidden], is not used."""
        return read_at(memory["hidden"], ops.arange(ops.shape(x)[1], dtype="int32"))

    def first_state(self, memory):
        """Returns an empty state, because a step only reads the tape."""
        return ()

    def step(self, x, state, memory, position):
        """Returns (the tape at the position, [B, K, hidden], an empty state); `x` is not used."""
        tape = read_at(memory["hidden"], ops.reshape(ops.cast(position, "int32"), (1,)))
        return ops.broadcast_to(tape, ops.shape(x)), state

    def logits(self, hidden, matrix=None):
        """Like `EncoderDecoder.logits`, but a zero vector, which is what lies past the tape, predicts EOS."""
        is_end = ops.all(hidden == 0, axis=-1, keepdims=True)
        size = self.target_vocab_size
        end = (END_MARGIN + math.log(size - 1)) * ops.one_hot(EOS_ID, size)
        return ops.where(is_end, end, super().logits(hidden, matrix))


class OutputStep(TapeStep):
    """The decoder step that computes one output: a cell for `keras.layers.RNN` whose state is the decoder's tape."""

    def __init__(self, size: int, kernel_size: int, num_layers: int, **kwargs):
        super().__init__(size, kernel_size, num_layers, **kwargs)
        self.state_size, self.read_size = [size], 2 * size  # the units also read the outputs

    def call(self, inputs, states):
        """Changes the decoder's tape, and reads the step's output from it.

        The inputs are concatenated along the last axis: the previous outputs, [B, W, size]; 1 at each position that is
        not padding, [B, W, 1]; 1 at the position of the output, [B, W, 1]; and in training the dropout factors of the
        tape, [B, W, size]. The state is the tape, [B, W, size].
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
    """The Extended Neural GPU: a Neural GPU as encoder, and a Neural GPU as decoder with one step per target.

    The decoder starts with the encoder's tape. Its convolutional GRUs also read a second tape, on which each known
    target is written at its position. The next target is predicted from its position on the first tape (figure 5). Each
    step changes the whole tape, so the cost of a step is proportional to the length of the tape.

    A tape is as long as the inputs or the outputs, whichever is longer, so outputs may have any length. Convolutions
    read zeros past the end of the tape. The arguments are those of `NeuralGPU`; each step of the decoder has
    `num_layers` GRUs and a new dropout mask.
    """

    logits = EncoderDecoder.logits

    def __init__(self, vocab_size, target_vocab_size=None, num_layers=2, kernel_size=3, dropout=0.1, **kwargs):
        super().__init__(vocab_size, target_vocab_size, num_layers, kernel_size, dropout, **kwargs)
        common = {"dtype": self.dtype_policy}
        cell = OutputStep(self.config["hidden_size"], kernel_size, num_layers, name="step", **common)
        self.output_dropout = Dropout(dropout, name="output_dropout", **common)
        self.outputs_of_steps = keras.layers.RNN(cell, return_sequences=True, name="output_steps", **common)

    def build_layers(self, shape):
        """Creates the weights of the GRUs."""
        super().build_layers(shape)
        self.outputs_of_steps.build((None, None, None, None))

    def flops(self, lengths, rows=1):
        """See `SequenceModel`; the step of each target changes a whole tape."""
        from t2t_lite.extras.describe.cost import layer_flops

        counted, width = super().flops(lengths, rows), max(lengths.values())
        step = layer_flops(self.outputs_of_steps, width)
        return counted | {"targets": counted["targets"] + (width - 1) * step}

    def encode(self, inputs, training=None):
        """Maps ids, int [B, S], to the final tape, {"hidden": [B, S, hidden], "length": int32 [B]}."""
        memory = super().encode(inputs, training=training)
        lengths = ops.sum(ops.cast(ops.convert_to_tensor(inputs) != 0, "int32"), axis=1)
        return {**memory, "length": lengths}

    def decode(self, x, memory, training=None):
        """Maps the shifted targets' embeddings [B, T, hidden] to the inputs of the softmax, [B, T, hidden]."""
        batch, length, size = shape_of(x)
        tape = _widened(memory, length)
        width = shape_of(tape)[1]
        at, steps = ops.arange(width, dtype="int32"), ops.arange(length, dtype="int32")[:, None]
        written = read_at(x, at + 1)  # writes each target at its own position
        seen = ops.cast(at < steps, x.dtype)[None, :, :, None] * written[:, None]  # [B, T, W, hidden]
        parts = [seen, _flags(at, steps, memory, x.dtype)]
        if training:
            parts.append(self.output_dropout(ops.ones((batch, length, width, size), x.dtype), training=True))
        return self.outputs_of_steps(ops.concatenate(parts, axis=-1), initial_state=[tape])

    def init_cache(self, memory, max_length, beam_size=1):
        """Like `EncoderDecoder.init_cache`; both tapes have room for `max_length` positions after the inputs.

        These positions are stored in a separate tensor, whose size is static even if the inputs' length is not.
        """
        cache = super().init_cache(memory, max_length, beam_size)
        batch, beams, _, size = shape_of(cache["beams"][0])
        room = ops.zeros((batch, beams, max_length, size), memory["hidden"].dtype)
        return {**cache, "beams": tuple((tape, room) for tape in cache["beams"])}

    def first_state(self, memory):
        """Returns the decoder's tape and the tape of its outputs, both [B, W, hidden]."""
        return memory["hidden"], ops.zeros_like(memory["hidden"])

    def step(self, x, state, memory, position):
        """Maps x [B, K, hidden] and the two tapes to (outputs [B, K, hidden], the tapes after the step)."""
        tape, written = (ops.concatenate(parts, axis=2) for parts in state)
        batch, beams, width, size = shape_of(tape)
        at, position = ops.arange(width, dtype="int32"), ops.cast(position, "int32")
        written = written + ops.cast(at == position - 1, x.dtype)[:, None] * ops.expand_dims(x, 2)
        # the same flags for all beams
        flags = ops.broadcast_to(_flags(at, ops.reshape(position, (1, 1)), memory, x.dtype), (batch, beams, width, 2))
        inputs = ops.reshape(ops.concatenate([written, flags], axis=-1), (-1, width, size + 2))
        output, (after,) = self.outputs_of_steps.cell(inputs, [ops.reshape(tape, (-1, width, size))])
        after, read = ops.reshape(after, (batch, beams, width, size)), shape_of(state[0][0])[2]
        parts = tuple((tape[:, :, :read], tape[:, :, read:]) for tape in (after, written))
        return ops.reshape(output, (batch, beams, size)), parts


def _widened(memory, length):
    """Returns the tape of a memory, extended with zeros to at least `length` positions."""
    width = at_least(shape_of(memory["hidden"])[1], length)
    return read_at(memory["hidden"], ops.arange(width, dtype="int32"))


def _flags(at, steps, memory, dtype):
    """Returns two flags, [B, T, W, 2]: whether a position is on the tape in a step, and whether it is the output's."""
    lengths = ops.maximum(memory["length"][:, None, None], steps + 1)  # [B, T, 1]
    is_there = ops.cast(at < lengths, dtype)
    here = ops.broadcast_to(ops.cast(at == steps, dtype), shape_of(is_there))
    return ops.stack([is_there, here], axis=-1)
