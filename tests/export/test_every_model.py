"""A SavedModel that Keras exports of each model gives its logits, for batches of any shape."""

import numpy as np
import pytest
import tensorflow as tf

from tests.models.every_model import ROWS, logits_of


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_an_exported_model_gives_the_same(name, tmp_path):
    row = ROWS[name]
    model = row.make()
    model.export(tmp_path / "export", verbose=False)
    served = tf.saved_model.load(tmp_path / "export")
    batch = row.batch()
    for each in (batch, row.widened(batch), row.alone(batch, 0)):
        features = {feature: each[feature] for feature in model.needed_features}
        outputs = served.serve(features)
        found = outputs["targets"] if isinstance(outputs, dict) else outputs
        expected = logits_of(model, features)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
