"""A model whose layers have costs returns them beside its logits, by the positions of its features."""

import keras
import numpy as np
import pytest

from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from t2t_lite.models.encoder_model import EncoderModel
from tests.layers.equations import array
from tests.layers.test_context import Priced

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


CASES = {
    "seq2seq": (Transformer, {}, BATCH),
    "language model": (TransformerLM, {}, {"targets": TARGETS}),
    "prompts": (TransformerLM, {}, BATCH),
    "encoder": (TransformerEncoder, {"max_position": 16}, {"inputs": INPUTS, "targets": INPUTS * (INPUTS > 5)}),
    "sentence": (TransformerEncoder, {"max_position": 16, "sentence_classes": 2}, {"inputs": INPUTS}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.few("seq2seq", "prompts", "encoder", "sentence")
@pytest.mark.parametrize("name", CASES)
def test_costs_are_of_the_positions_of_their_features(name):
    check_costs(*CASES[name])


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


@pytest.mark.slow
def test_fit_minimizes_the_costs_and_leaves_padding_out():
    model = with_prices(Transformer)(12, **layers_of(Transformer))
    model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    outputs = model(BATCH)
    nats = keras.losses.sparse_categorical_crossentropy(TARGETS, array(outputs["targets"]), from_logits=True)
    expected = (array(nats) * (TARGETS != 0)).sum() / (TARGETS != 0).sum()
    expected += sum(array(cost).sum() / (BATCH[feature] != 0).sum() for feature, cost in outputs["costs"].items())
    np.testing.assert_allclose(model.evaluate(BATCH, TARGETS, verbose=0), expected, rtol=1e-5)
