"""Bars of ponder steps: one for each piece, as long as its steps."""

import pytest

from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.errors import UserError
from t2t_lite.extras.universal.pondering import draw_ponder_steps


def test_bars_are_as_long_as_the_steps():
    output = Hypothesis(text="x y", tokens=["▁x", "▁y"], ids=[5, 6], told={"ponder_steps": ([3, 1, 4], [2, 4])})
    drawing = draw_ponder_steps(Translation((output,), source_tokens=["▁a", "▁b", "▁c"]))
    bars = [(note, width) for _, _, width, _, _, _, note in drawing.rectangles if note]
    assert [note for note, _ in bars] == [
        "▁a: 3 steps", "▁b: 1 step", "▁c: 4 steps", "▁x: 2 steps", "▁y: 4 steps"
    ]  # fmt: skip
    unit = bars[1][1]
    assert [width / unit for _, width in bars] == [3, 1, 4, 2, 4]
    texts = [text.text for text in drawing.texts]
    assert {"source, mean 2.67", "output, mean 3.00", "▁c"} <= {*texts}
    for x, _, width, *_ in drawing.rectangles:
        assert x >= 0 and x + width <= drawing.width
    assert max(text.y for text in drawing.texts) < drawing.height
    assert drawing.svg().startswith("<svg")


def test_a_translation_without_steps_has_no_picture():
    with pytest.raises(UserError, match="return_ponder_steps=True"):
        draw_ponder_steps(Translation())
