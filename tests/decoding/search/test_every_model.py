"""Searches with every model that predicts texts: by full passes, of a source alone, compiled, in an ensemble."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.search.adapters import Ensemble, FullPass
from tests.decoding.search.same_results import SOURCES, assert_same_results, searched
from tests.models.every_model import DECODED, ROWS


@pytest.fixture(scope="module", params=DECODED)
def row(request):
    return ROWS[request.param]


@pytest.fixture(scope="module")
def model(row):
    return row.make()


@pytest.mark.few("transformer", "transformer_lm")
@pytest.mark.slow
def test_a_beam_is_that_of_full_passes_and_of_its_source_alone(model, eager):
    expected = searched(FullPass(model))
    assert_same_results(searched(model), expected)
    assert_same_results(searched(model, SOURCES[:1]), expected[:1])


@pytest.mark.long
def test_a_compiled_search_finds_the_same(model):
    found, expected = (searched(model, extra_length=20, compile=each) for each in (True, False))
    assert_same_results(found, expected)


@pytest.mark.slow
@pytest.mark.few("extended_neural_gpu")
def test_how_a_cache_grows_is_known_where_widths_are_not(model):
    """It grows by sizes that a graph knows: an axis as long as the inputs or the outputs would stay as it is."""

    def growth(inputs):
        memory = model.encode(inputs)
        shorter, longer = (tf.nest.flatten(model.init_cache(memory, length, 2)["beams"]) for length in (8, 10))
        axes = [zip(one.shape, other.shape, strict=True) for one, other in zip(shorter, longer, strict=True)]
        return [[b - a if None not in (a, b) else 0 for a, b in pairs] for pairs in axes]

    traced = []
    tf.function(lambda ids: traced.extend(growth(ids))).get_concrete_function(tf.TensorSpec([None, None], tf.int32))
    for inputs in ([[5, 1]], [[5, 9, 15, 7, 12, 18, 3, 15, 6, 4, 8, 1]]):
        assert growth(tf.constant(inputs)) == traced


@pytest.mark.long
def test_an_ensemble_of_two_models_has_the_mean_of_their_probabilities(row, model, eager):
    other = row.make()
    for weight in other.trainable_weights:
        weight.assign(weight + 0.1 * tf.random.stateless_normal(weight.shape, [1, 2]))
    ensemble, batch = Ensemble([model, other]), row.batch()
    probabilities = [tf.exp(Ensemble([each])(batch)).numpy() for each in (model, other)]
    expected = np.mean(probabilities, axis=0)
    assert np.abs(probabilities[0] - expected).max() > 1e-3
    np.testing.assert_allclose(tf.exp(ensemble(batch)), expected, atol=1e-5)
    assert_same_results(searched(ensemble), searched(FullPass(ensemble)))
