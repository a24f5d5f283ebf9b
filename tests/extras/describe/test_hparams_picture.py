"""The learning rate and the positional encoding, as numbers and as a picture."""

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.describe.hparams_picture import draw_hparams, position_encodings, schedule_points
from t2t_lite.visualization import drawing


def test_the_curve_is_the_papers_schedule():
    """Equation 3: d^-0.5 min(step^-0.5, step warmup^-1.5)."""
    hparams = registry.hparams("transformer_base_v1")
    steps, rates = schedule_points(hparams, 100_000)
    assert steps[0] == 1 and steps[-1] == 100_000 and 4000 in steps
    np.testing.assert_allclose(rates, 512**-0.5 * np.minimum(steps**-0.5, steps * 4000**-1.5), rtol=1e-5)
    assert steps[np.argmax(rates)] == 4000


def test_few_steps_and_a_constant_rate():
    hparams = registry.hparams("transformer_tiny").parse("learning_rate_schedule=constant,learning_rate_constant=0.5")
    steps, rates = schedule_points(hparams, 3)
    assert (steps.tolist(), rates.tolist()) == ([1, 2, 3], [0.5, 0.5, 0.5])


@pytest.mark.parametrize("layout", ["interleaved", "tensor2tensor"])
def test_the_image_is_the_models_encoding(layout):
    hparams = registry.hparams("transformer_tiny").parse(f"position_layout={layout}")
    found = position_encodings(hparams)
    assert found.shape == (128, 128)
    sine, cosine = (0, 1) if layout == "interleaved" else (0, 64)
    np.testing.assert_allclose(found[:, sine], np.sin(np.arange(128)), atol=1e-4)
    np.testing.assert_allclose(found[:, cosine], np.cos(np.arange(128)), atol=1e-4)


def test_the_highest_rate_is_named(monkeypatch):
    drawn = []
    monkeypatch.setattr(drawing, "write_picture", lambda path, figure: drawn.append((path, figure)))
    draw_hparams(registry.hparams("transformer_base_v1"), 20_000, "a.svg", "base")
    ((path, figure),) = drawn
    rates, image = figure.axes[:2]
    assert path == "a.svg" and [text.get_text() for text in rates.texts] == ["6.99e-04 at step 4,000"]  # 2048000^-0.5
    assert rates.texts[0].xy == pytest.approx((4000, 6.987e-4), rel=1e-3)
    assert (rates.get_xlabel(), rates.get_ylabel(), image.get_xlabel()) == ("step", "learning rate", "position")
    assert image.images[0].get_array().shape == (512, 128) and image.get_ylabel() == "dimension (interleaved)"


@pytest.mark.parametrize("model, count", [("transformer", 3), ("lstm_lm", 1), ("neural_gpu", 1)])
def test_only_the_positions_of_a_model_are_drawn(model, count, monkeypatch):
    figures = []
    monkeypatch.setattr(drawing, "write_picture", lambda path, figure: figures.append(figure))
    hparams = registry.hparams("transformer_tiny").of_model(registry.model(model))
    draw_hparams(hparams if count > 1 else hparams.parse("hidden_size=7"), 10, "a.svg")
    assert len(figures[0].axes) == count


@pytest.mark.slow
def test_pictures_are_equal_when_drawn_again(tmp_path):
    paths = [tmp_path / name for name in ("a.svg", "b.svg", "c.svg", "learned.pdf")]
    for path, changes in zip(paths, ("", "", "learning_rate_warmup_steps=20", "pos=emb"), strict=True):
        draw_hparams(registry.hparams("transformer_tiny").parse(changes), 50, str(path), "$title_")
    first, second, other, _ = (path.read_bytes() for path in paths)
    assert first == second != other


def test_a_schedule_that_makes_no_sense(tmp_path):
    hparams = registry.hparams("transformer_tiny").parse("learning_rate_schedule=single_cycle_cos_decai")
    with pytest.raises(UserError, match="Nearest: single_cycle_cos_decay"):
        draw_hparams(hparams, 10, str(tmp_path / "a.png"))
