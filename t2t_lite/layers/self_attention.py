"""Kinds of self-attention, by tensor2tensor's names (its `self_attention_type`), and which layer has which."""

import inspect

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.left_relative_attention import LeftRelativeAttention
from t2t_lite.layers.relative_attention import RelativeAttention
from t2t_lite.layers.restricted_attention import RestrictedAttention

# Another kind is another entry: a class that takes the arguments of `MultiHeadAttention`, and options of its own.
SELF_ATTENTION = {
    "dot_product": MultiHeadAttention,
    "dot_product_relative": RelativeAttention,
    "dot_product_relative_v2": LeftRelativeAttention,
    "restricted": RestrictedAttention,
}


def self_attention_kinds(self_attention):
    """Returns what `make_self_attention` takes as a list of (name, all options), one per layer until they repeat.

    Raises:
        ValueError: an unknown name, an option that the kind does not have, or one that is missing.
    """
    kinds = self_attention if isinstance(self_attention, list | tuple) else [self_attention]
    found = []
    for kind in kinds:
        given = {"type": kind} if isinstance(kind, str) else dict(kind)
        name = given.pop("type", None)
        if name not in SELF_ATTENTION:
            raise ValueError(
                f"`self_attention` must be one of {', '.join(SELF_ATTENTION)}: received self_attention={name!r}."
            )
        options = own_options(name)
        if given.keys() - options.keys() or inspect.Parameter.empty in {**options, **given}.values():
            raise ValueError(f"`self_attention` {name} has the options {[*options]}: received {given}.")
        found.append((name, {**options, **given}))
    return found


def make_self_attention(self_attention, index, **options):
    """Makes the self-attention of a layer.

    Args:
        self_attention: a kind, or a list of kinds that take turns over the layers. A kind is a name in
            `SELF_ATTENTION`, or a dict of that name and its options: {"type": "restricted", "neighborhood": 9}.
        index: int, number of the layer in its stack.
        **options: arguments of `MultiHeadAttention`.
    """
    kinds = self_attention_kinds(self_attention)
    name, own = kinds[index % len(kinds)]
    return SELF_ATTENTION[name](**own, **options)


def self_attention_config(self_attention):
    """Returns what `make_self_attention` takes with all options: a kind, or a list of several."""
    kinds = [{"type": name, **options} if options else name for name, options in self_attention_kinds(self_attention)]
    return kinds if len(kinds) > 1 else kinds[0]


def own_options(name):
    """Returns {name: default} of the arguments that a kind has in addition to those of `MultiHeadAttention`."""
    base = inspect.signature(MultiHeadAttention).parameters
    return {n: p.default for n, p in inspect.signature(SELF_ATTENTION[name]).parameters.items() if n not in base}
