"""The words in pictures of attention: titles, columns, and the decoder's offset."""

from t2t_lite.errors import counted

TITLES = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "memory": "Cross-attention"}
# The meaning of queries and keys.
SIDES = {
    "encoder": ("from", "to"),
    "decoder": ("step that predicts", "target read so far"),
    "memory": ("step that predicts", "source"),
}
AXES = "Rows (queries): {}. Columns (keys): {}."  # of a matrix, with the two of `SIDES`
OFFSET = {
    "encoder": "",
    "decoder": "Shifted by one: the step that predicts a token has read the tokens before it.",
    "memory": "Shifted by one: the step that predicts a token has read the target's tokens before it.",
}


def caption(attention, layer=None, rows=None):
    """Returns the lines above a picture, a list of (text, size).

    Args:
        attention: SentenceAttention.
        layer: int, from 1; None: all.
        rows: list of int, the chosen queries, from 0; None: all.
    """
    count = len(attention.weights)
    lines = [(f"{TITLES[attention.kind]}, {f'layer {layer} of {count}' if layer else counted(count, 'layer')}", 14)]
    if rows is not None:
        names = list(dict.fromkeys(attention.queries[row] for row in rows))
        lines.append((f"{SIDES[attention.kind][0]}: {' '.join(names)}", 12))
    return lines


def note(head, query, key, weight):
    """Returns the tooltip of a weight."""
    return f"head {head}: {f'{query} → ' if query is not None else ''}{key} {weight:.3f}"
