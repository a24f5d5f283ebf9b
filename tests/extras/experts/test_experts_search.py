"""Searches with experts, whose cost a model returns beside its logits."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.search.adapters import Ensemble
from tests.decoding.search.test_every_model import assert_same_results, searched
from tests.models.every_model import ROWS


@pytest.mark.slow
def test_an_ensemble_of_a_model_and_itself_is_that_model(eager):
    """Whatever else the model returns."""
    row = ROWS["transformer_moe"]
    model, batch = row.make(), row.batch()
    assert_same_results(searched(Ensemble([model, model])), searched(model))
    log_probs = tf.nn.log_softmax(Ensemble([model])(batch))
    np.testing.assert_allclose(Ensemble([model, model])(batch), log_probs, atol=1e-5)
