"""What a Universal Transformer adds to its states before each step: where they are, and which step it is."""

import random

import keras
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_required_sizes
from t2t_lite.layers.position_embedding import SinusoidalPositionEmbedding
from t2t_lite.layers.seeds import ScopedSeed, repeated_call, uniform
from t2t_lite.layers.shapes import shape_of

POSITION_STARTS = ("none", "random", "step")
STEP_SIGNALS = ("learned", "sinusoid", "none")


@keras.saving.register_keras_serializable("t2t_lite")
class StepSignals(Layer):
    """Adds sinusoids of positions, and a vector of the step (Dehghani et al. 2019, equations 6 and 7).

    Mirrors `step_preprocess` of tensor2tensor's models/research/universal_transformer_util.py.

    Args:
        num_steps: int, T.
        add_position: bool, whether positions are added.
        step_signal: "learned", a trained vector for each step; "sinusoid", the encoding of its number; or "none".
        position_start: the number of the first position: "none", 0; "random", in training, another one at each step
            for each row, below its length (so that larger positions have been seen than the texts have); "step", the
            row's length · step / T, rounded down.
        layout: of the sinusoids: see `SinusoidalPositionEmbedding`.

    Raises:
        ValueError: an argument is none of these.
    """

    def __init__(
        self,
        num_steps: int,
        add_position: bool = True,
        step_signal: str = "learned",
        position_start: str = "none",
        layout: str = "tensor2tensor",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_required_sizes(num_steps=num_steps)
        if step_signal not in STEP_SIGNALS:
            raise ValueError(
                f"`step_signal` must be one of {', '.join(STEP_SIGNALS)}: received step_signal={step_signal!r}."
            )
        if position_start not in POSITION_STARTS:
            raise ValueError(
                f"`position_start` must be one of {', '.join(POSITION_STARTS)}: received "
                f"position_start={position_start!r}."
            )
        self.num_steps = num_steps
        self.step_signal = step_signal
        self.position_start = position_start if add_position else "none"
        self.add_position = add_position
        # For "random" alone, and drawn as Keras does, which tracks the generator.
        self.seed_generator = ScopedSeed(random.randint(1, 10**9)) if self.position_start == "random" else None
        self.sinusoids = SinusoidalPositionEmbedding(layout, dtype=self.dtype_policy, name="sinusoids")
        self.input_spec = keras.InputSpec(ndim=3)
        self.supports_masking = True

    def build(self, input_shape):
        """Creates the vectors of the steps."""
        self.require_size(input_shape)
        if self.add_position or self.step_signal == "sinusoid":
            self.sinusoids.build(input_shape)
        if self.step_signal == "learned":
            # tensor2tensor's table is N(0, 1/√d), and multiplied by √d where it is read.
            self.scale = input_shape[-1] ** 0.5
            initializer = keras.initializers.RandomNormal(stddev=1 / self.scale)
            self.table = self.add_weight(name="table", shape=(self.num_steps, input_shape[-1]), initializer=initializer)

    def call(self, inputs, step=0, position=None, lengths=None, training=None):
        """Adds the signals of one step.

        Args:
            inputs: [B, T, hidden].
            step: int, from 0.
            position: int scalar or [B], as of `SinusoidalPositionEmbedding.call`.
            lengths: int [B], of the rows, that `position_start` reads; None: T, unless there is a `position`.
            training: bool.

        Returns:
            [B, T, hidden].

        Raises:
            ValueError: with a `position`, `position_start` needs `lengths`.
        """
        x = inputs
        if self.add_position:
            start = self._start(shape_of(inputs), step, position, lengths, training)
            if start is None:
                x = self.sinusoids(x, position=position)
            elif position is None:
                places = ops.expand_dims(start, 1) + ops.arange(shape_of(inputs)[1], dtype="int32")
                x = x + self.sinusoids.encode(places)
            else:
                x = self.sinusoids(x, position=ops.cast(position, "int32") + start)
        if self.step_signal == "learned":
            x = x + ops.cast(self.table[step], x.dtype) * self.scale
        elif self.step_signal == "sinusoid":
            x = x + self.sinusoids.encode(step)
        return x

    def _start(self, shape, step, position, lengths, training):
        """Returns the number of each row's first position, int32 [B]; None: 0."""
        if self.position_start == "none" or (self.position_start == "random" and not training):
            return None
        if lengths is None and position is not None:
            raise ValueError(f"{self.name}: with position_start='step' a step of decoding needs `lengths`.")
        batch, length, _ = shape
        lengths = ops.full((batch,), length, "int32") if lengths is None else ops.cast(lengths, "int32")
        if self.position_start == "step":
            return lengths * step // self.num_steps
        with repeated_call(step):
            part = uniform((batch,), self.seed_generator)
        return ops.cast(ops.floor(part * ops.cast(lengths, "float32")), "int32")
