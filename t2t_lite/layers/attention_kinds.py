"""Kinds of self-attention: a score with a pattern, or a registered class; their names, and which layer has which kind.

A score or a pattern has its registered name; tensor2tensor's (`self_attention_type`) is an alias.
"""

import inspect
import re
from typing import NamedTuple

import keras

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.context import Context
from t2t_lite.layers.layer_kinds import (
    checked_heads,
    in_words,
    kind_of,
    kinds_config,
    name_and_options,
    named_kinds,
    read_kinds,
)
from t2t_lite.registry import Registries

# Subclasses of `MultiHeadAttention` with further options, for what a score and a pattern cannot express.
SELF_ATTENTION = Registries.self_attentions
PLAIN = "dot_product"
_REGISTRIES = {"class": SELF_ATTENTION, "score": Registries.scores, "pattern": Registries.patterns}


class KindPart(NamedTuple):
    """The meaning of one word in the name of a kind.

    Attributes:
        argument: "score" or "pattern", the argument of `MultiHeadAttention`; or "class".
        name: str, the registered one.
        made_by: class.
    """

    argument: str
    name: str
    made_by: type

    def options(self):
        """Returns {option: default}, as `Kind.options`."""
        if self.argument != "class":
            return self.made_by.options()
        base, own = (inspect.signature(cls).parameters for cls in (MultiHeadAttention, self.made_by))
        return {n: p.default for n, p in own.items() if n not in base}


def _table():
    """Returns {name: KindPart} of all kinds; tensor2tensor's names are aliases of the registered ones."""
    table = {}
    for argument in ("score", "pattern", "class"):
        for name in _REGISTRIES[argument].names():
            part = KindPart(argument, name, _REGISTRIES[argument].get(name))
            table |= dict.fromkeys((name, vars(part.made_by).get("other_name", name)), part)
    return table


def _parts(name):
    """Returns {argument: KindPart} of the name of a kind, such as "a+b".

    Raises:
        ValueError: an unknown name, or two words for the same argument.
    """
    found, table = {}, _table()
    for word in str(name).split("+"):
        if word not in table:
            raise ValueError(
                f"`self_attention` must be one of {', '.join(self_attention_names())}, or a score and a pattern with + "
                f"between them: received self_attention={name!r}."
            )
        if (part := table[word]).argument in found or {"class", "score"} <= {*found, part.argument}:
            raise ValueError(f"`self_attention` {name} has two scores or two patterns. Expected at most one of each.")
        found[part.argument] = part
    return {argument: found[argument] for argument in _REGISTRIES if argument in found}


def self_attention_names():
    """Returns the names of all kinds: classes, scores and patterns."""
    return sorted(_table().keys() - {"full"})


def pattern_name(pattern):
    """Returns a pattern as `self_attention` names it, with its options: "local_1d(block_length=64)"."""
    registered = next(name for name in Registries.patterns.names() if Registries.patterns.get(name) is type(pattern))
    name = vars(type(pattern)).get("other_name", registered)
    options = ";".join(f"{option}={getattr(pattern, option)}" for option in pattern.options())
    return f"{name}({options})" if options else name


def own_options(name):
    """Returns {name: default} of the options of a kind. Raises `ValueError` for an unknown one."""
    return {option: default for part in _parts(name).values() for option, default in part.options().items()}


def kinds_of(self_attention):
    """Returns the kinds of `make_self_attention` as a list of (name, all options), one per layer until they repeat.

    The option "pattern" holds the patterns of groups of heads, with all their options.

    Raises:
        ValueError: an unknown name, an option that the kind does not have, or one that is missing.
    """
    found = []
    for kind in self_attention if isinstance(self_attention, list | tuple) else [self_attention]:
        name, given = name_and_options(kind)
        heads = given.pop("pattern", None)
        name = PLAIN if name is None and heads is not None else name
        [(name, options)] = named_kinds("self_attention", {"type": name, **given}, own_options)
        if heads is not None:
            heads = named_kinds("self_attention", _heads(name, heads), own_options)
            options["pattern"] = [kind_of(*head) for head in heads]
        found.append((name, options))
    return found


def _heads(name, patterns):
    """Returns the patterns of groups of heads, under their registered names.

    Raises:
        ValueError: `patterns` is not a list of patterns, or the kind has a pattern already.
    """
    if checked_heads(patterns) and "pattern" in _parts(name):
        raise ValueError(f"`self_attention` {name} has two scores or two patterns. Expected at most one of each.")
    table, found = _table(), []
    for kind in patterns:
        word, given = name_and_options(kind)
        if word not in table or table[word].argument != "pattern":
            raise ValueError(
                f"`self_attention` has {word!r} as the pattern of some heads; these have one score. Expected one of "
                f"{', '.join(Registries.patterns.names())}."
            )
        found.append(kind_of(table[word].name, given))
    return found


def make_self_attention(self_attention, index, has_order=True, context_class=Context, **options):
    """Makes the self-attention of a layer.

    Args:
        self_attention: a kind, or a list of kinds that take turns over the layers. A kind is the name of a score, of a
            pattern, or of both, "local_1d+relative_v2", or one in `SELF_ATTENTION`; or a dict of that name and its
            options: {"type": "local_1d", "block_length": 128}. The heads are divided among a list of patterns given
            as "pattern": {"type": "relative_v2", "max_relative_position": 9, "pattern": [{"type": "strided",
            "stride": 8}, "full"]}.
        index: int, number of the layer in its stack.
        has_order: bool, whether positions see only earlier ones, as in a decoder.
        context_class: the class of the context that the layer is called with, `Context` or a subclass.
        **options: arguments of `MultiHeadAttention`.

    Raises:
        ValueError: as `kinds_of`, or the kind needs an order or another context.
    """
    kinds = kinds_of(self_attention)
    name, own = kinds[index % len(kinds)]
    parts, patterns = _parts(name), own.pop("pattern", [])
    made_by = parts.pop("class").made_by if "class" in parts else MultiHeadAttention
    if not issubclass(context_class, made_by.context_class):
        raise ValueError(f"`self_attention` {name} {made_by.context_class.lack}")
    of_kinds = {a: kind_of(part.name, {n: own.pop(n) for n in part.options()}) for a, part in parts.items()}
    if patterns:
        of_kinds["pattern"] = patterns
    for pattern in patterns or [of_kinds.get("pattern", "full")]:
        word, _ = name_and_options(pattern)
        if Registries.patterns.get(word).needs_order and not has_order:
            raise ValueError(
                f"`self_attention` {name}: {word} sees only what comes before a position, and an encoder has no such "
                "order. Expected a model with a decoder alone, or another kind."
            )
    try:
        return made_by(**own, **of_kinds, **options)
    except ValueError as error:
        text = re.sub("`(pattern|score)`", "`self_attention`", str(error))
        begin = "" if "`self_attention`" in text else f"`self_attention` {name}: "
        raise ValueError(begin + text) from None


def self_attention_config(self_attention):
    """Returns the argument of `make_self_attention` with all options: a kind, or a list of kinds."""
    return kinds_config(kinds_of(self_attention))


def own_hparams(text):
    """Returns {name: setting} of the hyperparameters that the kinds in `self_attention_type` declare.

    Raises:
        ValueError: as `spelled_kinds`.
    """
    found = {}
    for kind in spelled_kinds(text):
        for word in (kind, *kind.get("pattern", ())):
            for part in _parts(name_and_options(word)[0]).values():
                found |= getattr(part.made_by, "HPARAMS", {})
    return found


def spelled_kinds(text):
    """Returns the kinds in `self_attention_type`, dicts as `make_self_attention` takes them: see `read_kinds`.

    Only options in the text are returned, as strings; the last word's brackets may hold options of earlier words.

    Raises:
        ValueError: not of that form, an unknown name, or an option that its word does not have.
    """
    kinds = []
    for groups in read_kinds(text):
        groups = _shared_out(groups, f"self_attention_type={text}")
        heads = [group for group in groups if len(group) > 1]
        words = [group[0] for group in groups if len(group) == 1]
        if len(heads) > 1:
            raise ValueError(f"self_attention_type={text}: has two lists of patterns. Expected one.")
        name = "+".join(word.name for word in words) or PLAIN
        own_options(name)  # raises
        kind = {"type": name} | {option: value for word in words for option, value in word.options.items()}
        if heads:
            kind["pattern"] = _heads(name, [kind_of(*word) for word in heads[0]])
        kinds.append(kind)
    return kinds


def _shared_out(groups, text):
    """Returns the groups of words of a kind, each word with its own options; `text` names them in errors."""
    words = [word for group in groups for word in group]
    accepted, shared = [own_options(word.name) for word in words], [dict(word.options) for word in words]
    for n, word in enumerate(words):
        for option in [option for option in word.options if option not in accepted[n]]:
            others = [i for i in range(n) if option in accepted[i]] if n == len(words) - 1 else []
            if not others:
                expected = " or ".join(accepted[n]) or "none"
                raise ValueError(f"{text}: {word.name} has no option {option}. Expected {expected}.")
            value = shared[n].pop(option)
            for i in others:
                if shared[i].setdefault(option, value) is not value:
                    raise ValueError(f"{text}: {option} of {words[i].name} is given twice. Expected once.")
    ordered = ({o: own[o] for o in options if o in own} for own, options in zip(shared, accepted, strict=True))
    words = iter(word._replace(options=own) for word, own in zip(words, ordered, strict=True))
    return [[next(words) for _ in group] for group in groups]


def words_of(name, options):
    """Returns a kind in the form that `spell_kind` takes; the arguments are as in `kinds_of`."""
    return _shared_out(in_words(name, options), "self_attention")


@keras.saving.register_keras_serializable("t2t_lite")
class RelativeAttention(MultiHeadAttention):
    """Self-attention that adds a learned vector for the distance j - i to key j, as query i sees it.

    score(i, j) = q_i · (k_j + a_clip(j - i)) / √d_k, with distances clipped to ±max_relative_position (Shaw et al.,
    equations 4 and 5); one table for all heads, as in tensor2tensor's `dot_product_attention_relative`
    (layers/common_attention.py). No tensor of [T, S, d] is made: the queries' products with the 2k + 1 vectors are
    widened to [T, T + S] and shifted row by row into place.

    Args:
        num_heads: int, h.
        max_relative_position: int, k; longer distances share a vector.
        add_relative_to_values: bool: values get vectors for distances as well (equation 3), from a second table.
        **kwargs: other arguments of `MultiHeadAttention`.

    Raises:
        ValueError: as `MultiHeadAttention`, or `max_relative_position` is less than 1.
    """

    def __init__(self, num_heads: int, max_relative_position: int, add_relative_to_values: bool = False, **kwargs):
        options = {"max_relative_position": max_relative_position, "add_relative_to_values": add_relative_to_values}
        super().__init__(num_heads, **kwargs | {"score": {"type": "relative", **options}})


@keras.saving.register_keras_serializable("t2t_lite")
class LeftRelativeAttention(MultiHeadAttention):
    """Self-attention that adds a learned vector for the distance i - j to key j, as query i sees it, in every head.

    score(i, j) = q_i · (k_j + e_(i - j)) / √d_k (Huang et al., equation 3); e is zero at distances of
    `max_relative_position` and more, and for later keys, which a decoder does not see. It is tensor2tensor's
    `dot_product_self_attention_relative_v2` (layers/common_attention.py). No tensor of [T, S, d] is made: the queries'
    products with the vectors are shifted row by row into place.

    Args:
        num_heads: int, h.
        max_relative_position: int, k, the number of distances with a vector, from 0 on.
        add_relative_to_values: bool: values get vectors for distances as well, from a second table.
        heads_share_relative_embedding: bool: one table for all heads.
        **kwargs: other arguments of `MultiHeadAttention`.

    Raises:
        ValueError: as `RelativeAttention`.
    """

    def __init__(
        self,
        num_heads: int,
        max_relative_position: int,
        add_relative_to_values: bool = False,
        heads_share_relative_embedding: bool = False,
        **kwargs,
    ):
        options = {
            "max_relative_position": max_relative_position,
            "add_relative_to_values": add_relative_to_values,
            "heads_share_relative_embedding": heads_share_relative_embedding,
        }
        super().__init__(num_heads, **kwargs | {"score": {"type": "relative_v2", **options}})


@keras.saving.register_keras_serializable("t2t_lite")
class RestrictedAttention(MultiHeadAttention):
    """Self-attention in which every position sees a neighbourhood of r positions, centred on it.

    Time and memory grow as r · n, not n² (paper, section 4 and table 1): queries are taken in blocks, and each block
    attends to itself and its neighbours. At the ends of a sentence the neighbourhood is moved inwards, so that it
    always has r positions (as in Hassani et al. 2023, "Neighborhood Attention Transformer"); so from r = n on this is
    full attention. With a causal mask it is the r positions up to the output position. A sentence ends with its last
    position that is not masked.

    All scores are computed for sequences that are known to be short, in calls that ask for the weights or give one
    mask per query, and by a subclass that overrides `attend`.

    Args:
        num_heads: int, h.
        neighborhood: int, r; with an even r one more position to the left than to the right.
        **kwargs: others of `MultiHeadAttention`.

    Raises:
        ValueError: as `MultiHeadAttention`, or `neighborhood` is less than 1, or a second sequence is given.
    """

    def __init__(self, num_heads: int, neighborhood: int, **kwargs):
        super().__init__(num_heads, **kwargs | {"pattern": {"type": "window", "neighborhood": neighborhood}})
