"""The weights of foreign families, from the tables published_weights.tsv beside their tests.

Names and shapes are those of the state dicts of Transformers' modeling_….py. A line has the family, the class with our
head (-: body), the path of the layer or weight here, its name there, and the shapes of its parts there, such as "weight
F x H, bias F"; a shape without the name of a part belongs to the name itself. Letters are sizes: V tokens, P positions,
S segments, T kinds of tasks, W width of embeddings, H hidden size, F filter size, N heads, D size of a head, L labels.
"""

import functools
import pathlib
import re
from typing import NamedTuple

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.extras.hugging_face.named_weights import PerHead


class PublishedWeight(NamedTuple):
    """A line of a table."""

    family: str
    head: str
    path: str
    name: str
    shapes: str = ""


@functools.cache
def published_weights(folder):
    """Returns the lines of the table of an extra's tests, "*" for all."""
    tables = sorted(pathlib.Path(__file__).parents[1].glob(f"{folder}/published_weights.tsv"))
    lines = [line for table in tables for line in table.read_text(encoding="utf-8").splitlines()]
    return [PublishedWeight(*line.split("\t")) for line in lines if not line.startswith("#")]


def random_tensors(family, end, sizes, layers):
    """Returns the tensors of a model, {name: random float32 array}.

    Args:
        family: str.
        end: str, suffix of the class, which has the head; "" is a model without head.
        sizes: {letter: int}. If W is H, there is no projection between them.
        layers: int, the number of layers in place of "*".
    """
    rng, tensors = np.random.default_rng(5), {}
    for weight in published_weights("*"):
        if weight.family != family or weight.head.partition("=")[0] not in ("-", end):
            continue
        if weight.path == "projection" and sizes["W"] == sizes["H"]:
            continue
        for number in range(layers if "*" in weight.name else 1):
            name = weight.name.partition(" ")[0].replace("*", str(number))
            for part, letters in re.findall(r"(weight|bias)? ?(\w+(?: x \w+)*)(?:, |$)", weight.shapes):
                shape = [sizes[letter] if letter in sizes else int(letter) for letter in letters.split(" x ")]
                array = rng.normal(scale=0.3, size=shape).astype("float32")
                tensors[f"{name}.{part}" if part else name] = array
    return tensors


def weights_are_as_published(folder):
    """Returns a test of the families in the table of an extra's tests."""

    @pytest.mark.parametrize("name", dict.fromkeys(weight.family for weight in published_weights(folder)))
    def test(name):
        family = registry.family(name)
        found = {("-", path, _named(entry)) for path, entry in family.weights.items()}
        for end, (head, table) in family.heads.items():
            rows = [(path, _named(entry)) for path, entry in table.items()] or [("-", "-")]
            found |= {(f"{end}={head or ''}", *row) for row in rows}
        assert found == {weight[1:4] for weight in published_weights(folder) if weight.family == name}

    return test


def _named(entry):
    """Returns the name in a table of weights, with the layout of a kernel that is stored by head."""
    if not isinstance(entry, PerHead):
        return entry
    return f"{entry.name} ({'output by head' if entry.is_output else 'by head'})"
