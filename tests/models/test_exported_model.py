"""Files of weights alone: settings that no shape tells, which a model of other settings compares with its own."""

import keras
import numpy as np
import pytest

from t2t_lite import layers
from t2t_lite.layers import dense
from t2t_lite.models import TransformerLM, exported_model
from tests.layers.equations import array

SMALL = {"num_layers": 1, "hidden_size": 8, "num_heads": 2, "filter_size": 16, "dropout": 0.0}
BATCH = {"targets": np.array([[3, 4, 5, 0], [6, 7, 8, 9]], "int32")}


def made(vocab_size=20, **others):
    model = TransformerLM(vocab_size, **SMALL | others)
    model.build()
    return model


class Outer(keras.Model):
    """Holds a model in several attributes; Keras comes to it by each."""

    def __init__(self, model):
        super().__init__()
        self.one, self.more = model, [model]
        self.built = True


def with_lora(rank, alpha):
    model = made()
    model.enable_lora(rank, lora_alpha=alpha)
    for weight in model.trainable_weights:
        weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    return model


def test_lora_of_another_factor_or_rank_is_refused_and_the_same_is_loaded(tmp_path):
    path, model = tmp_path / "lora.weights.h5", with_lora(2, 4)
    model.save_weights(path)
    same = with_lora(2, 4)
    same.load_weights(path)
    np.testing.assert_array_equal(array(same(BATCH)), array(model(BATCH)))
    for rank, alpha in ((2, 2), (1, 4)):
        with pytest.raises(
            ValueError, match=r"rank 2 and lora_alpha 4, but the layer's .*Expected enable_lora\(2, lora_a"
        ):
            with_lora(rank, alpha).load_weights(path)
    merged = made()
    merged.load_weights(path)
    np.testing.assert_allclose(array(merged(BATCH)), array(model(BATCH)), atol=1e-5)


def test_other_heads_are_refused_and_other_settings_named(tmp_path, caplog):
    path = tmp_path / "model.weights.h5"
    made().save_weights(path)
    with pytest.raises(ValueError, match=r"self_attention/attention: .* of a layer with num_heads=2 \(here 4\)"):
        made(num_heads=4).load_weights(path)
    caplog.clear()
    made(dropout=0.3).load_weights(path)
    assert not caplog.text
    made(activation="gelu").load_weights(path)
    assert "from a model with different settings: activation=relu (here gelu)" in caplog.text
    with pytest.raises(ValueError, match="could not be loaded"):  # of a shape, which Keras does not name
        made(vocab_size=9).load_weights(path)
    assert "different settings: vocab_size=20 (here 9)" in caplog.text
    outer = Outer(made(num_heads=4))
    Outer(made()).save_weights(path)
    with pytest.raises(ValueError, match=r"of a layer with num_heads=2 \(here 4\)"):
        outer.load_weights(path)
    inside = keras.Sequential([layers.FeedForward(16)])
    inside.build((None, None, 8))
    inside.save_weights(tmp_path / "layer.weights.h5")
    inside.load_weights(tmp_path / "layer.weights.h5")


def test_files_without_settings_are_loaded(tmp_path, monkeypatch):
    path, model = tmp_path / "old.weights.h5", made()
    monkeypatch.setattr(exported_model, "_settings", lambda model: {})
    monkeypatch.setattr(dense.Projections, "save_own_variables", keras.layers.Layer.save_own_variables)
    model.save_weights(path)
    monkeypatch.undo()
    other = made(num_heads=4)  # as ever: nothing tells
    other.load_weights(path)
    assert all(np.array_equal(array(a), array(b)) for a, b in zip(other.weights, model.weights, strict=True))


def test_a_function_goes_by_its_name(tmp_path, caplog):
    path = tmp_path / "model.weights.h5"
    made(activation=keras.activations.gelu).save_weights(path)
    made(activation="gelu").load_weights(path)
    assert not caplog.text
    made(activation=lambda x: x * 0.5).load_weights(path)
    assert "activation=gelu (here <lambda>)" in caplog.text
