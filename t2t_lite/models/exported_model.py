"""What files for other programs, and `.weights.h5` files, hold of a model; what LiteRT cannot run."""

import json
import logging
import re
import warnings

import keras
import numpy as np
from keras import ops

from t2t_lite.files.safe_json import parse_json
from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import FileCheck, is_known
from t2t_lite.models.arguments import fixed_arguments
from t2t_lite.settings.ranges import typed_text
from t2t_lite.settings.reserved_names import RESERVED

_LOGGER = logging.getLogger("t2t_lite")
_NAME = "settings"  # beside the model's own weights; files of version 0.1.0 have none


class ExportedModel(Layer, keras.Model):
    """Base of models whose call Keras and TensorFlow write to files, from a dict of int32 ids to float32 logits.

    Of a model that subclasses `keras.Model`, Keras takes all inputs for floats, of the lengths of the first call.
    """

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        """Exports the call, as Keras does. (An export that takes text and searches is t2t-exporter's.)

        Args:
            filepath, format, verbose, kwargs: see `keras.Model.export`.
            input_signature: None: a dict of int32 features of any batch and lengths, those that a call needs.
        """
        if input_signature is None:
            input_signature = [self._specs(keras.InputSpec)]
        self.build_if_needed()
        options = {"format": format, "verbose": verbose, "input_signature": input_signature}
        of_logits = self._of_logits(input_signature[0])
        (super() if of_logits is None else of_logits).export(filepath, **options, **kwargs)
        if format == "litert" and (names := select_operations(filepath)):
            warnings.warn(
                f"{filepath}: needs TensorFlow's operations {', '.join(names)}, which LiteRT's interpreter runs only "
                "with its Flex delegate. If the model computes in low precision, export one with dtype='float32'.",
                stacklevel=2,
            )

    def whole_ids(self, inputs):
        """Returns inputs, of which float32 ids are int32 in the graph of a model around this one.

        Of that model Keras takes the inputs for float32, in which ids are exact, where it is exported or saved by
        TensorFlow. Ids of floats that are known, or are given to this model itself, are a mistake and stay one.
        """
        of_floats = {f for f, ids in inputs.items() if _is_float32(ids)} if isinstance(inputs, dict) else ()
        if not of_floats:
            return inputs
        if self._get_call_context().entry_layer is self:
            self._maybe_reset_call_context()  # of which the line before has made one
            return inputs
        return {f: ops.cast(ids, "int32") if f in of_floats else ids for f, ids in inputs.items()}

    def _specs(self, make):
        """Returns {feature: spec} of what a call needs, of any batch and lengths."""
        return {f: make(shape=(None,) * rank, dtype="int32", name=f) for f, rank in self.needed_features.items()}

    def _of_logits(self, specs):
        """Returns a model of the logits alone, of inputs {feature: spec}; None if there is nothing else.

        Costs are for training, and a dict inside a dict, which Keras exports to no format.
        """
        symbols = {f: keras.Input(spec.shape[1:], dtype=spec.dtype, name=f) for f, spec in specs.items()}
        names = self.compute_output_spec(symbols)
        if not isinstance(names, dict) or names.keys().isdisjoint(RESERVED):
            return None
        return keras.Model(symbols, _logits(self(symbols)), name=self.name)

    @property
    def _default_save_signature(self):
        """The function that a SavedModel serves: `tf.saved_model.save` asks for it."""
        import tensorflow as tf

        self.build_if_needed()

        @tf.function(input_signature=[self._specs(tf.TensorSpec)])
        def serving_default(inputs):
            return _logits(self(inputs))

        return serving_default


def _is_float32(ids):
    """Returns whether ids are float32 and their values are not known."""
    dtype = getattr(ids, "dtype", "")
    return "float32" in str(dtype) and not is_known(ids)


def _logits(outputs):
    """Returns what `call` returned without costs and the like."""
    if not isinstance(outputs, dict):
        return outputs
    return {name: output for name, output in outputs.items() if name not in RESERVED}


def select_operations(path):
    """Returns the sorted names of TensorFlow's operations in a LiteRT file, such as "FlexRoll".

    Their names are strings of a FlatBuffer: four bytes with the length come before them, and a zero after them. (Read
    this way, no interpreter is needed, which is another package in each version of TensorFlow.)

    Args:
        path: str, a file that `keras.Model.export` has written.
    """
    with open(path, "rb") as file:
        data = file.read()
    named = re.finditer(rb"(....)(Flex[A-Z]\w*)\0", data, re.DOTALL)
    return sorted(
        {name.decode() for size, name in (m.groups() for m in named) if int.from_bytes(size, "little") == len(name)}
    )


class SettingsInFiles(FileCheck):
    """Base of models whose `.weights.h5` files hold the constructor's arguments that checkpoints depend on.

    As with `--warm_start_from`, weights of a model with other settings are loaded with a warning, since some of them
    may be meant, such as another kind of attention; only heads that would be cut out of the kernels at other places are
    refused.
    """

    def save_own_variables(self, store):
        """Stores the model's own weights, and its settings."""
        super().save_own_variables(store)
        if settings := _settings(self):
            store[_NAME] = np.frombuffer(json.dumps(settings).encode(), "uint8")

    def load_own_variables(self, store):
        """Loads the model's own weights. Raises `ValueError` if the file is of a model with other heads."""
        self.check_file(store)
        super().load_own_variables({name: store[name] for name in store.keys() if name != _NAME})  # noqa: SIM118

    def refusal_of(self, store):
        """Returns a `ValueError` if a file is of a model with other heads, otherwise None; other settings are named."""
        if _NAME not in list(store.keys()):
            return None
        saved = parse_json(bytes(np.asarray(store[_NAME], "uint8")), "the file's settings", schema=dict)
        own = _settings(self)
        changed = {name: value for name, value in saved.items() if name in own and own[name] != value}
        values = (f"{name}={typed_text(value)} (here {typed_text(own[name])})" for name, value in changed.items())
        text = ", ".join(values)
        if "num_heads" in changed:
            return ValueError(
                f"{self.name}: the file is of a model with {text}. Its weights mean nothing in other heads."
            )
        if changed:
            _LOGGER.warning(f"{self.name}: the weights are of a model with other settings: {text}")
        return None


def _settings(model):
    """Returns {argument: value} of what a JSON file can hold, as it comes out of one."""
    found = {}
    for name, value in fixed_arguments(model).items():
        try:
            found[name] = json.loads(json.dumps(getattr(value, "__name__", value)))  # functions have one
        except TypeError:  # an initializer, for one, whose values the weights have replaced
            continue
    return found
