"""The base class of all layers, with its configuration and saving, and helpers for activations and initializers."""

import collections
import contextlib
import functools
import inspect

import keras
import numpy as np
from keras import ops

from t2t_lite.layers.checks import check_choices
from t2t_lite.layers.quantization import policy_config

_BY_KERAS = frozenset(inspect.signature(keras.layers.Layer.__init__).parameters)  # arguments that Keras itself saves
_TAKEN_AS_CONFIGS = ("initializer", "activation")  # arguments whose names end in one of these words are serialized
_ON_REQUEST = ("return_attention_scores", "return_hidden_states")
GATED = "swiglu"  # needs a third matrix, so it is not a function of one tensor
_ACTIVATIONS = {
    "relu": ops.relu,
    "gelu": functools.partial(ops.gelu, approximate=False),
    "gelu_tanh": functools.partial(ops.gelu, approximate=True),
    "swish": ops.silu,
    GATED: ops.silu,  # the activation of the gate only
}
# The type of a constructor's initializer arguments: a Keras object, its name, or its configuration.
Initializer = keras.initializers.Initializer | str | dict | None
GLOROT = "glorot_uniform"


class Layer(keras.layers.Layer):
    """A Keras layer whose configuration is recorded from its constructor's arguments, including those of base classes.

    A subclass needs neither `get_config` nor `from_config`, as long as its arguments are numbers, strings,
    initializers, activations, layers, or lists of these. Values that its constructor itself chooses for arguments of a
    base class are not recorded. (A subclass that overrides `get_config` must handle its arguments there.) Create
    sublayers with `dtype=self.dtype_policy`. The configuration records which sublayers are quantized. Keras files and
    TensorFlow checkpoints include the weights of all sublayers. A loaded layer has the same frozen parts and the same
    LoRA (`enable_lora`) as the saved layer. The output has the mask and the shape of the first input unless a subclass
    overrides `compute_mask` and `compute_output_shape`.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.supports_masking = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls) and "get_config" not in vars(cls):
            cls.__init__ = _recording(cls.__init__)

    def get_config(self):
        """Returns the constructor's arguments, serialized, and the dtype policies of quantized sublayers."""
        arguments, chosen = (vars(self).get(name, {}) for name in ("_arguments", "_chosen"))
        arguments = {name: config_of(value) for name, value in arguments.items() if name not in chosen}
        return {**super().get_config(), **arguments, **policy_config(self)}

    def is_chosen(self, name):
        """Returns whether a subclass sets an argument of its base class, which its constructor has not received."""
        own = vars(self)
        received = own.get("_received")
        return received is not None and name not in received and name not in own["_arguments"]

    @classmethod
    def from_config(cls, config):
        """Creates the layer from a configuration, including the layers among its arguments."""
        names = {name for base in cls.__mro__ for name in getattr(vars(base).get("__init__"), "recorded", ())}
        return super().from_config({n: _deserialized(value, n) if n in names else value for n, value in config.items()})

    def compute_output_shape(self, input_shape=None, *others, **named):
        """Returns the shape of the first input. Override this method if the output has a different shape.

        For a model summary, Keras passes the shapes under the argument names of `build`, such as `query_shape`.
        """
        return next(iter(named.values())) if input_shape is None else input_shape

    def compute_output_spec(self, *args, **kwargs):
        """Returns symbolic outputs; traces `call` if attention scores or hidden states are requested.

        In all other cases, Keras uses `compute_output_shape`, which only returns the shape of the first output.
        """
        if any(kwargs.get(name) not in (None, False) for name in _ON_REQUEST):
            return keras.Operation.compute_output_spec(self, *args, **kwargs)
        return super().compute_output_spec(*args, **kwargs)

    @property
    def has_costs(self):
        """Whether a sublayer adds a "cost" to `Context.results`; a layer that adds a cost overrides this attribute."""
        return any(map(_has_costs, self._layers))

    def quantize(self, mode=None, type_check=True, config=None):
        """Quantizes all sublayers that support it: see `keras.Model.quantize`."""
        parts = [part for part in self._flatten_layers(include_self=False) if not part._layers]
        if not parts:
            super().quantize(mode, type_check=type_check, config=config)
        for part in parts:
            with contextlib.suppress(NotImplementedError):  # as Keras raises for layers without such a matrix
                part.quantize(mode, config=config)

    def require_size(self, input_shape):
        """Makes Keras reject inputs (even symbolic inputs) whose last axis differs in size from `input_shape`.

        Raises:
            ValueError: if the size of the last axis is unknown.
        """
        if input_shape[-1] is None:
            raise ValueError(
                f"{self.name}: the last axis of the inputs needs a known size: received shape {tuple(input_shape)}."
            )
        ndim = None if self.input_spec is None else self.input_spec.ndim
        self.input_spec = keras.InputSpec(ndim=ndim, axes={-1: input_shape[-1]})

    def _post_build(self):
        """Freezes all sublayers if `trainable=False` was set before they existed, which Keras itself does not do."""
        super()._post_build()
        if not self.trainable:
            self.trainable = True  # with TensorFlow, assigning the same value again has no effect
            self.trainable = False

    def get_build_config(self):
        """Returns Keras' build configuration, plus the paths of frozen sublayers and {path: (rank, alpha)} for LoRA.

        If a sublayer is only partly frozen, the paths of its frozen weights are listed instead.
        """
        frozen, lora, weights = [], {}, [path for path, weight in self._own_weights() if not weight.trainable]
        for path, part in self._parts():
            if not part.trainable:
                frozen.append(path)
            if getattr(part, "lora_enabled", False):
                lora[path] = part.lora_rank, part.lora_alpha
        extras = {"frozen": frozen, "lora": lora, "frozen_weights": weights}
        extras = {name: value for name, value in extras.items() if value}
        return {**(super().get_build_config() or {}), **extras} if extras else super().get_build_config()

    def build_from_config(self, config):
        """Builds the layer, then restores the LoRA and the frozen state of its sublayers."""
        config = dict(config or {})
        frozen, lora = set(config.pop("frozen", ())), config.pop("lora", {})
        weights = set(config.pop("frozen_weights", ()))
        super().build_from_config(config)
        if (frozen or lora or weights) and not self.built:
            self.build()  # the model was saved before its first call
        for path, part in self._parts():
            if path in lora and not part.lora_enabled:  # the sublayer's configuration may already have enabled LoRA
                part.enable_lora(*lora[path])
        for path, part in self._parts():  # after LoRA is enabled, so that its matrices are frozen as well
            if path in frozen:
                part.trainable = False
        for path, weight in self._own_weights() if weights else ():
            if path in weights:
                weight.trainable = False

    def _own_weights(self):
        """Yields (path, weight) for each sublayer's own weights, unless the sublayer is frozen as a whole."""
        parts = (part for part in self._flatten_layers() if part.trainable)
        return self._relative(weight for part in parts for weight in part._trainable_variables)

    def _parts(self):
        """Yields (path, layer) for all sublayers."""
        return self._relative(self._flatten_layers(include_self=False))

    def _relative(self, parts):
        """Yields (path, part) for sublayers or weights; paths are relative to this layer, wherever it is loaded.

        Layers may have the same name. The second of several equal paths gets the suffix "#2", the third "#3".
        """
        start, seen = f"{self.path}/" if self.path else "", collections.Counter()
        for part in parts:
            path = (part.path or "").removeprefix(start)
            seen[path] += 1
            yield path if seen[path] == 1 else f"{path}#{seen[path]}", part

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """Returns the objects that `tf.train.Checkpoint` saves with this layer, including layers in lists."""
        children = super()._trackable_children(save_type, **kwargs)
        return children if save_type != "checkpoint" else {**children, **dict(_in_lists(self))}


def _has_costs(layer):
    """Returns whether a layer (possibly from another package) or one of its sublayers has costs."""
    known = getattr(layer, "has_costs", None)
    return any(map(_has_costs, layer._layers)) if known is None else known


def _recording(init):
    """Wraps a constructor so that it records its arguments; a subclass's values replace those of its base classes.

    `_chosen` are the names of a base class's arguments that a subclass sets without receiving them itself. If they were
    in the configuration, the subclass's constructor would pass them on a second time.
    """
    signature = inspect.signature(init)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    _, *parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind not in variadic and p.name not in _BY_KERAS]

    @functools.wraps(init)
    def recording(self, *args, **kwargs):
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:
            return init(self, *args, **kwargs)  # the constructor raises a clearer error
        # Not `self._arguments = …`, because Keras would track the layers in the dict a second time.
        own, is_first, is_set = vars(self), "_arguments" not in vars(self), {*bound.arguments}
        if is_first:
            has_more = any(p.kind is p.VAR_POSITIONAL and p.name in is_set for p in parameters)  # of unknown names
            # Frozen sets, because Keras searches sets for layers to save.
            own.update(_arguments={}, _chosen=frozenset(), _received=None if has_more else frozenset(kwargs))
        bound.apply_defaults()
        new = [name for name in names if name not in own["_arguments"]]
        own["_arguments"].update({name: bound.arguments[name] for name in new})
        if not is_first and own["_received"] is not None:
            own["_chosen"] |= is_set.intersection(new) - own["_received"]
        return init(self, *args, **kwargs)

    recording.__signature__, recording.recorded = signature, names  # Keras does not look inside a wrapper
    return recording


def _deserialized(config, name):
    """Deserializes one argument: layers are created here, but initializers only where they are used."""
    if isinstance(config, list):
        return [_deserialized(item, name) for item in config]
    if isinstance(config, dict) and {"class_name", "config"} <= config.keys() and not name.endswith(_TAKEN_AS_CONFIGS):
        return keras.saving.deserialize_keras_object(config)
    return config


def _in_lists(layer, start=""):
    """Yields (name, layer or variable) from the lists and dicts of a layer and of its sublayers from other packages.

    Keras (as of 3.15) wraps such lists in its own classes, which TensorFlow checkpoints silently omit.
    """
    for name in dict.fromkeys(layer._tracked):
        for place, value in keras.tree.flatten_with_path(getattr(layer, name)):
            if isinstance(value, keras.Layer | keras.Variable):
                yield "-".join(map(str, (f"{start}{name}", *place))), value
    for number, part in enumerate(layer._layers):
        if not isinstance(part, Layer):  # a sublayer of this class yields its own lists
            yield from _in_lists(part, f"{start}{number}-")


def activation_function(identifier, argument="activation"):
    """Returns the function for an activation's name; for "swiglu", the activation of the gate.

    Raises:
        ValueError: if Keras does not know the activation.
    """
    if isinstance(identifier, str) and identifier in _ACTIVATIONS:
        return _ACTIVATIONS[identifier]
    try:
        return keras.activations.get(identifier)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"`{argument}` must be a function, swiglu, or a name in keras.activations such as relu, gelu, swish or "
            f"tanh: received {identifier!r}."
        ) from error


def check_initializers(**identifiers):
    """Raises `ValueError` for an initializer that Keras does not know."""
    for name, identifier in identifiers.items():
        if identifier is None or identifier == GLOROT:
            continue  # creating an initializer consumes a seed, which would change the weights created later
        try:
            keras.initializers.get(identifier)
        except (ValueError, TypeError) as error:
            raise ValueError(f"`{name}` must be a Keras initializer or its name: received {identifier!r}.") from error


def matrix_initializer(name, gain):
    """Returns the initializer for tensor2tensor's `initializer` and `initializer_gain` (its utils/optimize.py).

    Raises:
        ValueError: if the name is unknown.
    """
    if (name, gain) == ("uniform_unit_scaling", 1.0):
        return GLOROT
    initializers = {
        "uniform_unit_scaling": lambda: keras.initializers.VarianceScaling(gain, "fan_avg", "uniform"),
        "normal_unit_scaling": lambda: keras.initializers.VarianceScaling(gain, "fan_avg", "truncated_normal"),
        "uniform": lambda: keras.initializers.RandomUniform(-0.1 * gain, 0.1 * gain),
        "normal": lambda: keras.initializers.RandomNormal(stddev=gain),  # not in tensor2tensor; used by BERT and GPT-2
        "orthogonal": lambda: Orthogonal(gain),
    }
    check_choices(initializers, initializer=name)
    return initializers[name]()


@keras.saving.register_keras_serializable("t2t_lite")
class Orthogonal(keras.initializers.Orthogonal):
    """Keras' initializer, also for 16-bit weights, for which the backends have no QR decomposition."""

    def __call__(self, shape, dtype=None):
        """Returns the initial values of a weight."""
        dtype = keras.backend.standardize_dtype(dtype)
        return ops.cast(super().__call__(shape, keras.backend.result_type(dtype, "float32")), dtype)


def own_initializer(identifier):
    """Returns an initializer for one weight: a copy, because a shared object would give all weights the same values."""
    return identifier.clone() if isinstance(identifier, keras.initializers.Initializer) else identifier


def table_initializer(identifier, size):
    """Returns the initializer for one table of vectors of the given size. Defaults to N(0, size^-0.5)."""
    return own_initializer(identifier) or keras.initializers.RandomNormal(stddev=size**-0.5)


def sublayer_initializers(kernel_initializer, bias_initializer, output_initializer):
    """Checks the initializers of a sub-layer's dense layers, and returns them by name, for `dense_initializers`."""
    initializers = {"kernel_initializer": kernel_initializer, "bias_initializer": bias_initializer}
    initializers["output_initializer"] = output_initializer
    check_initializers(**initializers)
    return initializers


def dense_initializers(initializers, is_output):
    """Returns the initializer arguments for one `keras.layers.Dense` of a sub-layer.

    Args:
        initializers: {name: identifier}, from `sublayer_initializers`.
        is_output: bool, whether this is the last dense layer of the sub-layer.
    """
    kernel = (is_output and initializers["output_initializer"]) or initializers["kernel_initializer"]
    return {
        "kernel_initializer": own_initializer(kernel),
        "bias_initializer": own_initializer(initializers["bias_initializer"]),
    }


def config_of(value):
    """Serializes an argument for `get_config` as a number, string, name of a Keras function, or dict."""
    if isinstance(value, list | tuple):
        return [config_of(item) for item in value]
    if inspect.isclass(value) and issubclass(value, keras.initializers.Initializer):
        value = value()  # Keras' layers accept a class in place of an instance
    if isinstance(value, keras.Layer | keras.initializers.Initializer):
        return keras.saving.serialize_keras_object(value)
    if isinstance(value, np.generic):
        return value.item()
    return keras.activations.serialize(value) if callable(value) else value
