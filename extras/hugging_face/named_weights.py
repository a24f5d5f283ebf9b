"""Tables that map the tensors of another package's ("foreign") model to ours, for import and export alike.

A table is {path of a layer, or of one weight, in our model: its foreign name}. `*` in both is the number of a layer;
layers joined by `+` are one foreign layer with concatenated outputs. Entries that our model lacks are skipped. Rows of
ids have another order there: `published_ids` lists the foreign id by our id, or -1 for an id that only we have.
"""

from typing import NamedTuple

import keras
import numpy as np
from keras import ops

# A logit that no search chooses, but small enough to be summed, since label smoothing sums all logits.
NEVER = -100.0
# Suffixes of the names of layers whose outputs are added to the hidden features.
_ADDED = ("output_projection", "outer", "position")
_KINDS = {  # attribute of a kind of layer -> its weights, and the suffixes of their foreign names
    "kernel": {"kernel": ".weight", "bias": ".bias"},
    "gamma": {"gamma": ".weight", "beta": ".bias"},
    "embeddings": {"embeddings": ".weight"},
    "table": {"table": ".weight"},
}


class PerHead(NamedTuple):
    """The foreign name, in a table, of an attention's kernel that is stored as [hidden, heads, size].

    Attributes:
        name: str, whole, without a suffix for the weight.
        is_output: bool, whether it is that of the output, which is [heads * size, hidden] here.
    """

    name: str
    is_output: bool = False


class WeightPart(NamedTuple):
    """One foreign tensor, and one or more weights of ours.

    Attributes:
        name: str, the tensor's name.
        weights: list of (layer, attribute); the tensor is their concatenation along the last axis.
        is_by_id: bool, whether rows are ids.
        is_transposed: bool, whether the tensor is [outputs, inputs], as in PyTorch's linear layers.
        is_added: bool, whether outputs of the layer are added to the hidden features.
        heads: int, into how many the last axis of the tensor is split, as an axis before it; 0: it is not.
    """

    name: str
    weights: list
    is_by_id: bool = False
    is_transposed: bool = False
    is_added: bool = False
    heads: int = 0

    @property
    def feature_axis(self):
        """The axis of the hidden features in a weight of the layers, int, or None."""
        attribute = self.weights[0][1]
        if attribute in ("kernel", "table"):
            return 1 if self.is_added else 0
        return 0 if self.is_added or attribute in ("gamma", "beta") else None


def parts(model, table, is_transposed):
    """Yields the WeightParts of a table that a model has.

    Args:
        model: a model with `token_embeddings`, whose rows are ids.
        table: {path: name, or PerHead}.
        is_transposed: bool, whether foreign kernels are [outputs, inputs].
    """
    by_id = [*model.token_embeddings().values()]
    for path, entry in table.items():
        above, _, last = path.rpartition(".")
        name = entry.name if isinstance(entry, PerHead) else entry
        for number, owner in _owners(model, above):
            tensor_name = name.replace("*", number)
            if last == "bias" or isinstance(getattr(owner, last, None), keras.Variable):  # a bias need not exist here
                yield WeightPart(tensor_name, [(owner, last)], last == "bias" and owner in by_id)
                continue
            layers = [getattr(owner, attribute) for attribute in last.split("+")]
            if layers[0] is None:
                continue
            if isinstance(entry, PerHead):
                of_kernel = {"is_transposed": entry.is_output, "is_added": entry.is_output, "heads": owner.num_heads}
                yield WeightPart(tensor_name, [(layers[0], "kernel")], **of_kernel)
                continue
            for attribute, end in next(ends for mark, ends in _KINDS.items() if hasattr(layers[0], mark)).items():
                weights = [(layer, attribute) for layer in layers]
                is_kernel = attribute == "kernel"
                yield WeightPart(
                    tensor_name + end, weights, layers[0] in by_id, is_transposed and is_kernel, last.endswith(_ADDED)
                )


def _owners(owner, path):
    """Yields (number of a layer or "", the object at a path); nothing if a part of the path is None."""
    above, star, below = path.partition(".*.")
    for attribute in above.split(".") if above else ():
        owner = None if owner is None else getattr(owner, attribute)
    if star:
        for number, layer in enumerate(dict.fromkeys(owner)):  # those of a group are one
            yield from ((str(number), inner) for _, inner in _owners(layer, below))
    elif owner is not None:
        yield "", owner


def state(parts, published_ids=(), change=None):
    """Returns {foreign name: float32 array} of WeightParts.

    Args:
        parts: iterable of WeightPart.
        published_ids: list of int.
        change: function of (WeightPart, our array) that returns the array to store; None: unchanged.
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
    """Sets the weights of WeightParts; rows of ids that only we have are zero.

    Args:
        parts: iterable of WeightPart.
        take: function of (name, shape) that returns the tensor of that name, an array of that shape.
        published_ids: list of int.
        num_ids: int, number of foreign ids; those beyond `published_ids` are dropped. None: as many as these.
        change: function of (WeightPart, array in our layout) that returns our array; None: unchanged.
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
    """Returns int [foreign ids], our id of each."""
    ours = {theirs: i for i, theirs in enumerate(published_ids) if theirs >= 0}
    return np.array([ours[theirs] for theirs in range(len(ours))], int)


def rows(layer, attribute="embeddings"):
    """Returns a float32 copy of a layer's weight; zeros for the bias of a dense layer or embedding without one."""
    if getattr(layer, attribute, None) is None:
        return np.zeros(layer.units if hasattr(layer, "units") else layer.vocab_size, "float32")
    return np.array(ops.convert_to_numpy(getattr(layer, attribute)), "float32")
