"""Measures how sharply, how far and where attention heads attend, as a table and a picture."""

import dataclasses

import keras
import numpy as np

from t2t_lite.cli.console import Progress, table
from t2t_lite.decoding.command.text_files import input_lines
from t2t_lite.decoding.search.searcher import plan_batches
from t2t_lite.errors import LOGGER, UserError, counted, located
from t2t_lite.models.outputs import KINDS, attention_weights
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization import drawing
from t2t_lite.visualization.drawing import Drawing
from t2t_lite.visualization.sentence_attention import TITLES, attending_features, text_features, without_text

FAR = 5  # minimum distance, in positions, at which a key counts as far
SHARES = ("previous", "same", "next", "near", "far", "end")  # disjoint classes of keys
_CLEAR = 0.5  # the smallest share that determines a head's role
_BATCH_SIZE = 16
_MOST_TOKENS = 512  # maximum number of tokens per line; memory grows with the square of this number
_MEANING = {
    "near": f"2 to {FAR - 1} positions away",
    "far": f"{FAR} or more positions away",
    "end": "<EOS>, <begin> or [CLS]",
}


@dataclasses.dataclass(frozen=True)
class HeadRole:
    """The role of one attention head, averaged over all queries of a text.

    Attributes:
        kind: str: see `t2t_lite.models.outputs`.
        layer, head: int, counted from 1.
        entropy: float, nats; its exponential is the effective number of keys that a head attends to.
        distance: float, mean number of positions between query and key, weighted by attention, excluding "end" keys.
        shares: {name in `SHARES`: float}, shares that sum to 1. Positions of queries and keys are compared directly,
            even if they are in different sentences. A decoder query has the position of the token that the decoder read
            last.
    """

    kind: str
    layer: int
    head: int
    entropy: float
    distance: float
    shares: dict

    @property
    def role(self):
        """The name of the share that is at least one half, or "mixed"."""
        name = max(self.shares, key=self.shares.get)
        return name if self.shares[name] >= _CLEAR else "mixed"


def head_roles(model, ids, on_progress=None, features=None):
    """Measures all attention heads of a model on encoded sentences; returns a list of `HeadRole`.

    Args:
        model: see `t2t_lite.models.outputs`.
        ids: {feature: list of lists of int}, sentences without padding that end in EOS. A translation model has
            "inputs" and "targets"; if there are no "targets", only encoder heads are measured.
        on_progress: None, or a function called with the number of sentences of each finished batch.
        features: {feature: rank} of the model's inputs: see `read_attention`.

    Raises:
        UserError: there are no sentences, or the model does not expose attention weights.
    """
    count = len(next(iter(ids.values()), []))
    if not count:
        raise UserError("There are no sentences to measure heads on. Expected at least one nonblank line.")
    totals = {}
    lengths = [max(len(rows[at]) for rows in ids.values()) for at in range(count)]
    for batch in plan_batches(lengths, _BATCH_SIZE):
        batch_ids = {
            feature: keras.utils.pad_sequences([rows[at] for at in batch], padding="post")
            for feature, rows in ids.items()
        }
        weights_by_kind = attention_weights(model, without_text(features, len(batch)) | batch_ids)
        for kind, (query, key) in KINDS.items():
            if kind in weights_by_kind and query in batch_ids and key in batch_ids:
                queries, keys = batch_ids[query], batch_ids[key]
                for layer, weights in enumerate(weights_by_kind[kind], 1):
                    before = weights.shape[-1] - keys.shape[1]  # 1 if an encoder has an additional position
                    weights = np.asarray(weights, dtype=np.float32)[:, :, before:]
                    places = _places(queries, keys, kind == "decoder", before)
                    totals[kind, layer] = totals.get((kind, layer), 0) + _sums(weights, queries, *places)
        if on_progress:
            on_progress(len(batch))
    return [
        _role(kind, layer, head, of_head)
        for (kind, layer), sums in totals.items()
        for head, of_head in enumerate(sums, 1)
    ]


def roles_in_files(answerer, path, target_path=None):
    """Measures all attention heads of a trained model on a text file; returns a list of `HeadRole`.

    Args:
        answerer: the result of `t2t_lite.load`, such as a Translator.
        path: str, UTF-8, one sentence per line. Blank lines are skipped; so are lines of more than 512 tokens, or
            than the model can read, with a warning.
        target_path: str, a file with the translations; if None, a translation model's own translations are used.

    Raises:
        UserError: as for `head_roles`; or a file is missing, empty or not UTF-8; the files have different numbers of
            lines; or there is a `target_path` but the model does not translate.
    """
    names, paths = text_features(answerer.problem, target_path), [path, target_path][: 1 + bool(target_path)]
    sides = [input_lines(file_path) for file_path in paths]
    if len({*map(len, sides)}) > 1:
        raise UserError(
            f"{target_path} has {counted(len(sides[1]), 'line')}, but {path} has {len(sides[0])}. Expected the "
            "same number."
        )
    sides = list(zip(*[lines for lines in zip(*sides, strict=True) if all(map(str.strip, lines))], strict=True))
    ids = []
    for name, file_path, lines in zip(names, paths, sides, strict=False):
        with located(file_path):
            texts = _encoded_texts(answerer.problem, name, lines, sides[0]) if names[0] == "inputs" else lines
            ids.append([[*answerer.encoders[name].encode(text), EOS_ID] for text in texts])
    if sides and len(names) > len(sides):
        progress = Progress("translating", "sentences", len(sides[0]))
        translations = answerer.translate(sides[0], split_sentences="never", on_progress=progress.add)
        progress.done()
        ids.append([[*translation.hypotheses[0].ids, EOS_ID] for translation in translations])
    most = min(_MOST_TOKENS, getattr(answerer.model, "max_length", None) or _MOST_TOKENS)
    rows = [row for row in zip(*ids, strict=True) if max(map(len, row)) <= most]
    if num_dropped := len(ids[0]) - len(rows) if ids else 0:
        LOGGER.warning(f"{path}: skipped {counted(num_dropped, 'line')} with more than {most} tokens.")
    progress = Progress("measuring heads", "sentences", len(rows))
    ids_by_name = dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))
    with located(path):
        roles = head_roles(answerer.model, ids_by_name, progress.add, attending_features(answerer.problem))
    progress.done()
    return roles


def _encoded_texts(problem, name, lines, sources):
    """Returns lines of a feature of a translation problem in the form in which the model reads them."""
    if problem is None:
        return lines
    if name == "inputs":
        return [*map(problem.encoded_text, lines)]
    return [problem.encoded_target(line, source) for line, source in zip(lines, sources, strict=True)]


def _places(queries, keys, shifted, before):
    """Returns (distance from query to key [T, before + S], whether a key is the end or the beginning [B, before + S]).

    Args:
        queries, keys: int32 ids [B, T] and [B, S], padded with 0.
        shifted: bool, whether keys are the decoder's inputs, whose column 0 is the beginning.
        before: int, number of keys before the ids, which count as the beginning.
    """
    columns = np.arange(-before, keys.shape[1])
    distance = columns[None, :] - np.arange(queries.shape[1])[:, None]
    last = 0 if shifted else (keys != 0).sum(1, keepdims=True) - 1
    is_end = (columns[None, :] == last) | (columns < 0)
    return distance, np.broadcast_to(is_end, (len(keys), len(columns)))


def _sums(weights, queries, distance, end):
    """Returns the number of queries and the sums of their entropy, distance and shares, float64 [heads, 3 + shares].

    Args:
        weights: [B, heads, T, S].
        queries: int32 ids [B, T], padded with 0.
        distance, end: see `_places`.
    """
    weights = weights.astype(np.float64) * (queries != 0)[:, None, :, None]
    on_end = end[:, None, None, :]
    inner = np.where(on_end, 0.0, weights)
    entropy = -np.sum(weights * np.log(np.maximum(weights, 1e-30)), axis=(0, 2, 3))
    away = np.abs(distance)
    masks = {
        "previous": distance == -1,
        "same": distance == 0,
        "next": distance == 1,
        "near": (away > 1) & (away < FAR),
        "far": away >= FAR,
    }
    shares = [
        (inner * masks[name]).sum((0, 2, 3)) if name in masks else (weights * on_end).sum((0, 2, 3)) for name in SHARES
    ]
    total = weights.sum((0, 2, 3))
    return np.stack([total, entropy, (inner * away).sum((0, 2, 3)), *shares], axis=1)


def _role(kind, layer, head, sums):
    total, entropy, distance, *shares = sums
    shares = dict(zip(SHARES, (float(share / total) for share in shares), strict=True))
    inner = total * (1 - shares["end"])
    return HeadRole(kind, layer, head, float(entropy / total), float(distance / max(inner, 1e-9)), shares)


def role_table(roles):
    """Formats roles as a table with a header; returns a list of lines."""
    rows = [["kind", "layer", "head", "entropy", "distance", *SHARES, "role"]]
    for r in roles:
        shares = [f"{r.shares[name]:.2f}" for name in SHARES]
        rows.append([r.kind, str(r.layer), str(r.head), f"{r.entropy:.2f}", f"{r.distance:.1f}", *shares, r.role])
    return table(rows)


def draw_head_roles(roles, title=""):
    """Draws one bar per head, divided into the head's shares, next to its entropy and distance."""
    kinds = list(dict.fromkeys(role.kind for role in roles))
    columns = {kind: [role for role in roles if role.kind == kind] for kind in kinds}
    row, bar, label, numbers, margin = 18, 200, 112, 104, 14
    width = label + bar + numbers + 16
    layers = max(len({role.layer for role in column}) for column in columns.values())
    top = margin + 20 + 22 * 2 + 46
    height = top + row * max(map(len, columns.values())) + 8 * layers + margin
    drawing = Drawing(max(width * len(kinds), 560) + 2 * margin, height, title or "Roles of attention heads")
    drawing.text(margin, margin + 8, drawing.title, None, size=14, bold=True)
    for number, name in enumerate(SHARES):
        x, y = margin + 190 * (number % 3), margin + 24 + 22 * (number // 3)
        drawing.rectangle(x, y + 4, 12, 12, _share_color(name))
        drawing.text(x + 17, y + 10, _MEANING.get(name, f"{name} token"), None, size=11)
    for number, kind in enumerate(kinds):
        left = margin + width * number
        drawing.text(left, top - 32, TITLES[kind], None, size=12, bold=True)
        for x, words in ((52, "entropy"), (100, "distance")):
            drawing.text(left + label + bar + x, top - 12, words, size=10, anchor="right", color="#555555")
        for at, role in enumerate(columns[kind]):
            y = top + row * at + 8 * (role.layer - 1)
            layer = f"layer {role.layer}, " if role.head == 1 else ""
            drawing.text(left + label - 8, y + row / 2, f"{layer}head {role.head}", size=11, anchor="right")
            x = left + label
            for name in SHARES:
                share = bar * role.shares[name]
                drawing.rectangle(x, y + 2, share, row - 4, _share_color(name), 1, f"{name}: {role.shares[name]:.2f}")
                x += share
            for place, value in ((52, f"{role.entropy:.2f}"), (100, f"{role.distance:.1f}")):
                drawing.text(left + label + bar + place, y + row / 2, value, size=11, anchor="right")
    return drawing


def _share_color(name):
    return "#d0d0d0" if name == "end" else drawing.color(SHARES.index(name))
