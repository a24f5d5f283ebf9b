"""Kinds of self-attention, by tensor2tensor's names (its `self_attention_type`), and which layer has which."""

import inspect
import re

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.context import Context
from t2t_lite.layers.kind import Word, check_options, kinds_config, name_and_options, read_kinds
from t2t_lite.registry import Registries

# Classes that take the arguments of `MultiHeadAttention`, and options of their own. Another kind is another entry.
SELF_ATTENTION = Registries.self_attentions


def _others():
    """Returns {another name of a score or pattern, which it has here: its registered name}."""
    registries = Registries.scores, Registries.patterns
    names = ((registry.get(name), name) for registry in registries for name in registry.names())
    return {other: name for kind, name in names if (other := vars(kind).get("other_name"))}


def _parts(name):
    """Returns (class, score, pattern) that a kind's name means, such as "a+b"; score and pattern are names, or None.

    Raises:
        ValueError: an unknown name, or two of a sort.
    """
    found, words, others = {}, str(name).split("+"), _others()
    for word in words:
        registered = others.get(word, word)
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
    classes = SELF_ATTENTION.names()
    others = {*Registries.scores.names(), *Registries.patterns.names(), *_others()} - {"full", *classes}
    return [*classes, *sorted(others)]


def pattern_name(pattern):
    """Returns a pattern as `self_attention` names it, with its options: "local_1d(block_length=64)"."""
    registered = next(name for name in Registries.patterns.names() if Registries.patterns.get(name) is type(pattern))
    name = vars(type(pattern)).get("other_name", registered)
    options = ";".join(f"{option}={getattr(pattern, option)}" for option in pattern.options())
    return f"{name}({options})" if options else name


def _registered(name):
    """Returns {argument of `MultiHeadAttention`: (registered name, class)} of a kind's score and pattern."""
    _, score, pattern = _parts(name)
    named = ("score", score, Registries.scores), ("pattern", pattern, Registries.patterns)
    return {argument: (word, registry.get(word)) for argument, word, registry in named if word is not None}


def kinds_of(self_attention):
    """Returns what `make_self_attention` takes as a list of (name, all options), one per layer until they repeat.

    Patterns of several heads, with all their options, are among the options as "pattern".

    Raises:
        ValueError: an unknown name, an option that the kind does not have, or one that is missing.
    """
    kinds = self_attention if isinstance(self_attention, list | tuple) else [self_attention]
    found = []
    for kind in kinds:
        name, given = name_and_options(kind)
        if (patterns := given.pop("pattern", None)) is not None and "type" not in kind:
            name = "dot_product"
        options = own_options(name)
        check_options("self_attention", name, options, given)
        options |= given
        if patterns is not None:
            _check_heads(name, patterns)
            options["pattern"] = [_head_pattern(kind) for kind in patterns]
        found.append((name, options))
    return found


def _check_heads(name, patterns):
    """Raises `ValueError` unless patterns are a list, and the kind of a name has none itself."""
    if not isinstance(patterns, list | tuple):
        raise ValueError(f"`self_attention` has pattern={patterns!r}. Expected a list, the patterns of several heads.")
    others = _others()
    if any(others.get(word, word) in Registries.patterns for word in name.split("+")):
        raise ValueError(f"`self_attention` {name} has two scores or two patterns. Expected at most one of each.")


def _head_name(name):
    """Returns the registered name of the pattern of some heads. Raises `ValueError` if there is none."""
    if (registered := _others().get(name, name)) in Registries.patterns:
        return registered
    raise ValueError(
        f"`self_attention` has {name!r} as the pattern of some heads; these have one score. Expected one of "
        f"{', '.join(Registries.patterns.names())}."
    )


def _head_pattern(kind):
    """Returns the pattern of some heads with all its options; its name is the registered one."""
    name, given = name_and_options(kind)
    name = _head_name(name)
    options = Registries.patterns.get(name).options()
    check_options("self_attention", name, options, given)
    return {"type": name, **options, **given} if options else name


def make_self_attention(self_attention, index, has_order=True, context_class=Context, **options):
    """Makes the self-attention of a layer.

    Args:
        self_attention: a kind, or a list of kinds that take turns over the layers. A kind is a name in
            `SELF_ATTENTION`, that of a score or of a pattern, or two of them, "local_1d+relative_v2"; or a dict of that
            name and its options: {"type": "local_1d", "block_length": 128}. A list of patterns as "pattern" is of
            several heads, among which they are divided: {"type": "relative_v2", "max_relative_position": 9, "pattern":
            [{"type": "strided", "stride": 8}, "full"]}.
        index: int, number of the layer in its stack.
        has_order: bool, whether positions see only earlier ones, as in a decoder.
        context_class: `Context`, or a subclass of it, what the layer is called with.
        **options: arguments of `MultiHeadAttention`.

    Raises:
        ValueError: as `kinds_of`, or the kind needs an order or another context.
    """
    kinds = kinds_of(self_attention)
    name, own = kinds[index % len(kinds)]
    of_kinds, patterns = {}, own.pop("pattern", [])
    for argument, (word, kind) in _registered(name).items():
        of_kinds[argument] = {"type": word, **{n: own.pop(n) for n in kind.options()}}
    if patterns:
        of_kinds["pattern"] = patterns
    needed = _parts(name)[0].context_class
    if not issubclass(context_class, needed):
        raise ValueError(f"`self_attention` {name} {needed.lack}")
    for pattern in patterns or [of_kinds.get("pattern", "full")]:
        word, _ = name_and_options(pattern)
        if Registries.patterns.get(word).needs_order and not has_order:
            raise ValueError(
                f"`self_attention` {name}: {word} sees only what comes before a position, and an encoder has no such "
                "order. Expected a model with a decoder alone, or another kind."
            )
    try:
        return _parts(name)[0](**own, **of_kinds, **options)
    except ValueError as error:
        text = re.sub("`(pattern|score)`", "`self_attention`", str(error))
        begin = "" if "`self_attention`" in text else f"`self_attention` {name}: "
        raise ValueError(begin + text) from None


def self_attention_config(self_attention):
    """Returns what `make_self_attention` takes with all options: a kind, or a list of several."""
    return kinds_config(kinds_of(self_attention))


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
    for name, _, heads in spelled_kinds(text):
        for word in (name, *(pattern.name for pattern in heads)):
            for _, kind in _registered(word).values():
                found |= kind.HPARAMS
    return found


def spelled_kinds(text):
    """Returns [(name, {option: text}, patterns)] of the kinds in `self_attention_type`: see `read_kinds`.

    The patterns are of several heads, a list of `Word`s with registered names; [] where heads have one. The brackets of
    a kind's last word may have options of the words before it.

    Raises:
        ValueError: not of that form, an unknown name, or an option that its word does not have.
    """
    kinds = []
    for groups in read_kinds(text):
        words = _shared_out(text, [word for group in groups for word in group])
        heads, others = [], []
        for group in groups:
            own, words = words[: len(group)], words[len(group) :]
            if len(own) == 1:
                others += own
            elif heads:
                raise ValueError(f"self_attention_type={text}: has two lists of patterns. Expected one.")
            else:
                heads = [word._replace(name=_head_name(word.name)) for word in own]
        name = "+".join(word.name for word in others) or "dot_product"
        own_options(name)  # raises
        if heads:
            _check_heads(name, heads)
        kinds.append((name, {o: value for word in others for o, value in word.options.items()}, heads))
    return kinds


def _shared_out(text, words):
    """Returns a kind's words, each with the options that it has."""
    accepted, shared = [own_options(word.name) for word in words], [dict(word.options) for word in words]
    for n, word in enumerate(words):
        for option in word.options.keys() - accepted[n].keys():
            others = [i for i in range(n) if option in accepted[i]] if n == len(words) - 1 else []
            if not others:
                expected = " or ".join(accepted[n]) or "none"
                raise ValueError(
                    f"self_attention_type={text}: {word.name} has no option {option}. Expected {expected}."
                )
            value = shared[n].pop(option)
            for i in others:
                if shared[i].setdefault(option, value) is not value:
                    raise ValueError(
                        f"self_attention_type={text}: {option} of {words[i].name} is given twice. Expected once."
                    )
    return [word._replace(options=options) for word, options in zip(words, shared, strict=True)]


def words_of(name, options):
    """Returns a kind as `spell_kind` takes it; arguments as of `kinds_of`."""
    words = [[Word(word, {option: options[option] for option in own_options(word)})] for word in name.split("+")]
    if "pattern" not in options:
        return words
    patterns = [Word(*name_and_options(kind)) for kind in options["pattern"]]
    return [patterns, *(words if name != "dot_product" else [])]
