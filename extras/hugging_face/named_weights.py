"""Maps the tensors of a "foreign" model, which belongs to another package, to our weights and back by means of tables.

A table is {path of a layer or a weight in our model: its foreign name}. A `*` in the path and the name stands for the
number of a layer. Layers joined by `+` correspond to one foreign layer, which concatenates their outputs. Entries that
our model lacks are skipped. Foreign tensors order the rows of token ids differently: `published_ids` lists the foreign
id for each of our ids, or -1 for an id that only our model has.
"""

from typing import NamedTuple

import keras
import numpy as np
from keras import ops

# A logit that is low enough to exclude an id from search, but does not spoil label smoothing, which sums all logits.
NEVER = -100.0
# Suffixes of the names of layers whose outputs are added to the hidden states.
_ADDED = ("output_projection", "outer", "position")
_KINDS = {  # {attribute that identifies a kind of layer: {weight: suffix of its foreign name}}
    "kernel": {"kernel": ".weight", "bias": ".bias"},
    "gamma": {"gamma": ".weight", "beta": ".bias"},
    "embeddings": {"embeddings": ".weight"},
    "table": {"table": ".weight"},
}


class PerHead(NamedTuple):
    """A table's entry for an attention kernel that the foreign model stores as [hidden, heads, size].

    Attributes:
        name: str, the complete name of the tensor; no suffix is added.
        is_output: bool, whether it is the kernel of the output projection, which is [heads * size, hidden] here.
    """

    name: str
    is_output: bool = False


class WeightPart(NamedTuple):
    """One foreign tensor and the corresponding weights of ours.

    Attributes:
        name: str, the tensor's name.
        weights: list of (layer, attribute); the tensor is their concatenation along the last axis.
        is_by_id: bool, whether each row of the tensor belongs to a token id.
        is_transposed: bool, whether the tensor is [outputs, inputs], as in PyTorch's linear layers.
        is_added: bool, whether the layer's outputs are added to the hidden states.
        heads: int, the size of the heads axis if the foreign tensor's last axis is split into (heads, size), else 0.
    """

    name: str
    weights: list
    is_by_id: bool = False
    is_transposed: bool = False
    is_added: bool = False
    heads: int = 0

    @property
    def feature_axis(self):
        """The axis of the hidden features in our weights: int, or None."""
        attribute = self.weights[0][1]
        if attribute in ("kernel", "table"):
            return 1 if self.is_added else 0
        return 0 if self.is_added or attribute in ("gamma", "beta") else None


def parts(model, table, is_transposed):
    """Yields a WeightPart for each foreign tensor in a table, except for weights that the model lacks.

    Args:
        model: a model with a method `token_embeddings`, which returns the layers whose rows are token ids.
        table: {path: name, or PerHead}.
        is_transposed: bool, whether foreign kernels are [outputs, inputs].
    """
    by_id = [*model.token_embeddings().values()]
    for path, entry in table.items():
        above, _, last = path.rpartition(".")
        name = entry.name if isinstance(entry, PerHead) else entry
        for number, owner in _owners(model, above):
            tensor_name = name.replace("*", number)
            if last == "bias" or isinstance(getattr(owner, last, None), keras.Variable):  # our model may lack a bias
                yield WeightPart(tensor_name, [(owner, last)], last == "bias" and owner in by_id)
                continue
            layers = [getattr(owner, attribute) for attribute in last.split("+")]
            if layers[0] is None:
                continue
            if isinstance(entry, PerHead):
                options = {"is_transposed": entry.is_output, "is_added": entry.is_output, "heads": owner.num_heads}
                yield WeightPart(tensor_name, [(layers[0], "kernel")], **options)
                continue
            for attribute, end in next(ends for mark, ends in _KINDS.items() if hasattr(layers[0], mark)).items():
                weights = [(layer, attribute) for layer in layers]
                is_kernel = attribute == "kernel"
                yield WeightPart(
                    tensor_name + end, weights, layers[0] in by_id, is_transposed and is_kernel, last.endswith(_ADDED)
                )


def _owners(owner, path):
    """Yields (number of the layer or "", object) for the objects at a path. An attribute that is None is skipped."""
    above, star, below = path.partition(".*.")
    for attribute in above.split(".") if above else ():
        owner = None if owner is None else getattr(owner, attribute)
    if star:
        for number, layer in enumerate(dict.fromkeys(owner)):  # layers that share weights are yielded once
            yield from ((str(number), inner) for _, inner in _owners(layer, below))
    elif owner is not None:
        yield "", owner


def state(parts, published_ids=(), change=None):
    """Returns the foreign tensors for an export, {foreign name: float32 array}.

    Args:
        parts: iterable of WeightPart.
        published_ids: list of int.
        change: function of (WeightPart, our array) that returns the array to store. If None, arrays are not changed.
    """
    tensors, order = {}, ours_by_theirs(published_ids)
    for part in parts:
        array = np.concatenate([rows(*weight) for weight in part.weights], axis=-1)
        array = array[order] if part.is_by_id else array
        array = change(part, array) if change else array
        array = array.T if part.is_transposed else array
        tensors[part.name] = array.reshape(len(array), part.heads, -1) if part.heads else array
    return tensors


def fill(parts, take, published_ids=(), num_ids=None, change=None):
    """Sets our weights from foreign tensors. Rows for ids that exist only in our model are set to zero.

    Args:
        parts: iterable of WeightPart.
        take: function of (name, shape) that returns the foreign tensor as an array, and checks its shape.
        published_ids: list of int.
        num_ids: int, number of foreign ids; those that are not in `published_ids` are dropped. If None, `published_ids`
            contains all foreign ids.
        change: function of (WeightPart, array in our layout) that returns our array. If None, arrays are not changed.
    """
    order = ours_by_theirs(published_ids)
    for part in parts:
        variables = [getattr(layer, attribute) for layer, attribute in part.weights]
        shape = (*variables[0].shape[:-1], sum(variable.shape[-1] for variable in variables))
        if part.is_by_id:
            array = np.zeros(shape, "float32")
            array[order] = take(part.name, (num_ids or len(order), *shape[1:]))[: len(order)]
        else:
            foreign = shape[::-1] if part.is_transposed else shape
            stored = (foreign[0], part.heads, foreign[1] // part.heads) if part.heads else foreign
            array = take(part.name, stored).reshape(foreign)
            array = array.T if part.is_transposed else array
        array = change(part, array) if change else array
        for variable, value in zip(variables, np.split(array, len(variables), axis=-1), strict=True):
            variable.assign(value)


def ours_by_theirs(published_ids):
    """Returns our id for each foreign id, int [foreign ids]."""
    ours = {theirs: i for i, theirs in enumerate(published_ids) if theirs >= 0}
    return np.array([ours[theirs] for theirs in range(len(ours))], int)


def rows(layer, attribute="embeddings"):
    """Returns a float32 copy of a layer's weight, or zeros if the layer has no bias."""
    if getattr(layer, attribute, None) is None:
        return np.zeros(layer.units if hasattr(layer, "units") else layer.vocab_size, "float32")
    return array_of(getattr(layer, attribute))


def array_of(weight):
    """Returns a weight or a tensor as a new float32 array."""
    return np.array(ops.convert_to_numpy(weight), "float32")
