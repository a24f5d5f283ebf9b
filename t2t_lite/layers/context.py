"""What all layers of a call share beside their inputs, and what they compute beside their outputs."""

import dataclasses
import functools
import inspect
from typing import Any

from keras import ops, tree

from t2t_lite.layers.checks import shape_of


class Results:
    """What layers compute beside their outputs, by name, such as "cost": float32 [B, T], what each position costs.

    Names that begin with "shares/" are of what a layer counts in training, float32 [n]: see `Sums.shares`.

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
        """Keeps a tensor under a name, beside those that are there: of a "cost" the shape is [B, T]."""
        self.tensors.setdefault(name, []).append(tensor)

    def update(self, tensors):
        """Adds all of {name: list of tensors}."""
        for name, each in tensors.items():
            self.tensors.setdefault(name, []).extend(each)

    def each(self, name):
        """Returns the list of tensors that were added under a name, in their order."""
        return self.tensors.get(name, [])

    def total(self, name):
        """Returns the sum of the tensors of a name. Raises `KeyError` if no layer has added one."""
        return sum(self.tensors[name][1:], start=self.tensors[name][0])


@dataclasses.dataclass(frozen=True)
class Context:
    """What a stack, layers and residual connections hand on unread to attention and feed-forward layers.

    A layer whose `call` has an argument `context` gets it, by name. Keras takes it for one object, in which it looks
    for no tensors, so that results come out of the layers that add them; and symbolic tensors can't be in it. What only
    one kind of layers reads is in a subclass: see `context_class` of `MultiHeadAttention`.

    Attributes:
        earlier: [B, M, hidden], inputs of this layer at the M positions before those of the call, which its
            self-attention sees as well (Dai et al. 2019, "Transformer-XL"); (): there are none.
        visible: bool [B, M], which of them are there; (): all.
        nonpadding: bool [B, T], which positions of the inputs count, in costs and averages; (): all.
        results: Results, to which layers add.
    """

    earlier: Any = ()
    visible: Any = ()
    nonpadding: Any = ()
    results: Results = dataclasses.field(default_factory=Results)

    def replace(self, **changes):
        """Returns the context with other values of some attributes."""
        return dataclasses.replace(self, **changes)

    @property
    def has_states(self):
        """Whether there are states before the inputs."""
        return not isinstance(self.earlier, tuple)

    def without_states(self):
        """Returns the context of a layer that looks at each position alone."""
        return self.replace(earlier=(), visible=()) if self.has_states else self

    def normalized(self, normalization):
        """Returns the context with normalized states: they pass what the inputs of a pre-norm layer pass."""
        return self.replace(earlier=normalization(self.earlier)) if self.has_states else self

    def before(self, inputs):
        """Returns the states and then the inputs [B, T, hidden]: [B, M + T, hidden]."""
        return ops.concatenate([ops.cast(self.earlier, inputs.dtype), inputs], axis=1)

    def mask(self, length, mask=None):
        """Returns bool [B, M + T]: which states and which of T inputs are there; `mask`: bool [B, T], or None."""
        batch, size, _ = shape_of(self.earlier)
        seen = ops.ones((batch, size), "bool") if isinstance(self.visible, tuple) else ops.cast(self.visible, "bool")
        mask = ops.ones((batch, length), "bool") if mask is None else ops.cast(mask, "bool")
        return ops.concatenate([seen, mask], axis=1)

    def handed_to(self, layer):
        """Returns {"context": it}, arguments of a layer's `call`; {} for a layer that takes none.

        Raises:
            ValueError: there are states, which such a layer would not see.
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
        """Returns (list of the float tensors, to which gradients belong; a function of such a list and of Results).

        The function makes the context of these: see `TransformerStack`, which computes layers again.
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
    """Returns whether the layers of a class are called with a context."""
    return "context" in inspect.signature(layer_class.call).parameters
