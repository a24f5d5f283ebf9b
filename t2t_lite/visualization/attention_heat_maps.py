"""Attention as matrices: a labelled one for each head, or a small one for each head of each layer."""

from t2t_lite.visualization import attention_words
from t2t_lite.visualization.attention_lines import SMALLEST
from t2t_lite.visualization.drawing import Drawing, is_right_to_left, text_width
from t2t_lite.visualization.pictures import color

SMALLEST_IN_GRID = 0.05  # weights below are not drawn in small matrices

_MARGIN, _COLUMNS, _SPACE = 14, 4, 18
_PAPER = "#f4f4f4"
_SLANT = -50  # degrees, so that labels of adjacent cells do not touch


def draw_heat_maps(attention, layer, heads, rows=None):
    """Returns a `Drawing`: a matrix for each head, a row per query, a column per key; a cell's opacity is its weight.

    Columns run from right to left if the keys are written so.

    Args:
        attention: SentenceAttention.
        layer: int, from 1.
        heads: list of int, from 1.
        rows: list of int, the queries that are drawn, from 0; None: all.
    """
    queries = range(len(attention.queries)) if rows is None else rows
    cell = 18 if max(len(queries), len(attention.keys)) <= 60 else 12
    size = cell * 0.7
    labels = [attention.queries[row] for row in queries]
    left = max(text_width(label, size) for label in labels) + 6
    above = max(text_width(key, size) for key in attention.keys) * 0.77 + 30  # the sine of the slant
    beside = max(text_width(key, size) for key in attention.keys) * 0.65  # its cosine
    width = left + cell * len(attention.keys) + beside + _SPACE
    height = above + cell * len(labels) + _SPACE
    columns = min(_COLUMNS, len(heads))
    drawing, top = _begin(attention, layer, rows, width * columns, height * -(-len(heads) // columns))
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
    """Returns a `Drawing`: a small matrix for each head (columns) of each layer (rows); weights from 0.05 on."""
    queries = range(len(attention.queries)) if rows is None else rows
    size = 110
    cell_width, cell_height = size / len(attention.keys), size / len(queries)
    layers = len(attention.weights)
    drawing, top = _begin(attention, None, rows, 70 + (size + 10) * len(heads), 24 + (size + 10) * layers)
    for number, head in enumerate(heads):
        drawing.text(_MARGIN + 70 + (size + 10) * number + size / 2, top + 8, f"head {head}", size=11, anchor="middle")
    for layer in range(1, layers + 1):
        y0 = top + 24 + (size + 10) * (layer - 1)
        drawing.text(_MARGIN + 60, y0 + size / 2, f"layer {layer}", size=11, anchor="right")
        for number, head in enumerate(heads):
            x0 = _MARGIN + 70 + (size + 10) * number
            _matrix(drawing, attention, layer, head, queries, x0, y0, cell_width, cell_height, SMALLEST_IN_GRID)
    return drawing


def _begin(attention, layer, rows, width, height):
    """Returns (drawing of at least the given size with its caption, y coordinate of its content)."""
    sides = attention_words.SIDES[attention.kind]
    lines = attention_words.caption(attention, layer, rows)
    lines.append((attention_words.AXES.format(*sides) + " The darker, the larger the weight.", 10))
    lines += [(note, 10) for note in [attention_words.OFFSET[attention.kind]] if note]
    top = _MARGIN + 20 * len(lines) + 8
    width = max(width, *(text_width(line, size, None) for line, size in lines))
    drawing = Drawing(width + 2 * _MARGIN, top + height + _MARGIN, lines[0][0])
    for number, (line, size) in enumerate(lines):
        drawing.text(_MARGIN, _MARGIN + 8 + 20 * number, line, None, size=size, bold=not number)
    return drawing, top


def _matrix(drawing, attention, layer, head, queries, x0, y0, cell_width, cell_height, smallest):
    """Draws the weights of one head; small matrices have no notes, which would make the file large."""
    drawing.rectangle(x0, y0, cell_width * len(attention.keys), cell_height * len(queries), _PAPER)
    weights = attention.weights[layer - 1][head - 1]
    for at, row in enumerate(queries):
        for key, weight in enumerate(weights[row]):
            if weight >= smallest:
                note = ""
                if smallest == SMALLEST:
                    note = attention_words.note(head, attention.queries[row], attention.keys[key], weight)
                x = x0 + cell_width * _column(attention, key)
                drawing.rectangle(x, y0 + cell_height * at, cell_width, cell_height, color(head - 1), weight, note)


def _column(attention, key):
    """Returns the column of a key, from the left, which is mirrored in right-to-left text."""
    return len(attention.keys) - 1 - key if is_right_to_left(" ".join(attention.keys)) else key
