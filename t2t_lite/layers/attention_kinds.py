"""The kinds of self-attention and their names, and the choice of a kind for each layer of a stack.

A kind is a score combined with a pattern, or a registered class. Scores and patterns can be named by their registered
names or by tensor2tensor's names for `self_attention_type`, which are aliases.
"""

import re
from typing import NamedTuple

import keras

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.context import Context
from t2t_lite.layers.layer_kinds import (
    added_options,
    kind_of,
    kinds_config,
    name_and_options,
    named_kinds,
    read_kinds,
)
from t2t_lite.registry import Registries

# Subclasses of `MultiHeadAttention`, for kinds that cannot be expressed as a score and a pattern.
SELF_ATTENTION = Registries.self_attentions
PLAIN = "dot_product"
_REGISTRIES = {"class": SELF_ATTENTION, "score": Registries.scores, "pattern": Registries.patterns}


class KindPart(NamedTuple):
    """The meaning of one word in the name of a kind of attention, such as "window" in "relative+window".

    Attributes:
        argument: str, the argument of `MultiHeadAttention` that the word sets, "score" or "pattern"; "class" if the
            word names a subclass.
        name: str, the registered name.
        made_by: the registered class.
    """

    argument: str
    name: str
    made_by: type

    def options(self):
        """Returns the options that the word accepts, {option: default}, like `Kind.options`."""
        is_class = self.argument == "class"
        return added_options(self.made_by, MultiHeadAttention) if is_class else self.made_by.options()


def _table():
    """Returns {name: KindPart} for all words: the registered names, and tensor2tensor's names, which are aliases."""
    table = {}
    for argument in ("score", "pattern", "class"):
        for name in _REGISTRIES[argument].names():
            part = KindPart(argument, name, _REGISTRIES[argument].get(name))
            table |= dict.fromkeys((name, vars(part.made_by).get("other_name", name)), part)
    return table


def _parts(name):
    """Splits the name of a kind, such as "a+b", and returns {argument: KindPart}.

    Raises:
        ValueError: if a name is unknown, or two words set the same argument.
    """
    parts, table = {}, _table()
    for word in str(name).split("+"):
        if word not in table:
            raise ValueError(
                f"`self_attention` must be one of {', '.join(self_attention_names())}, or a score and a pattern with + "
                f"between them: received self_attention={name!r}."
            )
        if (part := table[word]).argument in parts or {"class", "score"} <= {*parts, part.argument}:
            raise ValueError(f"`self_attention` {name} has two scores or two patterns. Expected at most one of each.")
        parts[part.argument] = part
    return {argument: parts[argument] for argument in _REGISTRIES if argument in parts}


def self_attention_names():
    """Returns the names of all classes, scores and patterns of self-attention."""
    return sorted(_table().keys() - {"full"})


def own_options(name):
    """Returns {option: default} for a kind of self-attention. Raises `ValueError` if the kind is unknown."""
    return {option: default for part in _parts(name).values() for option, default in part.options().items()}


def kinds_of(self_attention, fills=True):
    """Returns the kinds in `self_attention` as a list of (name, all options), which the layers use in turn.

    If heads have different patterns, the option "pattern" lists the pattern of each group, with all its options. For
    `fills`, see `named_kinds`.

    Raises:
        ValueError: if a name or an option is unknown, or a required option is missing.
    """
    kinds = []
    for kind in self_attention if isinstance(self_attention, list | tuple) else [self_attention]:
        name, options_given = name_and_options(kind)
        heads = options_given.pop("pattern", None)
        name = PLAIN if name is None and heads is not None else name
        [(name, options)] = named_kinds("self_attention", {"type": name, **options_given}, own_options, fills)
        if heads is not None:
            heads = named_kinds("self_attention", _heads(name, heads), own_options, fills)
            options["pattern"] = [kind_of(*head) for head in heads]
        kinds.append((name, options))
    return kinds


def _heads(name, patterns):
    """Returns the patterns for groups of heads, with aliases replaced by registered names.

    Raises:
        ValueError: if `patterns` is not a list of patterns, or the name of the kind already includes a pattern.
    """
    if not isinstance(patterns, list | tuple):
        raise ValueError(f"`self_attention` has pattern={patterns!r}. Expected a list of patterns for groups of heads.")
    if "pattern" in _parts(name):
        raise ValueError(f"`self_attention` {name} has two scores or two patterns. Expected at most one of each.")
    table, groups = _table(), []
    for kind in patterns:
        word, options = name_and_options(kind)
        if word not in table or table[word].argument != "pattern":
            raise ValueError(
                f"`self_attention` has the pattern {word!r} for some heads, but there is no such pattern. Expected "
                f"one of {', '.join(Registries.patterns.names())}."
            )
        groups.append(kind_of(table[word].name, options))
    return groups


def make_self_attention(self_attention, index, has_order=True, context_class=Context, **options):
    """Creates the self-attention of one layer of a stack.

    Args:
        self_attention: a kind, or a list of kinds that the layers use in turn. A kind is the name of a score or
            a pattern, both names joined with + ("local_1d+relative_v2"), or the name of a class in `SELF_ATTENTION`; or
            a dict with such a name and options: {"type": "local_1d", "block_length": 128}. If the option "pattern" is a
            list of patterns, the heads are divided among them: {"type": "relative_v2", "max_relative_position": 9,
            "pattern": [{"type": "strided", "stride": 8}, "full"]}.
        index: int, the number of the layer in its stack.
        has_order: bool, whether a position only sees itself and earlier positions, as in a decoder.
        context_class: the class of the context that the layer receives: `Context` or a subclass.
        **options: arguments of `MultiHeadAttention`.

    Raises:
        ValueError: see `kinds_of`; also if the kind needs a decoder or a different class of context.
    """
    kinds = kinds_of(self_attention)
    name, kind_options = kinds[index % len(kinds)]
    parts, patterns = _parts(name), kind_options.pop("pattern", [])
    made_by = parts.pop("class").made_by if "class" in parts else MultiHeadAttention
    if not issubclass(context_class, made_by.context_class):
        raise ValueError(f"`self_attention` {name} {made_by.context_class.lack}")
    made_kinds = {a: kind_of(part.name, {n: kind_options.pop(n) for n in part.options()}) for a, part in parts.items()}
    if patterns:
        made_kinds["pattern"] = patterns
    for pattern in patterns or [made_kinds.get("pattern", "full")]:
        word, _ = name_and_options(pattern)
        if Registries.patterns.get(word).needs_order and not has_order:
            raise ValueError(
                f"`self_attention` {word}: a position only sees earlier positions, so an encoder cannot use this "
                "pattern. Expected a decoder-only model, or another pattern."
            )
    try:
        return made_by(**kind_options, **made_kinds, **options)
    except ValueError as error:
        text = re.sub("`(pattern|score)`", "`self_attention`", str(error))
        begin = "" if "`self_attention`" in text else f"`self_attention` {name}: "
        raise ValueError(begin + text) from None


def classes_of(name):
    """Returns the registered classes of a kind of self-attention, whose `HPARAMS` are its hyperparameters."""
    return [part.made_by for part in _parts(name).values()]


def spelled_kinds(text):
    """Parses `self_attention_type` into a constructor's argument, which only has the options that the text sets.

    Raises:
        ValueError: see `read_kinds` and `kinds_of`.
    """
    return kinds_config(kinds_of(read_kinds(text), fills=False))


@keras.saving.register_keras_serializable("t2t_lite")
class RelativeAttention(MultiHeadAttention):
    """Self-attention that adds a learned vector to each key j, chosen by its distance j - i from query i.

    score(i, j) = q_i · (k_j + a_clip(j - i)) / √d_k, with distances clipped to ±max_relative_position (Shaw et al.,
    equations 4 and 5). All heads share one table, as in tensor2tensor's `dot_product_attention_relative`
    (layers/common_attention.py). No tensor of shape [T, S, d] is created: the products of the queries and the 2k + 1
    vectors are widened to [T, T + S] and shifted row by row into place.

    Args:
        num_heads: int, h, the number of heads.
        max_relative_position: int, k, the largest distance that has its own vector. All longer distances share the
            vector of distance k.
        add_relative_to_values: bool, whether vectors for distances are also added to the values (equation 3), from a
            second table.
        **kwargs: other arguments of `MultiHeadAttention`.

    Raises:
        ValueError: see `MultiHeadAttention`; also if `max_relative_position` is less than 1.
    """

    def __init__(self, num_heads: int, max_relative_position: int, add_relative_to_values: bool = False, **kwargs):
        options = {"max_relative_position": max_relative_position, "add_relative_to_values": add_relative_to_values}
        super().__init__(num_heads, **kwargs | {"score": {"type": "relative", **options}})


@keras.saving.register_keras_serializable("t2t_lite")
class LeftRelativeAttention(MultiHeadAttention):
    """Self-attention that adds a learned vector per head to each earlier key j, chosen by its distance i - j from query
    i.

    score(i, j) = q_i · (k_j + e_(i - j)) / √d_k (Huang et al., equation 3), where e is a learned vector. The vector is
    zero at distances of `max_relative_position` and more, and for later keys, which a decoder does not see. The layer
    mirrors tensor2tensor's `dot_product_self_attention_relative_v2` (layers/common_attention.py). No tensor of shape
    [T, S, d] is created: the products of the queries and the vectors are shifted row by row into place.

    Args:
        num_heads: int, h, the number of heads.
        max_relative_position: int, k, the number of distances with a learned vector, from 0 to k - 1.
        add_relative_to_values: bool, whether vectors for distances are also added to the values, from a second table.
        heads_share_relative_embedding: bool, whether all heads share one table of vectors.
        **kwargs: other arguments of `MultiHeadAttention`.

    Raises:
        ValueError: see `RelativeAttention`.
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
    """Self-attention in which every position sees only a neighbourhood of r positions, centred on itself.

    Time and memory grow as r · n, not n² (paper, section 4 and table 1): queries are grouped into blocks, and each
    block attends to itself and its neighbours. At sentence boundaries, the neighbourhood is shifted inwards so that it
    always has r positions (as in Hassani et al. 2023, "Neighborhood Attention Transformer"). If r is at least n, this
    is full attention. With a causal mask, the neighbourhood is the last r positions up to and including the query. The
    sentence ends at its last unmasked position.

    All scores are still computed if the sequence is known to be short, if the call requests the attention weights or
    gives one mask per query, or if a subclass overrides `attend`.

    Args:
        num_heads: int, h, the number of heads.
        neighborhood: int, r, the number of positions that a query sees. If r is even, a position sees one more position
            on its left than on its right.
        **kwargs: the remaining arguments of `MultiHeadAttention`.

    Raises:
        ValueError: see `MultiHeadAttention`; also if `neighborhood` is less than 1, or a second sequence is given.
    """

    def __init__(self, num_heads: int, neighborhood: int, **kwargs):
        super().__init__(num_heads, **kwargs | {"pattern": {"type": "window", "neighborhood": neighborhood}})
