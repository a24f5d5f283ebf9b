"""A model whose layers have costs returns them beside its logits, by the positions of its features."""

# Nearest tests of: t2t_lite/models/transformer_parts.py, t2t_lite/models/sequence_model.py
# Nearest tests of: t2t_lite/models/encoder_model.py, t2t_lite/settings/reserved_names.py

import keras
import numpy as np
import pytest

from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from tests.layers.backend import BACKEND
from tests.layers.equations import array
from tests.models.costly import BATCH, INPUTS, TARGETS, check_costs, layers_of, with_prices
from tests.models.in_keras import EAGER

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


@pytest.mark.slow
@pytest.mark.parametrize("labels", [TARGETS, {"targets": TARGETS}], ids=["labels", "labels by name"])
@pytest.mark.parametrize("by_name", [False, True], ids=["loss", "loss by name"])
def test_fit_minimizes_the_costs_and_leaves_padding_out(by_name, labels):
    model = with_prices(Transformer)(12, **layers_of(Transformer))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss={"targets": loss} if by_name else loss, **EAGER)
    outputs = model(BATCH)
    nats = keras.losses.sparse_categorical_crossentropy(TARGETS, array(outputs["targets"]), from_logits=True)
    expected = (array(nats) * (TARGETS != 0)).sum() / (TARGETS != 0).sum()
    expected += sum(array(cost).sum() / (BATCH[feature] != 0).sum() for feature, cost in outputs["costs"].items())
    np.testing.assert_allclose(model.evaluate(BATCH, labels, verbose=0, return_dict=True)["loss"], expected, rtol=1e-5)
    with pytest.raises(ValueError, match="`compute_loss` needs `x`"):
        model.compute_loss(y=labels, y_pred=outputs)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow, whose strategies sum the losses of replicas")
def test_costs_are_shared_out_over_replicas_as_the_loss_is():
    import tensorflow as tf

    model = with_prices(TransformerLM)(12, **layers_of(TransformerLM))
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    outputs = model({"targets": TARGETS})
    alone = model.compute_loss({"targets": TARGETS}, TARGETS, outputs)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice()).scope():
        of_two = model.compute_loss({"targets": TARGETS}, TARGETS, outputs)
    np.testing.assert_allclose(2 * array(of_two), array(alone), rtol=1e-6)
