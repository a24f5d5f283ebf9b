"""Draws attention weights as lines between tokens (as in figures 3 to 5 of the paper) or as matrices."""

from t2t_lite.decoding.texts import check_texts
from t2t_lite.errors import UserError, counted, nearest
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization import sentence_attention
from t2t_lite.visualization.drawing import FAINT, Drawing, color, is_right_to_left, text_width
from t2t_lite.visualization.sentence_attention import (
    MOST_TOKENS,
    attending_features,
    draw_map,
    read_attention,
    sentence_ids,
    text_features,
)

VIEWS = ("lines", "heat_map", "grid", "map")
SMALLEST_IN_GRID = 0.05  # smaller attention weights are not drawn in a grid
_MARGIN, _COLUMNS, _SPACE = 14, 4, 18
_PAPER = "#f4f4f4"
_SLANT = -50  # the angle of column labels in degrees, so that labels of adjacent columns do not overlap
SMALLEST = 0.01  # smaller weights, of which there are very many, would be invisible and are not drawn
_ROW, _PAD = 20, 6


def attend(answerer, text, target=None, most=MOST_TOKENS, **options):
    """Returns the attention weights of a trained model for a sentence, {kind: SentenceAttention}.

    Args:
        answerer: the result of `t2t_lite.load`. A Translator has the kinds "encoder", "decoder" and "memory".
        text: str, the source sentence.
        target: str, a translation, or a list of its ids, with EOS if it is complete. If None, a translation model
            translates the text itself. A language model whose problem has inputs also generates the continuation,
            such as an image from its class.
        most: int, the maximum number of tokens in each of the two texts.
        **options: options of `Translator.translate`, such as beam_size and alpha, or of `Generator.generate`.

    Raises:
        UserError: if a text is blank, or has more than `most` tokens or than the model can read; or if the model does
            not expose attention weights.
    """
    problem, encoders = answerer.problem, answerer.encoders
    first, *others = text_features(problem, target)
    (text,) = check_texts([text], "text")
    if first == "targets" and "inputs" in problem.features:
        best = answerer.generate([text], **options)[0]
        return attend_to_row(answerer, [*encoders["targets"].encode(problem.input_text(text)), *best.ids], most)
    prepared = problem.encoded_text(text) if problem and first == "inputs" else text
    texts, ids = {first: prepared}, {first: sentence_ids(encoders[first], prepared, "text", most)}
    for feature in others:
        if isinstance(target, list):
            ids[feature], target = target, encoders[feature].decode(target)
        elif target is None:
            options["split_sentences"] = "never"  # because a picture shows only one output
            best = answerer.translate([text], **options)[0].hypotheses[0]
            ids[feature], target = [*best.ids, *[EOS_ID] * best.ended], encoders[feature].decode(best.ids)
        elif problem and first == "inputs":
            target = problem.encoded_target(target, text)
        (texts[feature],) = check_texts([target], "target")
    return read_attention(answerer.model, encoders, texts, ids, attending_features(problem), most)


def attend_to_row(answerer, ids, most=MOST_TOKENS):
    """Returns the attention weights of a language model, as `attend` does, for a prompt and its continuation."""
    encoders, features = answerer.encoders, attending_features(answerer.problem) or {"targets": 2}
    texts = {"targets": encoders["targets"].decode(ids)}
    return read_attention(answerer.model, encoders, texts, {"targets": ids}, features, most)


def draw_attention(attention, layer=None, heads=None, word=None, view="lines", whole_words=False):
    """Draws the attention weights of one kind for a sentence.

    Args:
        attention: SentenceAttention, a value in the dict returned by `attend`.
        layer: int, counted from 1, as in the paper. Defaults to the second-to-last layer, as in the paper's figures. A
            "grid" shows all layers.
        heads: list of int, counted from 1. Defaults to all heads.
        word: str, the only word whose attention is drawn, as in figure 3. Defaults to all words.
        view: "lines" (two columns of tokens, joined by lines in the color of the head, which are darker for larger
            weights), "heat_map" (a matrix for each head), "grid" (a small matrix for each head of each layer) or "map"
            (an unlabelled image for each head, with up to 1,100 tokens).
        whole_words: bool, whether the pieces of a word are combined: see `SentenceAttention.whole_words`.

    Returns:
        A `Drawing`, or a `Plot` for a "map". A notebook displays the result, and `save(path)` writes it as SVG, PNG or
        PDF.

    Raises:
        UserError: if the layer, head, word or view does not exist.

    Example:
        >>> attention = attend(t2t_lite.Translator.load("train"), "The law is just.")       # doctest: +SKIP
        >>> draw_attention(attention["encoder"], heads=[5, 6], word="law").save("law.svg")  # doctest: +SKIP
    """
    if view not in VIEWS:
        raise UserError(f"view={view!r}: {nearest(view, VIEWS, end=' ')}Expected one of {', '.join(VIEWS)}.")
    number = default_layer(attention) if layer is None else layer
    _check("layer", number, len(attention.weights), attention.kind)
    count = len(attention.weights[number - 1])
    heads = list(range(1, count + 1)) if heads is None else list(heads)
    if not heads:
        raise UserError("heads is empty. Expected a list of heads, counted from 1, or None for all heads.")
    for head in heads:
        _check("head", head, count, attention.kind)
    attention = attention.whole_words() if whole_words else attention
    rows = None if word is None else attention.rows_of(word)
    if view == "map":
        if word is not None:
            raise UserError(f"word={word!r}: a map shows all tokens. Remove word, or choose another view.")
        return draw_map(attention, number, heads)
    if view == "grid":
        if layer is not None:
            raise UserError(f"layer={layer}: a grid shows all layers. Remove layer, or choose another view.")
        return draw_grid(attention, heads, rows)
    return (draw_lines if view == "lines" else draw_heat_maps)(attention, number, heads, rows)


def default_layer(attention):
    """Returns the second-to-last layer, counted from 1, or 1 if there is only one layer."""
    return max(1, len(attention.weights) - 1)


def _check(name, number, count, kind):
    if not 1 <= number <= count:
        raise UserError(f"{name}={number}: the model has {counted(count, name)} for {kind} attention, counted from 1.")


def draw_heat_maps(attention, layer, heads, rows=None):
    """Draws a matrix for each head, with a row per query, a column per key, and attention weights as opacity.

    Columns run from right to left if the keys are in a right-to-left script.

    Args:
        attention: SentenceAttention.
        layer: int, counted from 1.
        heads: list of int, counted from 1.
        rows: list of int, the queries to draw, counted from 0. Defaults to all queries.
    """
    queries = range(len(attention.queries)) if rows is None else rows
    cell = 18 if max(len(queries), len(attention.keys)) <= 60 else 12
    size = cell * 0.7
    labels = [attention.queries[row] for row in queries]
    left = max(text_width(label, size) for label in labels) + 6
    above = max(text_width(key, size) for key in attention.keys) * 0.77 + 30  # 0.77: the sine of the slant
    beside = max(text_width(key, size) for key in attention.keys) * 0.65  # 0.65: the cosine of the slant
    width = left + cell * len(attention.keys) + beside + _SPACE
    height = above + cell * len(labels) + _SPACE
    columns = min(_COLUMNS, len(heads))
    drawing, top = _begin_matrices(attention, layer, rows, width * columns, height * -(-len(heads) // columns))
    for number, head in enumerate(heads):
        x0 = _MARGIN + width * (number % columns) + left
        y0 = top + height * (number // columns) + above
        drawing.text(x0, y0 - above + 8, f"head {head}", size=12, bold=True)
        _matrix(drawing, attention, layer, head, queries, x0, y0, cell, cell, SMALLEST)
        for at, label in enumerate(labels):
            drawing.text(x0 - 5, y0 + cell * (at + 0.5), label, size=size, anchor="right")
        for at, key in enumerate(attention.keys):
            place = x0 + cell * (_column(attention, at) + 0.5)
            drawing.text(place, y0 - 6, key, size=size, angle=_SLANT)
    return drawing


def draw_grid(attention, heads, rows=None):
    """Draws a small matrix for each head (columns) of each layer (rows), leaving out attention weights below 0.05."""
    queries = range(len(attention.queries)) if rows is None else rows
    size = 110
    cell_width, cell_height = size / len(attention.keys), size / len(queries)
    layers = len(attention.weights)
    drawing, top = _begin_matrices(attention, None, rows, 70 + (size + 10) * len(heads), 24 + (size + 10) * layers)
    for number, head in enumerate(heads):
        drawing.text(_MARGIN + 70 + (size + 10) * number + size / 2, top + 8, f"head {head}", size=11, anchor="middle")
    for layer in range(1, layers + 1):
        y0 = top + 24 + (size + 10) * (layer - 1)
        drawing.text(_MARGIN + 60, y0 + size / 2, f"layer {layer}", size=11, anchor="right")
        for number, head in enumerate(heads):
            x0 = _MARGIN + 70 + (size + 10) * number
            _matrix(drawing, attention, layer, head, queries, x0, y0, cell_width, cell_height, SMALLEST_IN_GRID)
    return drawing


def _begin_matrices(attention, layer, rows, width, height):
    """Begins a drawing of matrices, whose caption also explains their axes: see `_begin`."""
    sides = sentence_attention.SIDES[attention.kind]
    lines = sentence_attention.caption(attention, layer, rows)
    lines.append((sentence_attention.AXES.format(*sides) + " The darker, the larger the weight.", 10))
    lines += [(note, 10) for note in [sentence_attention.OFFSET[attention.kind]] if note]
    return _begin(lines, width, height)


def _begin(lines, width, height):
    """Creates a drawing with a caption and room for the given size below; returns (drawing, y below the caption)."""
    top = _MARGIN + 20 * len(lines) + 8
    width = max(width, *(text_width(line, size, None) for line, size in lines))
    drawing = Drawing(width + 2 * _MARGIN, top + height + _MARGIN, lines[0][0])
    for number, (line, size) in enumerate(lines):
        drawing.text(_MARGIN, _MARGIN + 8 + 20 * number, line, None, size=size, bold=not number)
    return drawing, top


def _matrix(drawing, attention, layer, head, queries, x0, y0, cell_width, cell_height, smallest):
    """Draws the weights of one head, with tooltips. Small matrices have none, to keep the file small."""
    drawing.rectangle(x0, y0, cell_width * len(attention.keys), cell_height * len(queries), _PAPER)
    weights = attention.weights[layer - 1][head - 1]
    for at, row in enumerate(queries):
        for key, weight in enumerate(weights[row]):
            if weight >= smallest:
                note = ""
                if smallest == SMALLEST:
                    note = sentence_attention.note(head, attention.queries[row], attention.keys[key], weight)
                x = x0 + cell_width * _column(attention, key)
                drawing.rectangle(x, y0 + cell_height * at, cell_width, cell_height, color(head - 1), weight, note)


def _column(attention, key):
    """Returns the column of a key, counted from the left. Right-to-left text is drawn from right to left."""
    return len(attention.keys) - 1 - key if is_right_to_left(" ".join(attention.keys)) else key


def draw_lines(attention, layer, heads, rows=None):
    """Draws queries on the left and keys on the right, with a line for each weight of at least `SMALLEST`.

    The opacity of a line is its weight, and its color is the color of the head. If rows are chosen, each key is also
    shaded in the colors of the heads, by its mean weight over these rows.

    Args:
        attention: SentenceAttention.
        layer: int, counted from 1.
        heads: list of int, counted from 1.
        rows: list of int, the queries whose lines are drawn, counted from 0. Defaults to all queries.
    """
    headers = sentence_attention.SIDES[attention.kind]
    left, right = (
        max(map(text_width, [header, *labels])) + 2 * _PAD
        for header, labels in zip(headers, (attention.queries, attention.keys), strict=True)
    )
    count = max(len(attention.queries), len(attention.keys))
    gap = min(max(160, 8 * count), 480)
    begin, end = _MARGIN + left, _MARGIN + left + gap
    note = sentence_attention.OFFSET[attention.kind]
    width = max(left + gap + right, 34 * min(len(heads), 8), text_width(note, 10, None))
    above = 24 * -(-len(heads) // 8) + 30  # the legend and the headers
    height = above + _ROW * count + (24 if note else 0)
    drawing, top = _begin(sentence_attention.caption(attention, layer, rows), width, height)
    _legend(drawing, top - 8, heads)
    top += above
    if note:
        drawing.text(_MARGIN, top + _ROW * count + 16, note, None, size=10, color="#555555")
    for x, anchor, header in ((begin - _PAD, "right", headers[0]), (end + _PAD, "left", headers[1])):
        drawing.text(x, top - 18, header, None, size=11, anchor=anchor, color="#555555")

    weights = attention.weights[layer - 1]
    queries = range(len(attention.queries)) if rows is None else rows
    for row in [] if rows is None else rows:
        drawing.rectangle(_MARGIN, top + _ROW * row, left, _ROW, FAINT, 0.6)
    for number, head in enumerate(heads):
        head_weights = weights[head - 1]
        for key, weight in enumerate([] if rows is None else head_weights[rows].mean(0)):
            if weight >= SMALLEST:
                strip = right / len(heads)
                drawing.rectangle(
                    end + strip * number, top + _ROW * key, strip, _ROW, color(head - 1), weight,
                    sentence_attention.note(head, None, attention.keys[key], weight),
                )  # fmt: skip
        for row in queries:
            for key, weight in enumerate(head_weights[row]):
                if weight >= SMALLEST:
                    drawing.line(
                        begin, _middle(top, row), end, _middle(top, key), color(head - 1), weight,
                        sentence_attention.note(head, attention.queries[row], attention.keys[key], weight),
                    )  # fmt: skip
    for at, label in enumerate(attention.queries):
        drawing.text(begin - _PAD, _middle(top, at), label, anchor="right")
    for at, label in enumerate(attention.keys):
        drawing.text(end + _PAD, _middle(top, at), label, halo=rows is not None)  # keys are shaded if rows are chosen
    return drawing


def _middle(top, row):
    return top + _ROW * (row + 0.5)


def _legend(drawing, top, heads):
    """Draws the legend: a numbered box in the color of each head, eight per line."""
    for at, head in enumerate(heads):
        x, y = _MARGIN + 34 * (at % 8), top + 24 * (at // 8)
        drawing.rectangle(x, y + 4, 12, 12, color(head - 1))
        drawing.text(x + 16, y + 10, str(head), size=11)
