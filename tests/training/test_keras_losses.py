"""SmoothedCrossEntropy and MaskedAccuracy as Keras' own: masks, weights, reductions; on every backend."""

# Nearest tests of: t2t_lite/training/losses.py

import itertools

import keras
import numpy as np
import pytest

from t2t_lite.training import MaskedAccuracy, SmoothedCrossEntropy
from tests.layers.backend import gradients
from tests.layers.equations import array

RNG = np.random.default_rng(0)
TARGETS = np.array([[3, 4, 1, 0], [5, 1, 0, 0], [2, 2, 6, 1]], "int32")
LOGITS = RNG.normal(size=(3, 4, 7)).astype("float32")
LOGITS[0, 1] = LOGITS[2, 3] = 0.0  # `carrying_a_mask` hides these
HIDDEN = (LOGITS == 0).all(-1)
WEIGHTS = {
    "none": None,
    "rows": np.array([2.0, 0.0, 0.5], "float32"),
    "column": np.array([[2.0], [0.0], [0.5]], "float32"),
    "tokens": RNG.uniform(size=(3, 4)).astype("float32"),
}
REDUCTIONS = ["sum_over_batch_size", "mean", "sum", "mean_with_sample_weight", "none", None]


def carrying_a_mask(logits):
    return keras.layers.Masking()(logits)


def token_losses(smoothing):
    """-Σ q log p less its smallest value, with q = 1 - ε on the label and ε / (V - 1) elsewhere."""
    log_p = LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True))
    q = np.where(np.eye(7)[TARGETS], 1 - smoothing, smoothing / 6)
    return (q * (np.log(np.where(q > 0, q, 1)) - log_p)).sum(-1)


def reduced(losses, weights, mask, reduction):
    """What keras.losses.Loss documents, written out."""
    weights = np.ones((3, 1)) if weights is None else weights.reshape(3, -1)
    weighted = losses * weights * mask
    if reduction in ("none", None):
        return weighted
    tokens = {"sum": 1, "mean_with_sample_weight": (weights * mask).sum()}.get(reduction, mask.sum())
    return weighted.sum() / tokens


@pytest.mark.parametrize("carried", [False, True], ids=["plain", "carried_mask"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_masks_weights_and_reductions(weights, reduction, carried):
    mask = (TARGETS != 0) & ~(HIDDEN if carried else False)
    logits = carrying_a_mask(LOGITS) if carried else LOGITS
    found = SmoothedCrossEntropy(0.1, reduction)(TARGETS, logits, weights)
    np.testing.assert_allclose(array(found), reduced(token_losses(0.1), weights, mask, reduction), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_without_smoothing_it_is_keras_own(reduction):
    own = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0, reduction=reduction)
    for weights, carried in itertools.product((None, WEIGHTS["tokens"]), (False, True)):
        logits = carrying_a_mask(LOGITS) if carried else LOGITS
        ours = SmoothedCrossEntropy(0.0, reduction)(TARGETS, logits, weights)
        # A copy: with PyTorch Keras multiplies weights in place.
        expected = own(TARGETS.astype("float32"), logits, None if weights is None else weights.copy())
        np.testing.assert_allclose(array(ours), array(expected), rtol=1e-5, atol=1e-6)


def test_a_row_of_weight_0_has_no_gradient():
    logits = keras.Variable(LOGITS)
    [gradient] = gradients(lambda: SmoothedCrossEntropy(0.1)(TARGETS, logits, WEIGHTS["rows"]), [logits])
    assert (np.abs(gradient).sum(-1) > 0).tolist() == [[True, True, True, False], [False] * 4, [True] * 4]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_classes_are_not_smoothed(dtype):
    """Class 0 can't be: its logit is that of `ClassHead`, and a share of it would be a loss of 10^8."""
    logits = keras.Variable(np.where(np.arange(7) == 0, -1e9, LOGITS[:, 0]).astype("float32"))
    smoothed, plain = (SmoothedCrossEntropy(rate, dtype=dtype) for rate in (0.1, 0.0))
    assert float(array(smoothed(TARGETS[:, 0], logits))) == float(array(plain(TARGETS[:, 0], logits)))
    [gradient] = gradients(lambda: smoothed(TARGETS[:, 0], logits), [logits])
    np.testing.assert_allclose(gradient.sum(-1), 0, atol=1e-7 if dtype == "float32" else 1e-3)


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_weights_of_classes(shape):
    classes, weights = np.array([1, 2, 3, 1]), np.array([1.0, 0, 2, 3]).reshape(shape)
    logits = np.random.default_rng(1).normal(size=(4, 4)).astype("float32")
    expected = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(classes, logits, weights)
    assert float(SmoothedCrossEntropy(0.0)(classes, logits, weights)) == pytest.approx(float(expected), rel=1e-5)
    accuracy, is_right = MaskedAccuracy(), logits.argmax(axis=1) == classes
    accuracy.update_state(classes, logits, weights)
    assert float(accuracy.result()) == pytest.approx((weights.ravel() * is_right).sum() / 6, rel=1e-5)


def test_nothing_but_padding_is_0():
    for weights in WEIGHTS.values():
        assert float(array(SmoothedCrossEntropy()(np.zeros_like(TARGETS), LOGITS, weights))) == 0


def test_targets_of_a_column_each():
    loss = SmoothedCrossEntropy(0.1)
    np.testing.assert_allclose(array(loss(TARGETS[..., None], LOGITS)), array(loss(TARGETS, LOGITS)), rtol=1e-6)
    np.testing.assert_allclose(array(loss(TARGETS[:, 0], LOGITS[:, 0])), token_losses(0.1)[:, 0].mean(), rtol=1e-5)


@pytest.mark.parametrize(
    "kind, arguments",
    [
        (SmoothedCrossEntropy, {"label_smoothing": 0.3, "reduction": "sum", "name": "mine", "dtype": "float16"}),
        (SmoothedCrossEntropy, {}),
        (MaskedAccuracy, {"name": "mine"}),
    ],
)
def test_config_round_trip(kind, arguments):
    made = kind(**arguments)
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(made))
    assert type(copy) is kind and copy.get_config() == made.get_config()
    assert copy.name == made.name and copy.dtype == made.dtype
    for name, value in arguments.items():
        assert getattr(copy, name) == value


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_dtype_is_that_of_the_result(dtype):
    found = SmoothedCrossEntropy(0.1, dtype=dtype)(TARGETS, LOGITS)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    np.testing.assert_allclose(
        float(keras.ops.cast(found, "float32")),
        reduced(token_losses(0.1), None, TARGETS != 0, "mean"),
        rtol=1e-5 if dtype == "float32" else 0.03,
    )


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: SmoothedCrossEntropy(1.0), "label_smoothing"),
        (lambda: SmoothedCrossEntropy("0.1"), "label_smoothing"),
        (lambda: SmoothedCrossEntropy(reduction="average"), "reduction"),
        (lambda: SmoothedCrossEntropy(dtype="bfloat16")(TARGETS, np.zeros((3, 4, 257))), "ids above 256"),
    ],
)
def test_mistakes_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def updated(targets, logits, weights=None):
    MaskedAccuracy().update_state(targets, logits, weights)


@pytest.mark.parametrize("function", [SmoothedCrossEntropy(), updated], ids=["loss", "accuracy"])
@pytest.mark.parametrize("shape", [(), (4,), (4, 3), (12,), (3, 3), (3, 4, 7), (3, 1)], ids=str)
def test_labels_of_another_shape_are_refused(function, shape):
    """Those of as many elements would be counted for other tokens, and some others would broadcast."""
    with pytest.raises(ValueError, match=r"ids of shape \(3, 4\), .*\(3, 4, 7\): received shape \("):
        function(np.ones(shape, "int32"), LOGITS)


@pytest.mark.parametrize("function", [SmoothedCrossEntropy(), updated], ids=["loss", "accuracy"])
@pytest.mark.parametrize("shape", [(4,), (2,), (3, 3), (4, 3), (3, 4, 7)], ids=str)
def test_weights_of_another_shape_are_refused(function, shape):
    with pytest.raises(ValueError, match=r"`sample_weight` .* labels, \(3, 4\), .* received shape \("):
        function(TARGETS, LOGITS, np.ones(shape, "float32"))


@pytest.mark.parametrize("carried", [False, True], ids=["plain", "carried_mask"])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_masked_accuracy(weights, carried):
    mask = (TARGETS != 0) & ~(HIDDEN if carried else False)
    targets = np.where(RNG.random(TARGETS.shape) < 0.5, LOGITS.argmax(-1), TARGETS) * (TARGETS != 0)
    mask &= targets != 0
    counts = mask * (1 if weights is None else weights.reshape(3, -1))
    metric = MaskedAccuracy()
    metric.update_state(targets, carrying_a_mask(LOGITS) if carried else LOGITS, weights)
    expected = ((LOGITS.argmax(-1) == targets) * counts).sum() / counts.sum()
    np.testing.assert_allclose(float(metric.result()), expected, rtol=1e-5)
    metric.reset_state()
    metric.update_state(np.zeros_like(targets), LOGITS, weights)
    assert float(metric.result()) == 0


@pytest.mark.parametrize("label", [-1, 5])
def test_an_id_outside_the_vocabulary_is_refused_where_it_is_known(label):
    logits = np.zeros((1, 3, 5), "float32")
    with pytest.raises(ValueError, match=rf"id {label} is outside the vocabulary: ids must be in \[0, 5\)"):
        SmoothedCrossEntropy(0.1)(np.array([[1, label, 2]]), logits)
