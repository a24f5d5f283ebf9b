"""Extra inputs shared by all layers of a call, and extra outputs that these layers compute."""

import dataclasses
import functools
import inspect
from typing import Any

from keras import ops, tree

from t2t_lite.layers.checks import shape_of


class Results:
    """Extra outputs of layers by name, such as "cost": float32 [B, T], the cost of each position.

    Results whose names begin with "shares/" are counts from training, float32 [n]: see `Sums.shares`.

    Args:
        is_loss: bool, whether a stack makes the mean of the layers' costs a loss in training (`add_loss`), because
            nobody else reads the results.

    Example:
        >>> results = Results()
        >>> results.add("cost", keras.ops.ones((1, 2)))
        >>> results.add("cost", keras.ops.ones((1, 2)))
        >>> results.total("cost").tolist()
        [[2.0, 2.0]]
    """

    def __init__(self, is_loss=False):
        self.is_loss = is_loss
        self.tensors = {}  # {name: list of tensors, in the order in which they were added}

    def add(self, name, tensor):
        """Adds a tensor to the results under a name. A "cost" must have the shape [B, T]."""
        self.tensors.setdefault(name, []).append(tensor)

    def update(self, tensors):
        """Adds all results in `{name: list of tensors}`."""
        for name, values in tensors.items():
            self.tensors.setdefault(name, []).extend(values)

    def each(self, name):
        """Returns the tensors added under a name, in order."""
        return self.tensors.get(name, [])

    def total(self, name):
        """Returns the sum of the tensors added under a name. Raises `KeyError` if there are no such tensors."""
        return sum(self.tensors[name][1:], start=self.tensors[name][0])


@dataclasses.dataclass(frozen=True)
class Context:
    """Extra inputs that stacks, layers and residual connections pass through to attention and feed-forward layers.

    A layer whose `call` has an argument `context` receives the context by name. Keras treats the context as one opaque
    object, so layers can add results to it, but it cannot hold symbolic tensors. Define a subclass for inputs that only
    one kind of layer reads: see `context_class` of `MultiHeadAttention`.

    Attributes:
        earlier: [B, M, hidden], inputs of this layer at the M positions before the current inputs, which its
            self-attention sees as well (Dai et al. 2019, "Transformer-XL"); () if there are no such positions.
        visible: bool [B, M], which of the earlier positions exist; () if all earlier positions exist.
        nonpadding: bool [B, T], which input positions count in costs and averages; () if all positions count.
        results: Results, to which the layers add their extra outputs.
    """

    earlier: Any = ()
    visible: Any = ()
    nonpadding: Any = ()
    results: Results = dataclasses.field(default_factory=Results)

    def replace(self, **changes):
        """Returns a copy of the context with some attributes replaced."""
        return dataclasses.replace(self, **changes)

    @property
    def has_states(self):
        """Whether the context holds states of earlier positions."""
        return not isinstance(self.earlier, tuple)

    def without_states(self):
        """Returns the context without earlier states, for a layer that works on each position separately."""
        return self.replace(earlier=(), visible=()) if self.has_states else self

    def normalized(self, normalization):
        """Returns the context with normalized states, because a pre-norm layer normalizes states as well as inputs."""
        return self.replace(earlier=normalization(self.earlier)) if self.has_states else self

    def before(self, inputs):
        """Concatenates the earlier states and the inputs [B, T, hidden] to [B, M + T, hidden]."""
        return ops.concatenate([ops.cast(self.earlier, inputs.dtype), inputs], axis=1)

    def mask(self, length, mask=None):
        """Returns the mask of states and inputs, bool [B, M + T]; `mask` is the inputs', bool [B or 1, T], or None."""
        batch, size, _ = shape_of(self.earlier)
        seen = ops.ones((batch, size), "bool") if isinstance(self.visible, tuple) else ops.cast(self.visible, "bool")
        mask = ops.broadcast_to(True if mask is None else ops.cast(mask, "bool"), (batch, length))
        return ops.concatenate([seen, mask], axis=1)

    def handed_to(self, layer):
        """Returns the arguments for a layer's `call`: {"context": self}, or {} if the layer does not take a context.

        Raises:
            ValueError: if the context has states, but the layer does not take a context and would ignore the states.
        """
        if _takes_context(type(layer)):
            return {"context": self}
        if self.has_states:
            raise ValueError(
                f"{type(layer).__name__} {layer.name!r} cannot use the states of earlier positions: its `call` has no "
                "argument `context`."
            )
        return {}

    def separated(self):
        """Splits the context into its float tensors, which have gradients, and a function that restores the context.

        The function takes a list of float tensors and a `Results`. `TransformerStack` uses this method to recompute
        layers.
        """
        values = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "results"
        }
        leaves = tree.flatten(values)
        places = [i for i, leaf in enumerate(leaves) if "float" in str(getattr(leaf, "dtype", ""))]

        def joined(floats, results):
            replaced = dict(zip(places, floats, strict=True))
            fields = tree.pack_sequence_as(values, [replaced.get(i, leaf) for i, leaf in enumerate(leaves)])
            return type(self)(**fields, results=results)

        return [leaves[i] for i in places], joined


def results_or_loss(results):
    """Returns `results`; if None, new results whose costs become a loss."""
    return Results(is_loss=True) if results is None else results


def mean_cost(cost, nonpadding):
    """Averages a cost, float32 [B, T], over non-padding positions, bool [B, T], or over all positions if this is ()."""
    is_there = ops.ones_like(cost) if isinstance(nonpadding, tuple) else ops.cast(nonpadding, cost.dtype)
    return ops.sum(cost * is_there) / ops.maximum(ops.sum(is_there), 1)


@functools.cache
def _takes_context(layer_class):
    """Returns whether the `call` of a layer class takes a context."""
    return "context" in inspect.signature(layer_class.call).parameters
