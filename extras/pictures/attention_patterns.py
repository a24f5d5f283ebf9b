"""Computes a model's self-attention patterns as matrices that show which keys each query sees."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from t2t_lite.errors import UserError
from t2t_lite.layers.masks import Visible
from t2t_lite.registry import Registries

_KINDS = {"inputs": "encoder", "targets": "decoder"}  # the kind of self-attention for each feature


class LayerPattern(NamedTuple):
    """A self-attention pattern, and the layers that use it.

    Attributes:
        kind: "encoder" or "decoder": see `t2t_lite.models.outputs`.
        layers: list of int, the numbers (from 1) of the layers with this pattern.
        name: str, the pattern's name in `self_attention_type`, with its options: "local_1d(block_length=64)".
        is_full: bool, whether every position sees all positions, or all earlier positions.
        visible: bool [T, M + T], whether a query (row) sees a key (column). The first M keys are those of a memory.
    """

    kind: str
    layers: list
    name: str
    is_full: bool
    visible: Any

    @property
    def before(self):
        """M, the number of keys before the first query."""
        return self.visible.shape[1] - self.visible.shape[0]


def attention_patterns(model, length):
    """Returns a `LayerPattern` for each self-attention pattern in each stack of a model.

    Args:
        model: a model with `stacks`, see `SequenceModel`; or an `Ensemble`, whose first model is used.
        length: int, T, the number of positions.

    Raises:
        UserError: the model has no stack whose self-attention has a `pattern`.
    """
    model = getattr(model, "models", [model])[0]
    by_key = {}
    stacks = model.stacks() if hasattr(model, "stacks") else {}
    for feature, stack in stacks.items():
        for number, layer in enumerate(stack.layers, 1):
            attention = getattr(getattr(layer, "self_attention", None), "layer", None)
            if (pattern := getattr(attention, "pattern", None)) is not None:
                before = model.context_length if feature == "targets" else 0
                key = _KINDS[feature], _name_of(pattern)
                if key not in by_key:
                    visible = _visible(pattern, length, before, feature == "targets")
                    by_key[key] = LayerPattern(key[0], [], key[1], pattern.is_full, visible)
                by_key[key].layers.append(number)
    if not by_key:
        raise UserError(f"The model {type(model).__name__} does not expose the attention patterns of its layers.")
    return list(by_key.values())


def _name_of(pattern):
    """Returns the name of a pattern with its options, as in `self_attention`: "local_1d(block_length=64)"."""
    registered = next(name for name in Registries.patterns.names() if Registries.patterns.get(name) is type(pattern))
    name = vars(type(pattern)).get("other_name", registered)
    options = ";".join(f"{option}={getattr(pattern, option)}" for option in pattern.options())
    return f"{name}({options})" if options else name


def _visible(pattern, length, before, causal):
    mask = pattern.mask(Visible(causal, first=before), length, before + length)
    shape = length, before + length
    if mask is None:
        return np.ones(shape, bool)
    return np.broadcast_to(ops.convert_to_numpy(mask), (1, 1, *shape))[0, 0]
