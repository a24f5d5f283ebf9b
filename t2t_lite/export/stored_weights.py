"""The weights of an export, in the type that it stores them in."""

import contextlib

import keras
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.runs.exported import model_names
from t2t_lite.runs.weights import named_weights, nested

DTYPES = ("float32", "bfloat16")


class StoredWeights:
    """Variables of an export, and how models compute with them.

    In bfloat16 a weight keeps 8 bits of its significand: half the size on disk and in memory. Models compute as they
    did, in float32 where they were trained so; the weights are cast once a call.

    Args:
        models: list of built Keras models.
        dtype: "float32" or "bfloat16".

    Attributes:
        trees: {name: what a module has to track to save them}, one a model, named as `model_names` says.

    Raises:
        UserError: another dtype.
    """

    def __init__(self, models, dtype="float32"):
        if dtype not in DTYPES:
            raise UserError(f"weights_dtype={dtype}: expected {' or '.join(DTYPES)}.")
        self._cast = []
        self.trees = {}
        for name, model in zip(model_names(len(models)), models, strict=True):
            weights = named_weights(model)
            self.trees[name] = nested({path: self._stored(weight, dtype) for path, weight in weights.items()})

    def _stored(self, weight, dtype):
        if dtype == "float32" or weight.dtype != "float32":
            return weight.value
        stored = tf.Variable(tf.cast(weight.value, dtype), trainable=False)
        self._cast.append((weight, stored))
        return stored

    @contextlib.contextmanager
    def in_use(self):
        """Context for the trace of a function: in it the models compute with what is stored."""
        if not self._cast:
            yield
            return
        # Outside of any loop in the function, so that it happens once.
        values = [(weight, tf.cast(stored, weight.dtype)) for weight, stored in self._cast]
        with keras.StatelessScope(state_mapping=values):
            yield
