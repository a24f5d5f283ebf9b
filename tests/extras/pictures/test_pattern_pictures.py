"""Pictures of which positions see which, read from the images of their axes."""

import types

import numpy as np
import pytest

from t2t_lite.extras.memory.transformer_memory import TransformerMemory
from t2t_lite.extras.pictures import pattern_pictures
from t2t_lite.extras.pictures.attention_patterns import attention_patterns
from t2t_lite.extras.pictures.pattern_pictures import draw_patterns, has_patterns, usual_length
from t2t_lite.models import Transformer, TransformerLM
from t2t_lite.settings.config import HParams

SIZES = {"hidden_size": 8, "filter_size": 8, "num_heads": 2}
LOCAL = {"type": "local_1d", "block_length": 2}
BLUE, GREY, WHITE = (0, 114, 178), (217, 217, 217), (255, 255, 255)


def drawn(plot):
    """Returns [(colors of the cells, axes)] of a picture."""
    found = [(axes.images[0].get_array(), axes) for axes in plot.figure.axes if axes.images]
    return [(np.asarray(colors), axes) for colors, axes in found]


@pytest.mark.slow
def test_each_cell_has_the_colour_of_what_it_is():
    model = TransformerLM(20, num_layers=4, self_attention=[LOCAL, "dot_product"], **SIZES)
    plot = draw_patterns(model, 6)
    for (colors, axes), pattern in zip(drawn(plot), attention_patterns(model, 6), strict=True):
        later = ~np.tri(6, dtype=bool)
        for cells, color in ((pattern.visible, BLUE), (~pattern.visible & ~later, GREY), (later, WHITE)):
            assert (colors[cells] == color).all()
        assert axes.get_xlabel().startswith("key: ") and axes.get_ylabel().startswith("query: ")
        assert pattern.name in axes.get_title()
    first, second = (axes.get_title() for _, axes in drawn(plot))
    assert "Decoder self-attention, layers 1, 3\n" in first and "a query sees 2.8 keys" in first
    assert "layers 2, 4\nfull\na query sees 3.5 keys" in second
    assert plot.content("png") == draw_patterns(model, 6).content("png")
    assert b"<svg" in plot.content("svg")


def test_a_memory_has_positions_below_0():
    model = TransformerMemory(20, num_layers=1, memory_length=3, **SIZES)
    ((colors, axes),) = drawn(draw_patterns(model, 4))
    assert colors.shape == (4, 7, 3) and (colors[0, :4] == BLUE).all() and (colors[0, 4:] == WHITE).all()
    assert tuple(axes.images[0].get_extent()) == (-3.5, 3.5, 3.5, -0.5) and "in the memory" in axes.get_xlabel()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: Transformer(20, num_encoder_layers=1, num_decoder_layers=1, **SIZES), False),
        (lambda: TransformerLM(20, num_layers=1, self_attention=LOCAL, **SIZES), True),
        (lambda: TransformerMemory(20, num_layers=1, memory_length=2, **SIZES), True),
        (object, False),
    ],
    ids=["full", "local", "memory", "no model"],
)
def test_only_what_differs_from_full_attention_is_worth_a_picture(model, expected):
    assert has_patterns(model()) == expected


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([2], "layer 2"), ([1, 2], "layers 1, 2"), ([3, 4, 5], "layers 3 to 5"), ([1, 3, 5], "layers 1, 3, 5")],
)
def test_layers_in_words(numbers, words):
    assert pattern_pictures._layers(numbers) == words


def test_as_many_positions_as_a_run_was_trained_on():
    problem = types.SimpleNamespace(max_length=lambda hparams: 9000)
    run = types.SimpleNamespace(problem=problem, hparams=HParams())
    assert usual_length(None) == 256 and usual_length(run) == 2048
    run.hparams.add_hparam("segment_length", 48)
    assert usual_length(run) == 48
