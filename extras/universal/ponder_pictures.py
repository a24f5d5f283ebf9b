"""In how many steps a model thought about each piece of a text and its translation, as bars (Dehghani et al. 2019)."""

from t2t_lite.errors import UserError
from t2t_lite.visualization.drawing import Drawing, text_width
from t2t_lite.visualization.pictures import FAINT, color

_ROW, _STEP, _MARGIN, _PAD = 20, 24, 14, 6


def draw_ponder_steps(translation, hypothesis=0):
    """Returns a `Drawing`: a row for each piece, whose bar is as long as its steps; the source, then the output.

    Args:
        translation: `Translation` with ponder steps: see `Translator.translate`.
        hypothesis: int, the number of the output, from 0.

    Raises:
        UserError: it has no ponder steps.
    """
    output = translation.hypotheses[hypothesis]
    if output.ponder_steps is None:
        raise UserError("This translation has no ponder steps. Expected one of translate(…, return_ponder_steps=True).")
    source, target = output.ponder_steps
    # A stop string or the limit may have cut pieces off.
    sides = [("source", translation.source_tokens, source), ("output", output.tokens, target)]
    most = max([*source, *target], default=1)
    words = max((text_width(token) for _, tokens, _ in sides for token in tokens), default=0)
    title = "Steps of each piece"
    width = max(words + 2 * _PAD + _STEP * (most + 1), text_width(title, 14, None), 160)
    rows = sum(len(steps) + 2 for _, _, steps in sides)
    drawing = Drawing(width + 2 * _MARGIN, _ROW * (rows + 1) + 2 * _MARGIN, title)
    left, y = _MARGIN + words + _PAD, _MARGIN + _ROW / 2
    drawing.text(_MARGIN, y, title, None, size=14, bold=True)
    for number, (name, tokens, steps) in enumerate(sides):
        y += _ROW * (2 if number else 1.5)
        drawing.text(_MARGIN, y, f"{name}, mean {sum(steps) / max(len(steps), 1):.2f}", None, size=11, color="#555555")
        for token, count in zip(tokens, steps, strict=False):
            y += _ROW
            drawing.text(left - _PAD, y, token, anchor="right")
            drawing.rectangle(left, y - _ROW / 2 + 3, _STEP * most, _ROW - 6, FAINT, 0.4)
            note = f"{token}: {count} {'step' if count == 1 else 'steps'}"
            drawing.rectangle(left, y - _ROW / 2 + 3, _STEP * count, _ROW - 6, color(number), 1.0, note)
            drawing.text(left + _STEP * most + _PAD, y, str(count), size=11)
    return drawing
