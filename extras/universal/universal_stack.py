"""The repeated layers of a Universal Transformer (Dehghani et al. 2019) and the signals added before each step."""

import random

import keras
from keras import ops

from t2t_lite.extras.universal.adaptive_computation import Ponder
from t2t_lite.layers.base import Layer, config_of
from t2t_lite.layers.cache import Past, add_to_cache
from t2t_lite.layers.checks import check_choices, check_layer_list, check_layers, check_required_sizes, shape_of
from t2t_lite.layers.dropout import ScopedSeed, repeated_call, uniform
from t2t_lite.layers.masks import causal_mask, merge_masks
from t2t_lite.layers.positions import SinusoidalPositionEmbedding
from t2t_lite.layers.stack import TransformerStack

# The stack's own arguments. The last two are sublayers that are not repeated.
_STACK_ARGUMENTS = ("num_steps", "signals", "halting")
_SHARED = ("memory", "memory_mask")  # entries of a layer's cache that are the same in each step
POSITION_STARTS = ("none", "random", "step")
STEP_SIGNALS = ("learned", "sinusoid", "none")


@keras.saving.register_keras_serializable("t2t_lite")
class UniversalStack(TransformerStack):
    """Runs the same layers for several steps, adding position and step signals before each step.

    With `halting`, each position decides how many steps it takes. As in tensor2tensor's code, but unlike the paper's
    text, the states of halted positions are still transformed, and other positions attend to these states; only the
    outputs of halted positions no longer change. All steps are always computed.

    Attention scores and hidden states are returned for each layer in each step. With `halting`, the results of the
    `Context` (the last layer's, if each layer has a separate context) get two more entries: "ponder_steps", float32
    [B, T], the number of steps in which each position was running; and the ponder "cost", unless its weight is 0.

    Args:
        layers: list of layers, as for `TransformerStack`; each step runs all of them.
        num_steps: int, T; with `halting`, the maximum number of steps.
        signals: `StepSignals`, or None for no signals.
        halting: `AdaptiveComputation`; if None, every position takes all steps.
        recompute: see `TransformerStack`.

    Example:
        >>> layer = TransformerEncoderLayer(num_heads=2, filter_size=16)
        >>> stack = UniversalStack([layer], num_steps=3, signals=StepSignals(3), halting=AdaptiveComputation())
        >>> stack(keras.ops.ones((1, 5, 8))).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        layers: list,
        num_steps: int,
        signals: Layer | None = None,
        halting: Layer | None = None,
        recompute: bool = False,
        **kwargs,
    ):
        check_required_sizes(num_steps=num_steps)
        check_layer_list(layers)
        check_layers(signals=signals, halting=halting)
        if not layers:
            raise ValueError("`layers` must contain at least one layer to repeat: received [].")
        super().__init__([*layers] * num_steps, recompute, **kwargs)
        self.num_steps = num_steps
        self.signals = signals
        self.halting = halting

    @property
    def _step_layers(self):
        return self.layers[: len(self.layers) // self.num_steps]

    def build(self, inputs_shape, memory_shape=None):
        """Builds the layers, the signals and the halting gate: see `TransformerStack.build`."""
        super().build(inputs_shape, memory_shape)
        for layer in (self.signals, self.halting):
            if layer is not None and not layer.built:
                layer.build(inputs_shape)

    def _transform_all(self, inputs, contexts, memory, options):
        """Runs all steps; returns (output, attention weights, states), with one entry per layer and step."""
        inputs = ops.cast(inputs, self.compute_dtype)  # the inputs may be integers
        scores, states, masks = [], [], (options.get("attention_mask"), options.get("mask"))

        def transform(step, x):
            first = step * len(self._step_layers)
            contexts_of_step = contexts[first : first + len(self._step_layers)]
            x, weights, outputs = self._transform(x, self._step_layers, contexts_of_step, first, memory, options)
            scores.extend(weights)
            states.extend(outputs)
            return x

        visible = self._visible(inputs, *masks) if self.halting is not None and self.halting.is_global else None
        lengths = self._row_lengths(inputs, memory, options.get("memory_mask"), *masks, contexts[-1])

        def average(step, p):
            return self.halting.average(p, visible)

        x, ponder = self._recur(inputs, transform, average, lengths=lengths, training=options["training"])
        if ponder is not None and contexts[-1] is not None:
            self._report(ponder, contexts[-1])
        return x, scores, states

    def _row_lengths(self, inputs, memory, memory_mask, attention_mask, mask, context):
        """Returns the row lengths for the step signals.

        A decoder uses the row lengths of the encoder, because these are already known during decoding.
        """
        if memory is None:
            return _lengths(_merged(inputs, attention_mask) if mask is None else mask)
        is_random = self.signals is not None and self.signals.position_start == "random"
        if is_random and context is not None and not isinstance(context.nonpadding, tuple):
            return _lengths(context.nonpadding)
        return _lengths(memory_mask, memory)

    def _report(self, ponder, context):
        """Adds the ponder steps and costs to the results of a context; both are 0 at padding."""
        is_there = 1.0 if isinstance(context.nonpadding, tuple) else ops.cast(context.nonpadding, "float32")
        context.results.add("ponder_steps", ponder.steps * is_there)
        if self.halting.has_costs:
            context.results.add("cost", self.halting.cost_weight * ponder.cost * is_there)

    def _recur(self, inputs, transform, average, **of_signals):
        """Runs all steps.

        Args:
            inputs: [B, T, hidden].
            transform: function (step, states) that runs the layers.
            average: function (step, halting probabilities [B, T]) that averages the probabilities, for "global".
            of_signals: other arguments of `StepSignals.call`.

        Returns:
            (output [B, T, hidden], Ponder or None).
        """
        state, output = inputs, ops.zeros_like(inputs)
        ponder = None if self.halting is None else Ponder.of(inputs)
        for step in range(self.num_steps):
            if self.signals is not None:
                state = self.signals(state, step=step, **of_signals)
            if ponder is None:
                state = transform(step, state)
                continue
            p = self.halting(state)
            p = average(step, p) if self.halting.is_global else p
            weights, ponder = ponder.advanced(p, self.halting.threshold)
            state = transform(step, state)
            output = self.halting.mixed(output, state, weights)
        return (state if ponder is None else output), ponder

    def _visible(self, inputs, attention_mask, mask):
        """Returns the self-attention mask of all heads together, bool, broadcastable to [B, T, T]."""
        _, length, _ = shape_of(inputs)
        if attention_mask is None:
            is_causal = hasattr(self.layers[0], "init_cache")  # only decoder layers have a cache
            attention_mask = causal_mask(length, length) if is_causal else ops.ones((1, length), "bool")
        return ops.any(_merged(inputs, attention_mask, mask), axis=1)

    def init_cache(self, memory, batch, slots, prompts=None, lengths=()):
        """Returns the cache for `step`: one entry per layer and step; the memory is projected only once per layer.

        Args:
            memory, batch, slots: see `TransformerDecoderLayer.init_cache`.
            prompts, lengths: None and (), because prompts are not supported.

        Returns:
            {"steps": a list of lists, "memory": a list with the entries that the steps share, "halting": a list of past
            probabilities for "global"}.
        """
        if prompts is not None:
            self.prefill(prompts)
        steps = [
            [layer.init_cache(memory if step == 0 else None, batch, slots) for layer in self._step_layers]
            for step in range(self.num_steps)
        ]
        memories = [{name: layer.pop(name) for name in _SHARED if name in layer} for layer in steps[0]]
        is_global = self.halting is not None and self.halting.is_global
        past = [ops.zeros((batch, 1, slots, 1), "float32") for _ in range(self.num_steps if is_global else 0)]
        return {"steps": steps, "memory": memories, "halting": past}

    def prefill(self, inputs):
        """Raises `ValueError`, because an encoder-decoder model has no prompts."""
        raise ValueError(f"{self.name}: {type(self).__name__} does not support prompts. Expected a TransformerStack.")

    def step(self, inputs, cache, position=None, attention_mask=None, memory_mask=None):
        """Decodes one position of every beam, running all steps: see `TransformerDecoderLayer.step`.

        Args:
            inputs: [B, K, hidden].
            cache: the result of `init_cache`, or the cache after the previous position.
            position, attention_mask, memory_mask: see `TransformerDecoderLayer.step`.

        Returns:
            (output [B, K, hidden], the new cache).
        """
        new_steps, new_halting = [], []
        at = cache["steps"][0][0]["self"].step(shape_of(inputs)[1]) if position is None else position

        def transform(step, x):
            new_steps.append([])
            for layer, past, memory in zip(self._step_layers, cache["steps"][step], cache["memory"], strict=True):
                x, past = layer.step(x, {**past, **memory}, position, attention_mask, memory_mask)
                x = ops.cast(x, self.compute_dtype)
                new_steps[-1].append({name: value for name, value in past.items() if name not in _SHARED})
            return x

        def average(step, p):
            past = add_to_cache(cache["halting"][step], ops.expand_dims(p, (1, 3)), position)
            new_halting.append(past)
            visible = Past(past, past).own_slots(shape_of(p)[1], at) if attention_mask is None else attention_mask
            return self.halting.average(past[:, 0, :, 0], visible)

        memory = cache["memory"][0]
        keys, seen = memory["memory"].key[:, 0] if memory else None, memory.get("memory_mask")
        lengths = _lengths(seen if memory_mask is None else memory_mask, keys)
        x, _ = self._recur(inputs, transform, average, position=at, lengths=lengths)
        return x, {**cache, "steps": new_steps, "halting": new_halting}

    def get_config(self):
        """Returns the constructor's arguments, with the layers serialized: see `TransformerStack.get_config`."""
        config = super().get_config()
        if "order" in config:
            config["order"] = config["order"][: len(self._step_layers)]
        return config | {name: config_of(getattr(self, name)) for name in _STACK_ARGUMENTS if not self.is_chosen(name)}

    @classmethod
    def from_config(cls, config):
        """Creates the stack and its layers from `get_config`."""
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in _STACK_ARGUMENTS[1:]
            if config.get(name)
        }
        return super().from_config({**config, **parts})


def _merged(inputs, attention_mask, mask=None):
    """Returns the masks of self-attention, broadcastable to [B, heads, T, T], or None: see `merge_masks`."""
    batch, length, _ = shape_of(inputs)
    return merge_masks((batch, None, length, length), attention_mask, mask)


def _lengths(mask, states=None):
    """Returns the number of non-padding positions in each row, int32 [B]; None if both arguments are None.

    Args:
        mask: bool [B, S] or [B, …, S], of the keys that any query sees. If None, `states` [B, S, size] have no padding.
    """
    if mask is not None:
        mask = ops.any(mask, axis=[*range(1, len(mask.shape) - 1)]) if len(mask.shape) > 2 else mask
        return ops.sum(ops.cast(mask, "int32"), axis=-1)
    return None if states is None else ops.full(shape_of(states)[:1], shape_of(states)[1], "int32")


@keras.saving.register_keras_serializable("t2t_lite")
class StepSignals(Layer):
    """Adds position sinusoids and a step vector to its inputs (Dehghani et al. 2019, equations 6 and 7).

    Mirrors `step_preprocess` of tensor2tensor's models/research/universal_transformer_util.py.

    Args:
        num_steps: int, T.
        add_position: bool, whether position sinusoids are added.
        step_signal: "learned" adds a trained vector for each step; "sinusoid" adds the sinusoid of the step number;
            "none" adds nothing.
        position_start: the number of the first position. With "none", the first position is 0. With "random", the first
            position is a random number below the row's length during training, sampled again in each step (so that the
            model sees larger positions than the texts have). With "step", the first position is the row's length · step
            / T, rounded down.
        layout: layout of the sinusoids: see `SinusoidalPositionEmbedding`.

    Raises:
        ValueError: `step_signal` or `position_start` has another value.
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
        check_choices(STEP_SIGNALS, step_signal=step_signal)
        check_choices(POSITION_STARTS, position_start=position_start)
        self.num_steps = num_steps
        self.step_signal = step_signal
        self.position_start = position_start if add_position else "none"
        self.add_position = add_position
        # Only "random" needs a generator, which is seeded as in Keras; Keras tracks the generator.
        self.seed_generator = ScopedSeed(random.randint(1, 10**9)) if self.position_start == "random" else None
        self.sinusoids = SinusoidalPositionEmbedding(layout, dtype=self.dtype_policy, name="sinusoids")
        self.input_spec = keras.InputSpec(ndim=3)

    def build(self, input_shape):
        """Creates the table of step vectors."""
        self.require_size(input_shape)
        if self.add_position or self.step_signal == "sinusoid":
            self.sinusoids.build(input_shape)
        if self.step_signal == "learned":
            # As in tensor2tensor, the table is initialized from N(0, 1/√d) and multiplied by √d when it is read.
            self.scale = input_shape[-1] ** 0.5
            initializer = keras.initializers.RandomNormal(stddev=1 / self.scale)
            self.table = self.add_weight(name="table", shape=(self.num_steps, input_shape[-1]), initializer=initializer)

    def call(self, inputs, step=0, position=None, lengths=None, training=None):
        """Adds the signals of one step.

        Args:
            inputs: [B, T, hidden].
            step: int, from 0.
            position: int scalar or [B]: see `SinusoidalPositionEmbedding.call`.
            lengths: int [B], lengths of the rows, for `position_start`. If None, all lengths are T, unless there is a
                `position`.
            training: bool.

        Returns:
            [B, T, hidden].

        Raises:
            ValueError: `position_start` is "step", and there is a `position`, but no `lengths`.
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
        """Returns the number of each row's first position, int32 [B], or None for 0."""
        if self.position_start == "none" or (self.position_start == "random" and not training):
            return None
        if lengths is None and position is not None:
            raise ValueError(f"{self.name}: `lengths` is required to decode one position with position_start='step'.")
        batch, length, _ = shape
        lengths = ops.full((batch,), length, "int32") if lengths is None else ops.cast(lengths, "int32")
        if self.position_start == "step":
            return lengths * step // self.num_steps
        with repeated_call(step):
            part = uniform((batch,), self.seed_generator)
        return ops.cast(ops.floor(part * ops.cast(lengths, "float32")), "int32")
