"""Kinds of self-attention, by tensor2tensor's names (its `self_attention_type`), and which layer has which."""

import inspect

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.attention_spelling import Word, read_kinds
from t2t_lite.layers.kind import kinds_config, named_kinds
from t2t_lite.layers.named_attention import LeftRelativeAttention, RelativeAttention, RestrictedAttention
from t2t_lite.layers.segment_attention import SegmentAttention
from t2t_lite.registry import Registries

# Another kind is another entry: a class that takes the arguments of `MultiHeadAttention`, and options of its own.
SELF_ATTENTION = {
    "dot_product": MultiHeadAttention,
    "dot_product_relative": RelativeAttention,
    "dot_product_relative_v2": LeftRelativeAttention,
    "restricted": RestrictedAttention,
    "relative_segments": SegmentAttention,
}
_REGISTERED = {  # what these names mean beside others
    "dot_product_relative": "relative",
    "dot_product_relative_v2": "relative_v2",
    "dot_product_relative_memory": "memory",
    "restricted": "window",
}


def _parts(name):
    """Returns (class, score, pattern) that a kind's name means, such as "a+b"; score and pattern are names, or None.

    Raises:
        ValueError: an unknown name, or two of a sort.
    """
    found, words = {}, str(name).split("+")
    for word in words:
        registered = _REGISTERED.get(word, word)
        if word in SELF_ATTENTION and (len(words) == 1 or word == registered):
            sort, part = "class", SELF_ATTENTION[word]
        elif registered in Registries.patterns or registered in Registries.scores:
            sort, part = "pattern" if registered in Registries.patterns else "score", registered
        else:
            raise ValueError(
                f"`self_attention` must be one of {', '.join(self_attention_names())}, or a score and a pattern with + "
                f"between them: received self_attention={name!r}."
            )
        if sort in found or {"class", "score"} <= {*found, sort}:
            raise ValueError(f"`self_attention` {name} has two scores or two patterns. Expected at most one of each.")
        found[sort] = part
    return found.get("class", MultiHeadAttention), found.get("score"), found.get("pattern")


def self_attention_names():
    """Returns the names of all kinds: classes, scores and patterns."""
    others = {*Registries.scores.names(), *Registries.patterns.names(), *_REGISTERED} - {"full", *SELF_ATTENTION}
    return [*SELF_ATTENTION, *sorted(others)]


def _registered(name):
    """Returns {argument of `MultiHeadAttention`: (registered name, class)} of a kind's score and pattern."""
    _, score, pattern = _parts(name)
    named = ("score", score, Registries.scores), ("pattern", pattern, Registries.patterns)
    return {argument: (word, registry.get(word)) for argument, word, registry in named if word is not None}


def self_attention_kinds(self_attention):
    """Returns what `make_self_attention` takes as a list of (name, all options), one per layer until they repeat.

    Raises:
        ValueError: an unknown name, an option that the kind does not have, or one that is missing.
    """
    return named_kinds("self_attention", self_attention, own_options)


def make_self_attention(self_attention, index, has_order=True, **options):
    """Makes the self-attention of a layer.

    Args:
        self_attention: a kind, or a list of kinds that take turns over the layers. A kind is a name in
            `SELF_ATTENTION`, that of a score or of a pattern, or two of them, "local_1d+relative_v2"; or a dict of that
            name and its options: {"type": "local_1d", "block_length": 128}.
        index: int, number of the layer in its stack.
        has_order: bool, whether positions see only earlier ones, as in a decoder.
        **options: arguments of `MultiHeadAttention`.

    Raises:
        ValueError: as `self_attention_kinds`, or a pattern needs an order, and there is none.
    """
    kinds = self_attention_kinds(self_attention)
    name, own = kinds[index % len(kinds)]
    of_kinds = {}
    for argument, (word, kind) in _registered(name).items():
        if getattr(kind, "needs_order", False) and not has_order:
            raise ValueError(
                f"`self_attention` {name}: {word} sees only what comes before a position, and an encoder has no such "
                "order. Expected a model with a decoder alone, or another kind."
            )
        of_kinds[argument] = {"type": word, **{n: own.pop(n) for n in kind.options()}}
    return _parts(name)[0](**own, **of_kinds, **options)


def self_attention_config(self_attention):
    """Returns what `make_self_attention` takes with all options: a kind, or a list of several."""
    return kinds_config(self_attention_kinds(self_attention))


def own_options(name):
    """Returns {name: default} of the options of a kind. Raises `ValueError` for an unknown one."""
    base, cls = inspect.signature(MultiHeadAttention).parameters, _parts(name)[0]
    options = {n: p.default for n, p in inspect.signature(cls).parameters.items() if n not in base}
    for _, kind in _registered(name).values():
        options |= kind.options()
    return options


def own_hparams(text):
    """Returns {name: setting} of the hyperparameters that the kinds in `self_attention_type` declare.

    Raises:
        ValueError: as `spelled_kinds`.
    """
    found = {}
    for name, _ in spelled_kinds(text):
        for _, kind in _registered(name).values():
            found |= kind.HPARAMS
    return found


def spelled_kinds(text):
    """Returns [(name, {option: text})] of the kinds in `self_attention_type`: see `read_kinds`.

    The brackets of a kind's last word may have options of the words before it.

    Raises:
        ValueError: not of that form, an unknown name, or an option that its word does not have.
    """
    kinds = []
    for words in read_kinds(text):
        name, options = "+".join(word.name for word in words), {}
        for word in words:
            own = [*own_options(name if word is words[-1] else word.name)]
            for option in word.options:
                if option not in own:
                    expected = f"Expected {' or '.join(own)}" if own else "Expected none"
                    raise ValueError(f"self_attention_type={text}: {word.name} has no option {option}. {expected}.")
                if option in options:
                    raise ValueError(f"self_attention_type={text}: {option} is given twice for {name}. Expected once.")
            options |= word.options
        kinds.append((name, options))
    return kinds


def words_of(name, options):
    """Returns the words of a kind, each with those of all {option: value} that it has."""
    return [Word(word, {option: options[option] for option in own_options(word)}) for word in name.split("+")]
