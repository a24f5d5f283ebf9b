"""Small models whose layers have costs, and what is checked of them."""

import keras
import numpy as np

from t2t_lite.models import Transformer
from t2t_lite.models.encoder_model import EncoderModel
from tests.layers.equations import array
from tests.layers.priced import Priced

SIZES = {"hidden_size": 8, "filter_size": 16, "num_heads": 2, "dropout": 0.0}
INPUTS = np.array([[3, 4, 1, 0, 0], [5, 6, 7, 8, 1]])
TARGETS = np.array([[5, 1, 0, 0], [7, 8, 9, 1]])
BATCH = {"inputs": INPUTS, "targets": TARGETS}


def with_prices(model_class):
    class Costly(model_class):
        def feed_forward(self, role, index, **options):
            return Priced(**options)

    return Costly


def layers_of(model_class):
    two = {"num_encoder_layers": 1, "num_decoder_layers": 2} if model_class is Transformer else {"num_layers": 2}
    return SIZES | two


def check_costs(model_class, own, batch):
    """Checks the costs of a model whose layers have some; `own`: dict, its options."""
    model = with_prices(model_class)(12, **layers_of(model_class), **own)
    outputs = model(batch)
    plain = model_class(12, **layers_of(model_class), **own)
    assert model.has_costs and not plain.has_costs
    plain.build()
    plain.set_weights(model.get_weights())
    expected, found = plain(batch), {name: x for name, x in outputs.items() if name != "costs"}
    expected = expected if isinstance(expected, dict) else {"targets": expected}
    for feature, logits in expected.items():
        np.testing.assert_array_equal(array(found[feature]), array(logits))
    features = ["inputs" if issubclass(model_class, EncoderModel) else "targets"]
    features = ["inputs", "targets"] if model_class is Transformer else features
    assert list(outputs["costs"]) == features
    for feature, cost in outputs["costs"].items():
        assert ((array(cost) > 0) == (batch[feature] != 0)).all()
    wider = {feature: np.pad(ids, ((0, 0), (0, 2))) for feature, ids in batch.items()}
    for feature, cost in model(wider)["costs"].items():
        np.testing.assert_allclose(array(cost)[:, :-2], array(outputs["costs"][feature]), atol=1e-6)
    spec = model.compute_output_spec({f: keras.KerasTensor(ids.shape, "int32") for f, ids in batch.items()})
    assert spec.keys() == outputs.keys() and spec["costs"].keys() == outputs["costs"].keys()
    for feature, cost in spec["costs"].items():
        assert cost.shape == batch[feature].shape and cost.dtype == "float32"
