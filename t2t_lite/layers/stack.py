"""The stack of layers that forms an encoder or a decoder."""

import contextlib
import itertools

import keras
from keras import ops

from t2t_lite.errors import UserError
from t2t_lite.layers.base import Layer, config_of
from t2t_lite.layers.checks import check_layer_list, check_sequences, shape_of
from t2t_lite.layers.context import Context, Results, mean_cost
from t2t_lite.layers.dropout import drawn_seeds, has_own_generator, repeated_call


@keras.saving.register_keras_serializable("t2t_lite")
class TransformerStack(Layer):
    """A stack of encoder or decoder layers, which run one after another (paper, section 3.1).

    Args:
        layers: list of `TransformerEncoderLayer`, of `TransformerDecoderLayer`, or of layers with the same methods. A
            layer may occur several times. The occurrences of a layer share weights, but not dropout masks (Lan et al.
            2020, "ALBERT").
        recompute: bool, whether the activations inside each layer are recomputed for the gradient in training instead
            of stored (`keras.remat`). This needs less memory but more time, and gives the same results up to rounding.

    Example:
        >>> stack = TransformerStack([TransformerEncoderLayer(num_heads=2, filter_size=16) for _ in range(3)])
        >>> stack(keras.ops.ones((1, 5, 8))).shape
        (1, 5, 8)
    """

    runs_in_order = True  # so `number_seeds` visits the layers in the order in which they run

    def __init__(self, layers: list, recompute: bool = False, **kwargs):
        super().__init__(**kwargs)
        check_layer_list(layers)
        self.layers = list(layers)
        self.recompute = recompute
        self.input_spec = keras.InputSpec(ndim=3)

    def build(self, inputs_shape, memory_shape=None):
        """Builds the layers; `memory_shape` is the shape of the encoder's output, for decoder layers."""
        check_sequences(memory=memory_shape)
        self.require_size(inputs_shape)
        shapes = [shape for shape in (inputs_shape, memory_shape) if shape is not None]
        for layer in self.layers:
            if not layer.built:  # layers from a file are already built
                layer.build(*shapes)

    def init_cache(self, memory, batch, slots, prompts=None, lengths=()):
        """Returns the cache for `step`, a list with one entry per layer: see `TransformerDecoderLayer.init_cache`.

        Args:
            memory, batch, slots, lengths: as in `TransformerDecoderLayer.init_cache`.
            prompts: the prompts returned by `prefill`, or None.
        """
        prompts = [()] * len(self.layers) if prompts is None else prompts
        pairs = zip(self.layers, prompts, strict=True)
        return [layer.init_cache(memory, batch, slots, prompt, lengths) for layer, prompt in pairs]

    def prefill(self, inputs):
        """Processes prompts in one causal pass; all beams of a prompt share its keys and values.

        Args:
            inputs: [B, P, hidden], padded on the right.

        Returns:
            (output [B, P, hidden], prompts), where `prompts` is a list with the `Memory` of each layer, for
            `init_cache`.
        """
        x, prompts = inputs, []
        for layer in self.layers:
            x, prompt = layer.prefill(x)
            x = ops.cast(x, self.compute_dtype)
            prompts.append(prompt)
        return x, prompts

    def step(self, inputs, cache, position=None, attention_mask=None, memory_mask=None):
        """Decodes one position of every beam: see `TransformerDecoderLayer.step`. `cache` has one entry per layer."""
        x, new_cache = inputs, []
        for layer, past in zip(self.layers, cache, strict=True):
            x, past = layer.step(x, past, position, attention_mask, memory_mask)
            x = ops.cast(x, self.compute_dtype)
            new_cache.append(past)
        return x, new_cache

    def call(
        self,
        inputs,
        memory=None,
        attention_mask=None,
        memory_mask=None,
        context=None,
        return_attention_scores=False,
        return_hidden_states=False,
        training=None,
        mask=None,
        inputs_mask=None,
    ):
        """Runs all layers.

        Args:
            inputs: [B, T, hidden].
            memory, attention_mask, memory_mask, mask: passed to each layer if given: see
                `TransformerEncoderLayer.call` and `TransformerDecoderLayer.call`.
            inputs_mask: the same as `mask`, the name under which Keras passes it if there are several tensors.
            context: None, a `Context` for all layers, or a list with one `Context` per layer. Layers add to the results
                of the context, even if activations are recomputed. Without a context, or with `Results(is_loss=True)`,
                the mean of the layers' costs is a loss in training (`add_loss`).
            return_attention_scores: bool.
            return_hidden_states: bool.
            training: bool.

        Returns:
            The output, [B, T, hidden], or a tuple that begins with the output. `return_attention_scores` adds a list
            with the attention weights of each layer. `return_hidden_states` adds a list of the stack's inputs followed
            by each layer's output, all [B, T, hidden].
        """
        masks = {"attention_mask": attention_mask, "memory_mask": memory_mask}
        masks["mask"] = inputs_mask if mask is None else mask
        options = {name: value for name, value in masks.items() if value is not None}
        options |= {"return_attention_scores": return_attention_scores, "training": training}
        if context is None and training and self.has_costs:
            nonpadding = options.get("mask", ops.ones(shape_of(inputs)[:2], "bool"))
            context = Context(nonpadding=nonpadding, results=Results(is_loss=True))
        adds_costs = training and isinstance(context, Context) and context.results.is_loss
        contexts = context if isinstance(context, list) else [context] * len(self.layers)
        x, scores, states = self._transform_all(inputs, contexts, memory, options)
        if adds_costs and context.results.each("cost"):  # none if the sublayers with costs receive no context
            self.add_loss(mean_cost(context.results.total("cost"), context.nonpadding))
        states = [inputs, *states]
        results = (x, *([scores] if return_attention_scores else []), *([states] if return_hidden_states else []))
        return results if len(results) > 1 else x

    def _transform_all(self, inputs, contexts, memory, options):
        """Runs all layers with one `Context` each, and with `options` for their `call`; returns as `_transform`."""
        return self._transform(inputs, self.layers, contexts, 0, memory, options)

    def _transform(self, x, layers, contexts, first, memory, options):
        """Runs `layers`, which begin at the index `first` of the stack; returns (output, attention weights, states)."""
        scores, states, memories = [], [], () if memory is None else (memory,)
        for i, (layer, layer_context) in enumerate(zip(layers, contexts, strict=True), first):
            call = self.layers[:i].count(layer)  # the number of earlier occurrences of this layer
            output = self._run(layer, call, options, layer_context, x, *memories)
            x, *rest = output if isinstance(output, tuple) else (output,)
            x = ops.cast(x, self.compute_dtype)  # because a layer may have a different dtype policy
            scores += rest
            states.append(x)
        return x, scores, states

    def _run(self, layer, call, options, context, *hidden):
        from_context = {} if context is None else context.handed_to(layer)
        if not (self.recompute and options["training"]):
            with repeated_call(call):
                return layer(*hidden, **options, **from_context)
        with repeated_call(call):
            seeds = drawn_seeds(layer)
        parts = layer._flatten_layers()
        _refuse(filter(has_own_generator, parts), "has a stateful random generator and would sample different numbers")

        # Gradients flow only through arguments and outputs, not through tensors that a function captures or stores.
        floats, joined = context.separated() if from_context else ([], None)
        runs = itertools.count()

        def run(*tensors):
            results = Results()
            rejoined = {"context": joined(tensors[len(hidden) :], results)} if from_context else {}
            # Weights that a layer updates, such as moving averages, keep their values when the layer is recomputed.
            updates = keras.StatelessScope() if next(runs) else contextlib.nullcontext()
            with seeds, updates:  # inside the function that is recomputed for the gradient
                output = layer(*tensors[: len(hidden)], **options, **rejoined)
            adding = (part for part in parts if part._get_own_losses())
            _refuse(adding, "calls add_loss or has an activity_regularizer, whose gradient would be lost")
            return output, results.tensors

        output, results = keras.remat(run)(*hidden, *floats)
        if from_context:
            context.results.update(results)
        return output

    def get_config(self):
        """Returns the constructor's arguments, with each layer serialized once, unless a subclass makes the layers."""
        config = super().get_config()
        if not self.is_chosen("recompute"):
            config["recompute"] = self.recompute
        if not self.is_chosen("layers"):
            distinct = list(dict.fromkeys(self.layers))
            config |= {"layers": config_of(distinct), "order": [distinct.index(layer) for layer in self.layers]}
        return config

    @classmethod
    def from_config(cls, config):
        """Creates the stack and its layers from a configuration."""
        config = dict(config)
        if "layers" in config:
            layers = keras.saving.deserialize_keras_object(config["layers"])
            config["layers"] = [layers[place] for place in config.pop("order", range(len(layers)))]
        return super().from_config(config)


def _refuse(layers, why):
    """Raises `UserError` if there are any `layers`, which cannot be recomputed; the message names the first one."""
    for layer in layers:
        raise UserError(
            f"recompute_grad: {type(layer).__name__} {layer.name!r} {why} when it is recomputed. Expected "
            "recompute_grad=False, or recompute=False in TransformerStack."
        )
