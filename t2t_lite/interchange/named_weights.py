"""Tables of weights: which tensor of another package's model is which of ours, for import and export alike.

A table is a list of `Part`. Rows of ids are numbered otherwise there: `published_ids` has, by our id, the id there, or
-1 for an id that only we have.
"""

from typing import NamedTuple

import numpy as np

from t2t_lite.interchange.marian import rows


class Part(NamedTuple):
    """One tensor there, some weights here.

    Attributes:
        name: str, the tensor's name.
        weights: list of (layer, attribute); the tensor is their concatenation along the last axis.
        is_by_id: bool, whether rows are ids.
        is_transposed: bool, whether it is [outputs, inputs] there, as PyTorch's linear layers are.
        skipped: int, rows of the tensor before ours, which are not used; zeros are written.
    """

    name: str
    weights: list
    is_by_id: bool = False
    is_transposed: bool = False
    skipped: int = 0


def dense(name, *layers, is_transposed=False):
    """Yields the Parts of a dense layer, or of some that are one there."""
    yield Part(f"{name}.weight", [(layer, "kernel") for layer in layers], is_transposed=is_transposed)
    yield Part(f"{name}.bias", [(layer, "bias") for layer in layers])


def norm(name, layer):
    """Yields the Parts of a normalization."""
    yield Part(f"{name}.weight", [(layer, "gamma")])
    yield Part(f"{name}.bias", [(layer, "beta")])


def state(parts, published_ids):
    """Returns {their name: float32 array} of a table."""
    found, order = {}, ours_by_theirs(published_ids)
    for part in parts:
        array = np.concatenate([rows(*weight) for weight in part.weights], axis=-1)
        array = array[order] if part.is_by_id else array
        array = np.pad(array, [(part.skipped, 0)] + [(0, 0)] * (array.ndim - 1))
        found[part.name] = array.T if part.is_transposed else array
    return found


def fill(parts, take, published_ids, num_ids=None):
    """Sets all weights of a table; rows of ids that only we have are zero.

    Args:
        parts: the table.
        take: function of (name, shape) that returns the tensor of that name, an array of that shape.
        published_ids: list of int.
        num_ids: int, the ids there; those beyond `published_ids` are left out. None: as many.
    """
    order = ours_by_theirs(published_ids)
    for part in parts:
        variables = [getattr(layer, attribute) for layer, attribute in part.weights]
        shape = (*variables[0].shape[:-1], sum(variable.shape[-1] for variable in variables))
        if part.is_by_id:
            array = np.zeros(shape, "float32")
            array[order] = take(part.name, (num_ids or len(order), *shape[1:]))[: len(order)]
        elif part.is_transposed:
            array = take(part.name, shape[::-1]).T
        else:
            array = take(part.name, (part.skipped + shape[0], *shape[1:]))[part.skipped :]
        for variable, value in zip(variables, np.split(array, len(variables), axis=-1), strict=True):
            variable.assign(value)


def ours_by_theirs(published_ids):
    """Returns int [their ids], our id of each."""
    ours = {theirs: i for i, theirs in enumerate(published_ids) if theirs >= 0}
    return np.array([ours[theirs] for theirs in range(len(ours))])
