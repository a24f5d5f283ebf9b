"""Attention as an image for each head, read from the images of its axes; and what it is drawn of."""
# Nearest tests of: t2t_lite/visualization/sentence_attention.py, t2t_lite/visualization/attention_pictures.py

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.visualization.attention_pictures import attend, attend_to_row, draw_attention
from t2t_lite.visualization.sentence_attention import SMALLEST_IN_MAP, SentenceAttention, Tokens

GREY = (0.85, 0.85, 0.85)


def made(*weights):
    weights = np.array(weights, np.float32)
    sides = Tokens("", ("a",) * weights.shape[-1], ())
    labels = ["a"] * weights.shape[-1]
    return SentenceAttention("decoder", labels, labels, [weights], sides, sides)


def images(plot):
    return {
        axes.get_title(): (np.asarray(axes.images[0].get_array()), axes) for axes in plot.figure.axes if axes.images
    }


def test_what_is_not_seen_is_grey_and_larger_weights_are_darker():
    head = [[1, 0, 0], [0.9, 0.1, 0], [SMALLEST_IN_MAP / 2, 0.01, 0.99]]
    found = images(draw_attention(made(head, np.eye(3)), heads=[1, 2], view="map"))
    assert [*found] == ["head 1", "head 2"]
    colors, axes = found["head 1"]
    assert all(tuple(colors[row, key]) == GREY for row, key in ((0, 1), (0, 2), (1, 2)))
    assert tuple(colors[2, 0]) == (1, 1, 1), "seen, but next to nothing"
    dark = -colors.sum(-1)
    assert dark[0, 0] >= dark[2, 2] >= dark[1, 0] > dark[1, 1] > dark[2, 1] > dark[2, 0]
    assert axes.get_xlabel() == "key: target read so far" and axes.get_ylabel() == "query: step that predicts"
    assert [*images(draw_attention(made(head, head), heads=[2], view="map"))] == ["head 2"]


def test_a_map_shows_all_tokens():
    with pytest.raises(UserError, match=r"a map shows all tokens"):
        draw_attention(made(np.eye(3)), word="a", view="map")


@pytest.mark.long
def test_an_image_model_s_row_is_its_class_and_what_it_makes_of_it(eager, monkeypatch):
    pytest.importorskip("t2t_lite.extras.images")
    pytest.importorskip("t2t_lite.extras.insights")
    from tests.extras.insights.media_models import image_generator

    generator, generations = image_generator(), []
    generate = generator.generate
    monkeypatch.setattr(generator, "generate", lambda texts: generations.extend(generate(texts)) or generations)
    (kind, one), *others = attend(generator, "cat").items()
    ((ids,),) = [[generation.ids for generation in generations]]
    assert (kind, others) == ("decoder", []) and one.queries == ["cat", *generator.encoders["targets"].pieces(ids)]
    expected = generator.model.attention_weights({"targets": np.array([[3, *ids]], "int32")})["decoder"]
    for layer, weights in enumerate(expected):
        np.testing.assert_allclose(one.weights[layer], weights[0], atol=1e-6)
    with pytest.raises(UserError, match=r"text: 25 tokens.* 20\."):
        attend_to_row(generator, [3, *ids], most=20)
