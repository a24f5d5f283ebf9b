"""`encode` of a `keras.Input` is a layer of a functional model."""

import keras
import numpy as np
import pytest
from keras import ops, tree

from t2t_lite.layers import Results
from t2t_lite.models import Transformer, TransformerEncoder
from tests.layers.equations import array
from tests.models.costly import INPUTS, layers_of, with_prices
from tests.models.every_model import CORE, ROWS

IDS = keras.Input((None,), dtype="int32")


@keras.saving.register_keras_serializable("tests")
class TwiceAsLarge(TransformerEncoder):
    """Whose states are twice as large."""

    def encode(self, inputs, training=None, **options):
        states = super().encode(inputs, training, **options)
        return {**states, "hidden": 2 * states["hidden"]}


def small(kind=TransformerEncoder, **options):
    return kind(12, **{**layers_of(kind), "max_position": 16, **options})


def assert_same(found, expected):
    for one, other in zip(tree.flatten(found), tree.flatten(expected), strict=True):
        np.testing.assert_allclose(array(one), array(other), atol=1e-6)


@pytest.mark.slow
@pytest.mark.few("transformer", "transformer_encoder")
@pytest.mark.parametrize("name", CORE)
def test_a_functional_model_of_any_model_computes_what_encode_does_from_a_file_too(name, tmp_path):
    row = ROWS[name]
    model, ids = row.make(), row.batch()["inputs"]
    functional, expected = keras.Model(IDS, model.encode(IDS)), model.encode(ids)
    assert_same(functional(ids), expected)
    assert functional.count_params() == model.count_params()
    functional.save(tmp_path / "model.keras")
    assert_same(keras.models.load_model(tmp_path / "model.keras")(ids), expected)


@pytest.mark.parametrize("kind", [TransformerEncoder, TwiceAsLarge])
def test_two_texts_share_the_weights_of_one_model(kind, tmp_path):
    encoder, pair = small(kind), [keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")]
    model = keras.Model(pair, keras.layers.Dot(-1)([encoder.encode(ids)["hidden"][:, 0] for ids in pair]))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.count_params() == model.count_params() == encoder.count_params()
    first, second = (encoder.encode(ids)["hidden"][:, 0] for ids in (INPUTS, INPUTS[::-1]))
    for each in (model, loaded):
        assert_same(each([INPUTS, INPUTS[::-1]]), ops.sum(first * second, axis=-1, keepdims=True))


def test_the_model_itself_is_saved_and_loaded_as_before(tmp_path):
    encoder, other = small(), small()
    functional = keras.Model(IDS, encoder.encode(IDS))
    other.build()
    other.save_weights(tmp_path / "other.weights.h5")
    encoder.load_weights(tmp_path / "other.weights.h5")
    assert_same(functional(INPUTS), other.encode(INPUTS))
    encoder.save(tmp_path / "model.keras")
    assert_same(keras.models.load_model(tmp_path / "model.keras").encode(INPUTS), other.encode(INPUTS))


def test_options_of_encode_and_training():
    encoder = small(dropout=0.5)
    model = keras.Model(IDS, encoder.encode(IDS, return_attention_scores=True))
    assert_same(model(INPUTS), encoder.encode(INPUTS, return_attention_scores=True))
    states = [array(model(INPUTS, training=training)["hidden"]) for training in (False, True, True)]
    assert not np.allclose(states[0], states[1]) and not np.allclose(states[1], states[2])


@pytest.mark.parametrize("kind", [Transformer, TransformerEncoder])
def test_costs_of_layers_are_a_loss(kind):
    options = {"max_position": 16} if kind is TransformerEncoder else {}
    encoder = with_prices(kind)(12, **layers_of(kind), **options)
    model = keras.Model(IDS, encoder.encode(IDS)["hidden"])
    model(INPUTS, training=False)
    assert not model.losses
    model(INPUTS, training=True)
    (loss,) = model.losses
    mask = array(encoder.encode(INPUTS, results=(results := Results()))["mask"])
    np.testing.assert_allclose(array(loss), array(results.total("cost")).sum() / mask.sum(), rtol=1e-3)
