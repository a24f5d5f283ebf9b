"""Base classes for exporting models to files for other programs and for saving `.weights.h5` files."""

import json
import re
import warnings

import keras
import numpy as np
from keras import ops

from t2t_lite.errors import LOGGER
from t2t_lite.files.safe_json import parse_json
from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import is_known
from t2t_lite.models.arguments import fixed_arguments
from t2t_lite.settings.ranges import typed_text
from t2t_lite.settings.reserved_names import RESERVED

_NAME = "settings"  # key of the settings, stored next to the model's weights; missing in files of version 0.1.0


class ExportedModel(Layer, keras.Model):
    """Base class for models that Keras and TensorFlow can export as a function from int32 ids to float32 logits.

    For any other subclass of `keras.Model`, Keras assumes float inputs with the lengths seen in the first call.
    """

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        """Exports the model's call, as Keras does. (t2t-exporter writes exports that take text and run a search.)

        Args:
            filepath, format, verbose, kwargs: see `keras.Model.export`.
            input_signature: as in Keras. Defaults to a dict of the int32 features that a call needs, with any batch
                size and lengths.
        """
        if input_signature is None:
            input_signature = [self._specs(keras.InputSpec)]
        self.build_if_needed()
        options = {"format": format, "verbose": verbose, "input_signature": input_signature}
        logits_model = self._logits_model(input_signature[0])
        (super() if logits_model is None else logits_model).export(filepath, **options, **kwargs)
        if format == "litert" and (names := select_operations(filepath)):
            warnings.warn(
                f"{filepath} needs the TensorFlow operations {', '.join(names)}, which LiteRT's interpreter only runs "
                "with its Flex delegate. If the model uses low precision, export a model with dtype='float32'.",
                stacklevel=2,
            )

    def whole_ids(self, inputs):
        """Casts float32 ids to int32 if the model is called in the graph of an outer model; otherwise returns `inputs`.

        When TensorFlow exports or saves the outer model, Keras assumes float32 inputs, in which ids are still exact.
        Float ids that have known values, or are passed directly to this model, are a mistake and still raise an error.
        """
        float_features = {f for f, ids in inputs.items() if _is_float32(ids)} if isinstance(inputs, dict) else ()
        if not float_features:
            return inputs
        if self._get_call_context().entry_layer is self:
            self._maybe_reset_call_context()  # `_get_call_context` has created a context
            return inputs
        return {f: ops.cast(ids, "int32") if f in float_features else ids for f, ids in inputs.items()}

    def _specs(self, make):
        """Returns {feature: spec} for the features that a call needs, with any batch size and lengths."""
        return {f: make(shape=(None,) * rank, dtype="int32", name=f) for f, rank in self.needed_features.items()}

    def _logits_model(self, specs):
        """Returns a model that only outputs logits, for inputs {feature: spec}, or None if this model already does so.

        The costs, which are only needed in training, are a dict inside a dict, which Keras cannot export.
        """
        symbols = {f: keras.Input(spec.shape[1:], dtype=spec.dtype, name=f) for f, spec in specs.items()}
        names = self.compute_output_spec(symbols)
        if not isinstance(names, dict) or names.keys().isdisjoint(RESERVED):
            return None
        return keras.Model(symbols, _logits(self(symbols)), name=self.name)

    @property
    def _default_save_signature(self):
        """The serving function of a SavedModel; `tf.saved_model.save` reads this property."""
        import tensorflow as tf

        self.build_if_needed()

        @tf.function(input_signature=[self._specs(tf.TensorSpec)])
        def serving_default(inputs):
            return _logits(self(inputs))

        return serving_default


def _is_float32(ids):
    """Returns whether a tensor of ids is float32 and its values are unknown, as they are while a graph is traced."""
    dtype = getattr(ids, "dtype", "")
    return "float32" in str(dtype) and not is_known(ids)


def _logits(outputs):
    """Returns only the logits from the outputs of `call`, without costs, shares or state."""
    if not isinstance(outputs, dict):
        return outputs
    return {name: output for name, output in outputs.items() if name not in RESERVED}


def select_operations(path):
    """Returns the sorted names of the TensorFlow operations in a LiteRT file, such as "FlexRoll".

    The names are strings in a FlatBuffer: each name follows its length in four bytes, and a zero byte ends it. Reading
    names this way does not require LiteRT's interpreter, whose package depends on the TensorFlow version.

    Args:
        path: str, a LiteRT file written by `keras.Model.export`.
    """
    with open(path, "rb") as file:
        data = file.read()
    named = re.finditer(rb"(....)(Flex[A-Z]\w*)\0", data, re.DOTALL)
    return sorted(
        {name.decode() for size, name in (m.groups() for m in named) if int.from_bytes(size, "little") == len(name)}
    )


class SettingsInFiles:
    """Base class for models whose `.weights.h5` files include the constructor arguments that determine the weights.

    As with `--warm_start_from`, weights from a model with different settings are loaded with a warning, because the
    difference may be intended, for example to change the kind of attention. (Attention layers refuse the weights of a
    layer with a different number of heads.)
    """

    def save_own_variables(self, store):
        """Saves the model's own weights and its settings."""
        super().save_own_variables(store)
        if settings := _settings(self):
            store[_NAME] = np.frombuffer(json.dumps(settings).encode(), "uint8")

    def load_own_variables(self, store):
        """Loads the model's own weights, and warns if the file comes from a model with different settings."""
        names = list(store.keys())
        if _NAME in names:
            saved = parse_json(bytes(np.asarray(store[_NAME], "uint8")), "the file's settings", schema=dict)
            ours = _settings(self)
            changed = {name: value for name, value in saved.items() if name in ours and ours[name] != value}
            values = (f"{name}={typed_text(value)} (here {typed_text(ours[name])})" for name, value in changed.items())
            if text := ", ".join(values):
                LOGGER.warning(f"{self.name}: the weights come from a model with different settings: {text}")
        super().load_own_variables({name: store[name] for name in names if name != _NAME})


def _settings(model):
    """Returns the {argument: value} pairs that JSON can represent, converted to JSON and back."""
    values = {}
    for name, value in fixed_arguments(model).items():
        try:
            values[name] = json.loads(json.dumps(getattr(value, "__name__", value)))  # a function is saved by its name
        except TypeError:  # for example an initializer, which loaded weights do not need
            continue
    return values
