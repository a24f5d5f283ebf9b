"""Kinds of feed-forward layers, by tensor2tensor's names (its `ffn_layer`), and which layer has which."""

import inspect

from t2t_lite.layers.feed_forward import FeedForward
from t2t_lite.layers.kind import kinds_config, named_kinds
from t2t_lite.layers.kind_spelling import Word, read_kinds
from t2t_lite.registry import Registries

PLAIN = "dense_relu_dense"


def kinds_of(feed_forward):
    """Returns what `make_feed_forward` takes as a list of (name, all options), one per layer until they repeat.

    Raises:
        ValueError: an unknown name, an option that the kind does not have, or one that is missing.
    """
    return named_kinds("feed_forward", feed_forward, own_options)


def make_feed_forward(feed_forward, index, **options):
    """Makes the feed-forward layer of a layer.

    Args:
        feed_forward: a kind, or a list of kinds that take turns over the layers. A kind is a name that
            `register_feed_forward` knows, or a dict of it and its options: {"type": "local_moe", "num_experts": 4}.
        index: int, number of the layer in its stack.
        **options: arguments of `FeedForward`.

    Raises:
        ValueError: as `kinds_of`.
    """
    kinds = kinds_of(feed_forward)
    name, own = kinds[index % len(kinds)]
    return Registries.feed_forwards.get(name)(**own, **options)


def feed_forward_config(feed_forward):
    """Returns what `make_feed_forward` takes with all options: a kind, or a list of several."""
    return kinds_config(kinds_of(feed_forward))


def own_options(name):
    """Returns {name: default} of the options of a kind. Raises `ValueError` for an unknown one."""
    if name not in Registries.feed_forwards:
        names = ", ".join(Registries.feed_forwards.names())
        raise ValueError(f"`feed_forward` must be one of {names}: received feed_forward={name!r}.")
    base = inspect.signature(FeedForward).parameters
    parameters = inspect.signature(Registries.feed_forwards.get(name)).parameters.values()
    own = (p for p in parameters if p.name not in base and p.kind is p.POSITIONAL_OR_KEYWORD)
    return {p.name: p.default for p in own}


def own_hparams(text):
    """Returns {name: setting} of the hyperparameters that the kinds in `ffn_layer` declare.

    Raises:
        ValueError: as `spelled_kinds`.
    """
    settings = {}
    for name, *_ in spelled_kinds(text):
        settings |= getattr(Registries.feed_forwards.get(name), "HPARAMS", {})
    return settings


def spelled_kinds(text):
    """Returns [(name, {option: text}, [])] of the kinds in `ffn_layer`: see `read_kinds`.

    Raises:
        ValueError: not of that form, an unknown name, or an option that the kind does not have.
    """
    kinds = []
    for [word, *others], *groups in read_kinds(text, "ffn_layer"):
        if others or groups:
            raise ValueError(f"ffn_layer={text}: a layer has one kind. Expected / between those of several layers.")
        options = own_options(word.name)
        for option in word.options:
            if option not in options:
                expected = " or ".join(options) or "none"
                raise ValueError(f"ffn_layer={text}: {word.name} has no option {option}. Expected {expected}.")
        kinds.append((word.name, word.options, []))
    return kinds


def words_of(name, options):
    """Returns a kind as `spell_kind` takes it; arguments as of `kinds_of`."""
    return [[Word(name, options)]]
