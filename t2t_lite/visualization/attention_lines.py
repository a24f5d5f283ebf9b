"""Attention as lines between two columns of tokens (the paper's figures 3 to 5)."""

from t2t_lite.visualization import attention_words
from t2t_lite.visualization.drawing import Drawing, text_width
from t2t_lite.visualization.pictures import FAINT, color

SMALLEST = 0.01  # weights below are not drawn: they are invisible, and there are very many

_ROW, _MARGIN, _PAD = 20, 14, 6


def draw_lines(attention, layer, heads, rows=None):
    """Returns a `Drawing`: queries to the left, keys to the right, a line for each weight from `SMALLEST` on.

    A line's opacity is its weight, its color that of its head. If rows are chosen, each key is also shaded in the
    colors of the heads by its weight (its mean over the rows).

    Args:
        attention: SentenceAttention.
        layer: int, from 1.
        heads: list of int, from 1.
        rows: list of int, the queries whose lines are drawn, from 0; None: all.
    """
    headers = attention_words.SIDES[attention.kind]
    left, right = (
        max(map(text_width, [header, *labels])) + 2 * _PAD
        for header, labels in zip(headers, (attention.queries, attention.keys), strict=True)
    )
    count = max(len(attention.queries), len(attention.keys))
    gap = min(max(160, 8 * count), 480)
    lines = attention_words.caption(attention, layer, rows)
    width = max(left + gap + right, max(text_width(line, size, None) for line, size in lines), 34 * min(len(heads), 8))
    begin, end = _MARGIN + left, _MARGIN + left + gap
    top = _MARGIN + 20 * len(lines) + 24 * -(-len(heads) // 8) + 38
    note = attention_words.OFFSET[attention.kind]
    drawing = Drawing(width + 2 * _MARGIN, top + _ROW * count + _MARGIN + (24 if note else 0), lines[0][0])
    if note:
        drawing.width = max(drawing.width, text_width(note, 10, None) + 2 * _MARGIN)
        drawing.text(_MARGIN, top + _ROW * count + 16, note, None, size=10, color="#555555")
    for number, (line, size) in enumerate(lines):
        drawing.text(_MARGIN, _MARGIN + 8 + 20 * number, line, None, size=size, bold=not number)
    _legend(drawing, _MARGIN + 20 * len(lines), heads)
    for x, anchor, header in ((begin - _PAD, "right", headers[0]), (end + _PAD, "left", headers[1])):
        drawing.text(x, top - 18, header, None, size=11, anchor=anchor, color="#555555")

    weights = attention.weights[layer - 1]
    queries = range(len(attention.queries)) if rows is None else rows
    for row in [] if rows is None else rows:
        drawing.rectangle(_MARGIN, top + _ROW * row, left, _ROW, FAINT, 0.6)
    for number, head in enumerate(heads):
        of_head = weights[head - 1]
        for key, weight in enumerate([] if rows is None else of_head[rows].mean(0)):
            if weight >= SMALLEST:
                strip = right / len(heads)
                drawing.rectangle(
                    end + strip * number, top + _ROW * key, strip, _ROW, color(head - 1), weight,
                    attention_words.note(head, None, attention.keys[key], weight),
                )  # fmt: skip
        for row in queries:
            for key, weight in enumerate(of_head[row]):
                if weight >= SMALLEST:
                    drawing.line(
                        begin, _middle(top, row), end, _middle(top, key), color(head - 1), weight,
                        attention_words.note(head, attention.queries[row], attention.keys[key], weight),
                    )  # fmt: skip
    for at, label in enumerate(attention.queries):
        drawing.text(begin - _PAD, _middle(top, at), label, anchor="right")
    for at, label in enumerate(attention.keys):
        drawing.text(end + _PAD, _middle(top, at), label, halo=rows is not None)  # on the shades
    return drawing


def _middle(top, row):
    return top + _ROW * (row + 0.5)


def _legend(drawing, top, heads):
    """Draws a numbered box for each head, eight per line."""
    for at, head in enumerate(heads):
        x, y = _MARGIN + 34 * (at % 8), top + 24 * (at // 8)
        drawing.rectangle(x, y + 4, 12, 12, color(head - 1))
        drawing.text(x + 16, y + 10, str(head), size=11)
