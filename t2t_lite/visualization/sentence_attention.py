"""The attention weights of a model for one sentence, with tokens and captions for pictures."""

import dataclasses
import re

import numpy as np

from t2t_lite import registry
from t2t_lite.decoding.alignment import piece_words
from t2t_lite.errors import UserError, counted, located
from t2t_lite.models.outputs import KINDS, attention_weights
from t2t_lite.text.offsets import piece_spans
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization import drawing
from t2t_lite.visualization.drawing import Plot

BEGIN, END = "<begin>", "<EOS>"  # the name of END is from figures 3 to 5 of the paper
ROW = "[CLS]"  # an encoder's additional position, by BERT's name
MOST_TOKENS = 200  # in the source or in the target; larger pictures would be unreadable
TITLES = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "memory": "Cross-attention"}
# The labels for (queries, keys) in captions, by kind of attention.
SIDES = {
    "encoder": ("from", "to"),
    "decoder": ("step that predicts", "target read so far"),
    "memory": ("step that predicts", "source"),
}
AXES = "Rows (queries): {}. Columns (keys): {}."  # the caption of matrices, filled in from `SIDES`
OFFSET = {
    "encoder": "",
    "decoder": "Shifted by one: the step that predicts a token has read the tokens before it.",
    "memory": "Shifted by one: the step that predicts a token has read the target's tokens before it.",
}
MOST_POSITIONS = 1100  # the largest size of a map, enough for an image of 1,024 ids with its class and end
SMALLEST_IN_MAP = 1e-4  # the smallest weight on the color scale of a map
_COLUMNS, _SIZE = 2, 6.5  # size of a head's axes, in inches
_HIDDEN, _PAPER = (0.85, 0.85, 0.85), (1, 1, 1)


@dataclasses.dataclass(frozen=True)
class Tokens:
    """The tokens on one side (the queries or the keys) of an attention matrix.

    Attributes:
        text: str, the sentence.
        pieces: tuple of str, the pieces of the sentence, in order.
        spans: tuple of (start, end), the characters in the text that each piece covers.
        begin: str, the label of the position before the pieces: `BEGIN` (the beginning of the target) or `ROW`; "" if
            there is no such position.
        ends: bool, whether `END` (the end of the sentence) comes after the pieces.
    """

    text: str
    pieces: tuple
    spans: tuple
    begin: str = ""
    ends: bool = True

    @property
    def labels(self):
        """The labels of the rows or columns of the weights, a list of str."""
        return [*filter(None, [self.begin]), *self.pieces, *[END] * self.ends]

    def words(self):
        """Returns a list of (word, positions of its pieces), including `begin` and `END`.

        Pieces after the last word belong to the last word.
        """
        texts, groups, before = self.text.split() or [""], {}, [0] if self.begin else []
        for at, number in enumerate(piece_words(self.text, self.spans), len(before)):
            groups.setdefault(len(texts) - 1 if number is None else number, []).append(at)
        words = [(texts[number], positions) for number, positions in groups.items()]
        last = len(before) + len(self.pieces)
        return [*[(self.begin, before)] * len(before), *words, *[(END, [last])] * self.ends]


@dataclasses.dataclass(frozen=True)
class SentenceAttention:
    """The attention weights of one kind for one sentence.

    Attributes:
        kind: "encoder", "decoder" or "memory": see `t2t_lite.models.outputs`.
        queries: list of str, the attending tokens, or the tokens that the decoder's steps predict.
        keys: list of str, the attended tokens, or the tokens that the decoder has read, starting with `BEGIN`. An
            encoder's queries and keys start with `ROW`.
        weights: list of float32 [heads, queries, keys], one per layer.
        query_tokens, key_tokens: the `Tokens` of the queries and of the keys.
    """

    kind: str
    queries: list
    keys: list
    weights: list
    query_tokens: Tokens = dataclasses.field(repr=False)
    key_tokens: Tokens = dataclasses.field(repr=False)

    def whole_words(self):
        """Returns the attention between words, summed over each key's pieces and averaged over each query's pieces."""
        queries, keys = self.query_tokens.words(), self.key_tokens.words()
        mean, total = (_groups(words, len(side)) for words, side in ((queries, self.queries), (keys, self.keys)))
        mean = mean / mean.sum(1, keepdims=True)
        weights = [(mean @ layer @ total.T).astype(np.float32) for layer in self.weights]
        names = [[word for word, _ in words] for words in (queries, keys)]
        return dataclasses.replace(self, queries=names[0], keys=names[1], weights=weights)

    def rows_of(self, word):
        """Returns the query rows of all occurrences of a word: the rows of its pieces, or its row after `whole_words`.

        Args:
            word: str, with or without the punctuation around it, or a piece.

        Raises:
            UserError: if the word is not in the sentence.
        """
        words = self.query_tokens.words()
        if [name for name, _ in words] == self.queries:
            words = [(name, [row]) for row, name in enumerate(self.queries)]
        pieces = [(name, [row]) for row, name in enumerate(self.queries)]
        for names, same in ((words, str), (pieces, str), (words, _bare)):
            if rows := [row for name, positions in names if same(name) == same(word) for row in positions]:
                return rows
        raise UserError(f"word={word!r} is not in the sentence. Expected one of: {' '.join(w for w, _ in words)}")


def read_attention(model, encoders, texts, ids=None, features=None, most=MOST_TOKENS):
    """Returns a model's attention weights for a sentence, {kind: SentenceAttention}.

    Only kinds whose texts are given are returned.

    Args:
        model: a model that exposes attention weights: see `t2t_lite.models.outputs`.
        encoders: {feature: TextEncoder}.
        texts: {feature: str}, with "inputs" and "targets" for a translation model, or only one of these for other
            models.
        ids: {feature: list of int}, such as ids from a search, without padding. Texts without ids are encoded.
        features: {feature: rank}, the inputs of the model, which are set to 0 if they have no text. Defaults to
            "inputs" and "targets" of rank 2.
        most: int, the largest number of tokens per text.

    Raises:
        UserError: if the model does not expose attention weights, or a text is blank, or has more than `most` tokens or
            than the model can read.
    """
    ids = dict(ids or {})
    for feature, text in texts.items():
        name = "target" if feature == "targets" and "inputs" in texts else "text"
        row = ids.get(feature) or sentence_ids(encoders[feature], text, name, most)
        ids[feature] = _checked_length(row, name, most)
    check_positions(model, ids)
    nothing = without_text(features, 1)
    weights_by_kind = attention_weights(model, nothing | {f: np.array([row], "int32") for f, row in ids.items()})
    attention = {}
    for kind, (query, key) in KINDS.items():
        if kind in weights_by_kind and query in ids and key in ids:
            weights = [np.asarray(layer, dtype=np.float32)[0] for layer in weights_by_kind[kind]]
            has_row = weights[0].shape[-1] > len(ids[key])  # an encoder has an additional position
            begins = (ROW, ROW) if has_row else ("", BEGIN if kind == "decoder" else "")
            sides = [_tokens(encoders, texts, ids, *side) for side in zip((query, key), begins, strict=True)]
            attention[kind] = SentenceAttention(kind, sides[0].labels, sides[1].labels, weights, *sides)
    return attention


def text_features(problem, target=None):
    """Returns the features that are texts: both sides of a translation, or one feature for other tasks.

    Without a problem, translation is assumed. A language model reads its inputs and targets as one sequence, which
    counts as the targets.

    Raises:
        UserError: if a `target` is given, but the problem is not a translation.
    """
    answered_by = "Translator" if problem is None else registry.task_of(problem).answered_by
    if answered_by == "Translator":
        return ["inputs", "targets"]
    if target is not None:
        raise UserError(f"A model for the task {problem.task} does not translate. Remove the target.")
    return ["inputs" if "inputs" in problem.features and answered_by != "Generator" else "targets"]


def attending_features(problem):
    """Returns the inputs that a problem's model needs for pictures, {feature: rank}, or None if there is no problem.

    A language model only reads its targets: see `text_features`.
    """
    if problem is None:
        return None
    is_in_one_row = registry.task_of(problem).answered_by == "Generator"
    return {"targets": problem.features["targets"]} if is_in_one_row else problem.features


def without_text(features, rows):
    """Returns {feature: int32 zeros [rows, 2], or [rows] for rank 1}; for `features`, see `read_attention`."""
    features = {"inputs": 2, "targets": 2} if features is None else features
    return {name: np.zeros((rows, 2)[:rank], "int32") for name, rank in features.items()}  # Keras warns about length 1


def sentence_ids(encoder, text, name, most=MOST_TOKENS):
    """Returns the ids of a text, with EOS. Raises `UserError` if the text is blank or has more than `most` ids.

    The messages begin with the text's `name`, which is "text" or "target".
    """
    with located(name):
        ids = encoder.encode(text) if text.strip() else []
    if not ids:
        raise UserError(f"{name} is blank. Expected a sentence.")
    return _checked_length([*ids, EOS_ID], name, most)


def _checked_length(ids, name, most):
    if len(ids) > most:
        raise UserError(f"{name}: {counted(len(ids), 'token')}, EOS included. A picture shows at most {most:,}.")
    return ids


def check_positions(model, ids):
    """Raises `UserError` if a model has too few positions for {feature: list of ids}; see `Searcher` for the limits."""
    most = getattr(model, "max_length", None)
    lengths = {"target" if name == "targets" and "inputs" in ids else "text": len(row) for name, row in ids.items()}
    if getattr(model, "joins_inputs", False):
        lengths = {" and ".join(lengths): sum(lengths.values())}
    for name, length in lengths.items():
        if most is not None and length > most:
            raise UserError(f"{name}: {counted(length, 'token')}. The model reads at most {most:,}.")


def _tokens(encoders, texts, ids, feature, begin):
    """Returns the `Tokens` of a feature; the decoder's inputs are shifted right and lack the last token."""
    ends, shifted = ids[feature][-1] == EOS_ID, begin == BEGIN
    visible = ids[feature][: len(ids[feature]) - (ends or shifted)]
    pieces, spans = encoders[feature].pieces(visible), piece_spans(encoders[feature], visible, texts[feature])
    return Tokens(texts[feature], tuple(pieces), tuple(spans), begin, ends=ends and not shifted)


def _groups(words, count):
    """Returns a matrix, float32 [words, count], which is 1 where a position belongs to a word and 0 elsewhere."""
    groups = np.zeros((len(words), count), np.float32)
    for row, (_, positions) in enumerate(words):
        groups[row, positions] = 1
    return groups


def _bare(word):
    """Normalizes a word for comparison: lowercases it and strips characters that are not alphanumeric from its ends."""
    return re.sub(r"^[\W_]+|[\W_]+$", "", word).lower() or word


def caption(attention, layer=None, rows=None):
    """Returns the lines of the caption above a picture, a list of (text, size).

    Args:
        attention: SentenceAttention.
        layer: int, counted from 1, or None for all layers.
        rows: list of int, the chosen queries, counted from 0, or None for all queries.
    """
    count = len(attention.weights)
    lines = [(f"{TITLES[attention.kind]}, {f'layer {layer} of {count}' if layer else counted(count, 'layer')}", 14)]
    if rows is not None:
        names = list(dict.fromkeys(attention.queries[row] for row in rows))
        lines.append((f"{SIDES[attention.kind][0]}: {' '.join(names)}", 12))
    return lines


def note(head, query, key, weight):
    """Returns the tooltip for an attention weight."""
    return f"head {head}: {f'{query} → ' if query is not None else ''}{key} {weight:.3f}"


def draw_map(attention, layer, heads):
    """Draws an image for each head, with a row per query and a column per key; returns a `Plot`.

    Larger weights are darker, on a logarithmic scale. Keys that a query does not see are grey, because the weight of
    such keys is always 0.

    Args:
        attention: SentenceAttention.
        layer: int, counted from 1.
        heads: list of int, counted from 1.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    columns = min(_COLUMNS, len(heads))
    rows = -(-len(heads) // columns)
    figure = drawing.new_figure(_SIZE * columns + 1, _SIZE * rows + 0.6)
    grid = figure.subplots(rows, columns, squeeze=False)
    query, key = SIDES[attention.kind]
    scale = ScalarMappable(LogNorm(SMALLEST_IN_MAP, 1), colormaps["Blues"])
    for axes, head in zip(grid.flat, heads, strict=False):
        weights = np.asarray(attention.weights[layer - 1][head - 1], np.float32)
        colors = scale.to_rgba(np.maximum(weights, SMALLEST_IN_MAP))[..., :3]
        colors[weights < SMALLEST_IN_MAP] = _PAPER
        colors[weights == 0] = _HIDDEN
        axes.imshow(colors)
        axes.set(xlabel=f"key: {key}", ylabel=f"query: {query}", title=f"head {head}")
    for axes in [*grid.flat][len(heads) :]:
        axes.set_axis_off()
    figure.colorbar(scale, ax=grid, label="weight", shrink=0.8)
    (title, _), *_ = caption(attention, layer)
    figure.suptitle(f"{title}. Positions start at 0. Grey: masked.", parse_math=False)
    return Plot(figure)
