"""What files for other programs hold of a model: its call, by int ids of any size; what LiteRT cannot run."""

import re
import warnings

import keras
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import is_known
from t2t_lite.settings.reserved_names import RESERVED


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
