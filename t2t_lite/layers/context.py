"""Further inputs that all layers of a call share, and further outputs that they compute."""

import dataclasses
import functools
import inspect
from typing import Any

from keras import ops, tree

from t2t_lite.layers.checks import shape_of


class Results:
    """Further outputs of layers by name, such as "cost": float32 [B, T], the cost of each position.

    Names that begin with "shares/" are for counts in training, float32 [n]: see `Sums.shares`.

    Example:
        >>> results = Results()
        >>> results.add("cost", keras.ops.ones((1, 2)))
        >>> results.add("cost", keras.ops.ones((1, 2)))
        >>> results.total("cost").tolist()
        [[2.0, 2.0]]
    """

    def __init__(self):
        self.tensors = {}  # {name: list, in the order of `add`}

    def add(self, name, tensor):
        """Adds a tensor to the list of a name; the shape of a "cost" is [B, T]."""
        self.tensors.setdefault(name, []).append(tensor)

    def update(self, tensors):
        """Adds all tensors of {name: list of tensors}."""
        for name, each in tensors.items():
            self.tensors.setdefault(name, []).extend(each)

    def each(self, name):
        """Returns the tensors of a name in the order in which they were added."""
        return self.tensors.get(name, [])

    def total(self, name):
        """Returns the sum of the tensors of a name. Raises `KeyError` if there is none."""
        return sum(self.tensors[name][1:], start=self.tensors[name][0])


@dataclasses.dataclass(frozen=True)
class Context:
    """What stacks, layers and residual connections pass on, unread, to attention and feed-forward layers.

    A layer whose `call` has an argument `context` gets it by name. To Keras it is one opaque object, so results can be
    added to it inside layers, but it cannot hold symbolic tensors. A subclass holds what only one kind of layer reads:
    see `context_class` of `MultiHeadAttention`.

    Attributes:
        earlier: [B, M, hidden], inputs of this layer at the M positions before those of the call, which its
            self-attention sees as well (Dai et al. 2019, "Transformer-XL"); (): no such positions.
        visible: bool [B, M], which of them exist; (): all.
        nonpadding: bool [B, T], which positions of the inputs count in costs and averages; (): all.
        results: Results, to which layers add.
    """

    earlier: Any = ()
    visible: Any = ()
    nonpadding: Any = ()
    results: Results = dataclasses.field(default_factory=Results)

    def replace(self, **changes):
        """Returns a context in which some attributes are replaced."""
        return dataclasses.replace(self, **changes)

    @property
    def has_states(self):
        """Whether there are states before the inputs."""
        return not isinstance(self.earlier, tuple)

    def without_states(self):
        """Returns the context for a layer that works on each position separately."""
        return self.replace(earlier=(), visible=()) if self.has_states else self

    def normalized(self, normalization):
        """Returns the context with normalized states: a pre-norm layer normalizes them as it does its inputs."""
        return self.replace(earlier=normalization(self.earlier)) if self.has_states else self

    def before(self, inputs):
        """Returns the states and then the inputs [B, T, hidden]: [B, M + T, hidden]."""
        return ops.concatenate([ops.cast(self.earlier, inputs.dtype), inputs], axis=1)

    def mask(self, length, mask=None):
        """Returns bool [B, M + T], which states and which of T inputs exist; `mask`: bool [B, T], or None."""
        batch, size, _ = shape_of(self.earlier)
        seen = ops.ones((batch, size), "bool") if isinstance(self.visible, tuple) else ops.cast(self.visible, "bool")
        mask = ops.ones((batch, length), "bool") if mask is None else ops.cast(mask, "bool")
        return ops.concatenate([seen, mask], axis=1)

    def handed_to(self, layer):
        """Returns the arguments for a layer's `call`: {"context": self}, or {} if the layer does not take a context.

        Raises:
            ValueError: such a layer would not see the states of this context.
        """
        if _takes_context(type(layer)):
            return {"context": self}
        if self.has_states:
            raise ValueError(
                f"{type(layer).__name__} {layer.name!r} does not see the states before its inputs: its `call` has no "
                "argument `context`."
            )
        return {}

    def separated(self):
        """Returns (list of the float tensors, which have gradients; a function of such a list and of Results).

        The function puts a context together again: see `TransformerStack`, which recomputes layers.
        """
        values = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "results"
        }
        leaves = tree.flatten(values)
        places = [i for i, leaf in enumerate(leaves) if "float" in str(getattr(leaf, "dtype", ""))]

        def joined(floats, results):
            given = dict(zip(places, floats, strict=True))
            own = tree.pack_sequence_as(values, [given.get(i, leaf) for i, leaf in enumerate(leaves)])
            return type(self)(**own, results=results)

        return [leaves[i] for i in places], joined


@functools.cache
def _takes_context(layer_class):
    """Returns whether the layers of a class take a context."""
    return "context" in inspect.signature(layer_class.call).parameters
