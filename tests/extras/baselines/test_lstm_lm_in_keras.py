"""Language models of LSTMs as models of Keras: fit, with costs beside the loss, files and exports."""

import numpy as np
import pytest

from t2t_lite.extras.baselines.lstm_lm import LSTMLanguageModel
from t2t_lite.training import SmoothedCrossEntropy
from tests.layers.backend import BACKEND
from tests.layers.equations import array
from tests.models.in_keras import INPUTS, TARGETS, check_checkpoint, check_fit, check_without_targets

of_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow's files")
CLASSES = (TARGETS[:, 0] % 3 + 1).astype("int32")


@pytest.mark.long
def test_fit_trains_every_weight():
    small, loss = {"hidden_size": 8, "dropout": 0.0}, SmoothedCrossEntropy(0.0)
    check_fit(LSTMLanguageModel(20, **small), {"targets": TARGETS}, {"targets": TARGETS}, {"targets": loss})
    batch = {"inputs": INPUTS, "targets": CLASSES}
    check_fit(LSTMLanguageModel(20, 4, head="class", **small), batch, CLASSES[:, None], loss)


@pytest.mark.slow
@pytest.mark.parametrize("head", ["class", "real", "tag"])
def test_predictions_need_no_targets(head):
    check_without_targets(LSTMLanguageModel(20, 5, head=head, hidden_size=8, dropout=0.0), head)


@of_tensorflow
@pytest.mark.parametrize("builds_first", [True, False])
def test_checkpoints_of_tensorflow_hold_every_weight(builds_first, tmp_path):
    check_checkpoint(lambda: LSTMLanguageModel(20, hidden_size=8), builds_first, tmp_path)


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX, which compiles the step of fit")
def test_a_compiled_gradient_of_classes_is_that_of_single_operations():
    import jax

    model, labels = LSTMLanguageModel(20, 4, head="class", hidden_size=16, dropout=0.0), TARGETS[:, 0] % 3 + 1
    model.build()

    def loss(values):
        others = [weight.value for weight in model.non_trainable_variables]
        logits, _ = model.stateless_call(values, others, {"inputs": INPUTS, "targets": labels})
        return SmoothedCrossEntropy(0.0)(labels, logits)

    values = [weight.value for weight in model.trainable_variables]
    for one, other in zip(jax.grad(loss)(values), jax.jit(jax.grad(loss))(values), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@of_tensorflow
@pytest.mark.slow
def test_what_the_interpreter_cannot_run_is_said(tmp_path):
    model = LSTMLanguageModel(20, hidden_size=8)
    with pytest.warns(UserWarning, match="model.tflite.*FlexTensorList.*Flex delegate"):
        model.export(str(tmp_path / "model.tflite"), format="litert", verbose=False)


@of_tensorflow
@pytest.mark.long
def test_costs_are_left_out_of_an_export(tmp_path):
    import tensorflow as tf

    model, targets = LSTMLanguageModel(20, hidden_size=8), np.array([[3, 4, 5], [6, 0, 0]], "int32")
    model.export(tmp_path / "export", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "export")
    served = loaded.serve({"targets": targets})
    assert [*served] == ["targets"]
    np.testing.assert_allclose(served["targets"], array(model({"targets": targets})["targets"]), atol=1e-5)
    assert set(model({"targets": targets})) == {"targets", "costs"}
