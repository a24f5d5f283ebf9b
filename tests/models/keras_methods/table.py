"""The rows of the table, each a function of a `Case`, and what a case has: a model, what it reads and its labels."""

from typing import NamedTuple

import keras
import numpy as np

from t2t_lite import registry
from t2t_lite.models.arguments import constructor_parameters
from t2t_lite.training import MaskedAccuracy, SmoothedCrossEntropy
from tests.layers.equations import array
from tests.models.every_model import CORE

METHODS = {}  # {name: Method}, in the order in which they are written
SMALLEST = ("transformer_lm", "transformer_encoder", "lstm_lm")  # whose graphs are traced within a second


class Method(NamedTuple):
    """A row of the table.

    Attributes:
        check: function of a `Case`, which asserts what the method promises.
        covers: names of Keras' public attributes of a model, or of its callbacks.
        models: names of the models that `make test` tries.
        of_kinds: bool, whether `make test-all` tries all kinds of each model, or, as where a model's options hardly
            matter, one kind of each.
        beyond: str, why a plain model is not tried, of which more is asked here than Keras does by itself; or "".
    """

    check: object
    covers: tuple
    models: tuple
    of_kinds: bool
    beyond: str


def method(*covers, models=CORE, of_kinds=False, is_quick=False, beyond=""):
    """Adds a function of a case to the table, by its name: see `Method`. One that is not quick, `make test` tries with
    one of the models, the next method with the next."""

    def added(check):
        chosen = models if is_quick else [models[len(METHODS) % len(models)]]
        METHODS[check.__name__] = Method(check, covers, tuple(chosen), of_kinds, beyond)
        return check

    return added


class Case:
    """A model without dropout, whose weights are the same at the begin of each check, and what it reads and predicts.

    Attributes:
        row: `every_model.Row`.
        folder: path of an empty folder.
        start: list of arrays, the weights of the begin.
        x: dict of int ids, three rows.
        needed: what of `x` the model can't do without.
        y: labels of these rows, an array or a dict.
    """

    def __init__(self, row, model, folder):
        self.row, self.model, self.folder, self.start = row, model, folder, model.get_weights()
        batch = row.batch()
        # Encoders predict masked ids at all positions where no targets are read: as many logits as labels.
        self.x = {f: ids for f, ids in batch.items() if row.is_decoded or f in model.needed_features}
        self.y = batch["targets"]
        self.needed = {f: self.x[f] for f in model.needed_features}
        if row.reads == "real":
            self.y = (self.y[:, None] / 2**16).astype("float32")
        if "sentence" in batch:
            self.y = {"targets": self.y, "sentence": batch["sentence"]}

    def fresh(self, **options):
        """Returns another model with the weights of the begin, for checks that change more than weights."""
        model = self.row.make(**without_dropout(self.row), **options)
        model.set_weights(self.start)
        return model

    def loss(self):
        """Returns what `compile` takes: a loss, or one for each output."""
        one = "mse" if self.row.reads == "real" else SmoothedCrossEntropy(0.0)
        return dict.fromkeys(self.y, one) if isinstance(self.y, dict) else one

    def metrics(self):
        """Returns what `compile` takes for weighted metrics."""
        if self.row.reads == "real":
            return ["mae"]
        return {f: [MaskedAccuracy()] for f in self.y} if isinstance(self.y, dict) else [MaskedAccuracy()]

    def compiled(self, optimizer=None, model=None, **options):
        """Returns a model, the case's own if no other is given, compiled to run without tracing."""
        model = model or self.model
        optimizer = optimizer or keras.optimizers.SGD(0.1)
        model.compile(optimizer, self.loss(), **{"run_eagerly": True, **options})
        return model

    def targets(self, y=None):
        """Returns the labels of the targets alone."""
        y = self.y if y is None else y
        return y["targets"] if isinstance(y, dict) else y

    def logits(self, model, x=None):
        """Returns the outputs that are predictions, as a list of arrays, sorted by name."""
        return self.predictions(model(self.x if x is None else x, training=False))

    def predictions(self, outputs):
        """Returns those of a model's outputs that are predictions: see `logits`."""
        if not isinstance(outputs, dict):
            return [array(outputs)]
        return [array(outputs[name]) for name in sorted(outputs) if not isinstance(outputs[name], dict)]

    def value(self, model, x=None, y=None, weights=None, training=False):
        """Returns the loss of a batch as its definition says, in NumPy: a mean over labels, and the model's costs."""
        x, y = self.x if x is None else x, self.y if y is None else y
        outputs = model(x, training=training)
        outputs = outputs if isinstance(outputs, dict) else {"targets": outputs}
        y = y if isinstance(y, dict) else {"targets": y}
        total = sum(self._mean(y[f], array(outputs[f]).astype("float64"), weights) for f in y)
        for feature, costs in outputs.get("costs", {}).items():
            is_there = x[feature] != 0
            total += (array(costs) * is_there).sum() / is_there.sum()
        return total

    def _mean(self, labels, outputs, weights):
        if self.row.reads == "real":
            return (((outputs - labels) ** 2).mean(axis=-1) * (1 if weights is None else weights)).mean()
        highest = outputs.max(-1, keepdims=True)
        log_p = outputs - highest - np.log(np.exp(outputs - highest).sum(-1, keepdims=True))
        losses = -np.take_along_axis(log_p, labels[..., None].astype("int64"), -1)[..., 0] * (labels != 0)
        weights = 1 if weights is None else weights.reshape(-1, *[1] * (labels.ndim - 1))
        return (losses * weights).sum() / np.count_nonzero(labels)


class Outer(keras.Model):
    """A user's model around one: its predictions, times a weight."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def build(self, shape=None):
        self.factor = self.add_weight(shape=(), initializer="ones", name="factor")

    def call(self, inputs, training=None):
        outputs = self.inner(inputs, training=training)
        outputs = outputs if isinstance(outputs, dict) else {"targets": outputs}
        return {name: self.factor * output for name, output in outputs.items() if not isinstance(output, dict)}


def without_dropout(row):
    """Returns the options of a row's constructor by which training is the same each time."""
    accepted = constructor_parameters(registry.model(row.name))
    return {name: 0.0 for name in ("dropout", "attention_dropout", "relu_dropout") if name in accepted}


def same(found, expected, tolerance=1e-6):
    """Asserts that two lists of arrays are the same, up to a share of the largest value."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        scale = max(1.0, np.abs(np.where(np.abs(other) < 1e6, other, 0)).max(initial=0))
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=tolerance * scale)


def split(structure, rows):
    """Returns those rows, a slice, of the arrays in a structure."""
    return keras.tree.map_structure(lambda each: each[rows], structure)
