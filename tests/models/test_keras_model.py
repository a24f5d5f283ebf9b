"""The Transformer as a model of Keras: its masks, what it refuses, shapes, fit; on every backend."""

# Nearest tests of: t2t_lite/models/sequence_model.py, t2t_lite/models/exported_model.py

import keras
import numpy as np
import pytest

from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from t2t_lite.training import MaskedAccuracy, SmoothedCrossEntropy
from tests.layers.backend import BACKEND
from tests.layers.equations import array
from tests.models.in_keras import BATCH, EAGER, INPUTS, RNG, SMALL, TARGETS, check_fit, check_without_targets

# For two devices. Keras counts the mean loss of each replica alike: theirs are of as many ids each here.
BATCH_OF_FOUR = {"inputs": INPUTS[1:], "targets": np.maximum(TARGETS[1:], 3)}


@pytest.fixture(scope="module")
def model():
    """A model that was compiled, and fitted with weights and validation; its last batch is smaller."""
    keras.utils.set_random_seed(1)
    model = Transformer(**SMALL)
    metrics = {"metrics": ["accuracy"], "weighted_metrics": [MaskedAccuracy()]}
    model.compile(keras.optimizers.Adam(0.01), SmoothedCrossEntropy(), **metrics, **EAGER)
    weights = np.array([1, 2, 1, 1, 0.5])
    history = model.fit(
        BATCH, TARGETS, sample_weight=weights, validation_data=(BATCH, TARGETS), batch_size=2, epochs=2, verbose=0
    ).history
    assert history["val_loss"][-1] < history["val_loss"][0]
    return model


@pytest.mark.slow
def test_metrics_leave_padding_out(model):
    right = (array(model(BATCH)).argmax(-1) == TARGETS)[TARGETS != 0].mean()
    found = model.evaluate(BATCH, TARGETS, batch_size=5, return_dict=True, verbose=0)
    np.testing.assert_allclose([found["accuracy"], found["masked_accuracy"]], right, rtol=1e-5)


@pytest.mark.slow
def test_keras_own_loss_leaves_padding_out(model):
    logits = model(BATCH)
    values = array(logits)
    log_p = values - np.log(np.exp(values).sum(-1, keepdims=True))
    expected = -np.take_along_axis(log_p, TARGETS[..., None], -1)[..., 0][TARGETS != 0].mean()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(TARGETS, logits)
    np.testing.assert_allclose(array(loss), expected, rtol=1e-4)


@pytest.mark.slow
def test_predict_gives_all_rows(model):
    np.testing.assert_allclose(model.predict(BATCH, batch_size=2, verbose=0), array(model(BATCH)), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "inputs, words",
    [
        (INPUTS, "expected a dict .*; received"),
        ([INPUTS, TARGETS], "expected a dict .*; received list"),
        ({"inputs": INPUTS}, "'targets' is missing: expected a dict"),
        ({"targets": TARGETS}, "'inputs' is missing: expected a dict"),
        ({"inputs": INPUTS, "targets": TARGETS[0]}, r"'targets' .*\(6,\): expected"),
        ({"inputs": INPUTS[..., None], "targets": TARGETS}, r"'inputs' .*\(5, 7, 1\): expected"),
        ({"inputs": INPUTS.astype("float32"), "targets": TARGETS}, r"'inputs' .*float32: expected"),
        ({"inputs": INPUTS != 0, "targets": TARGETS}, r"'inputs' .*bool: expected"),
        ({"inputs": np.array([["a"]]), "targets": TARGETS}, r"'inputs' .*<U1: expected"),
        ({"inputs": INPUTS.tolist(), "targets": TARGETS}, r"'inputs' .*list.*: expected"),
        ({"inputs": INPUTS[:2], "targets": TARGETS}, "rows, {'inputs': 2, 'targets': 5}"),
    ],
)
def test_other_inputs_are_refused_in_one_sentence(model, inputs, words):
    with pytest.raises(ValueError, match=words) as error:
        model(inputs)
    assert str(error.value).startswith("Transformer: ") and len(str(error.value).splitlines()) == 1


@pytest.mark.skipif(BACKEND != "tensorflow", reason="these tensors are TensorFlow's")
@pytest.mark.parametrize("is_symbolic", [False, True])
def test_ragged_and_sparse_ids_are_refused_with_the_way_to_pad_them(is_symbolic):
    import tensorflow as tf

    tensors = {"Ragged": tf.ragged.constant([[3, 1], [4]]), "Sparse": tf.sparse.from_dense([[3, 1], [4, 0]])}
    for (kind, ids), call in zip(tensors.items(), (r"ids\.to_tensor\(\)", r"tf\.sparse\.to_dense\(ids\)"), strict=True):
        if is_symbolic:
            ids = keras.Input((None,), dtype="int32", **{kind.lower(): True})
        with pytest.raises(ValueError, match=rf"^TransformerLM: 'targets' is a {kind}Tensor: .*: {call}\.$"):
            TransformerLM(20)({"targets": ids})


def test_prompts_of_a_language_model_are_checked_where_given():
    model = TransformerLM(20, num_layers=1, hidden_size=8, num_heads=2, filter_size=8)
    model({"targets": TARGETS}), model({"targets": TARGETS, "inputs": None}), model(BATCH)
    for inputs, words in ((INPUTS + 0.7, r"'inputs' .*float64"), (INPUTS[:2], "{'inputs': 2, 'targets': 5}")):
        with pytest.raises(ValueError, match=words):
            model({"targets": TARGETS, "inputs": inputs})


@pytest.mark.slow
@pytest.mark.few("translation", instead="test_weights_may_have_another_rank_in_each_fit")
@pytest.mark.parametrize("kind", ["translation", "language model"])
def test_fit_trains_every_weight(kind):
    small = {"hidden_size": 8, "dropout": 0.0}
    model = {
        "translation": lambda: Transformer(**SMALL),
        "language model": lambda: TransformerLM(20, num_heads=2, filter_size=8, unused_ids=[2], **small),
    }[kind]()
    check_fit(model, BATCH if kind == "translation" else {"targets": TARGETS}, TARGETS, SmoothedCrossEntropy(0.0))


@pytest.mark.long
@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow, whose strategies copy a model")
def test_fit_in_a_strategys_scope_is_fit_outside():
    import tensorflow as tf

    # TensorFlow mixes up collectives of several strategies of one process.
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
    outside = fitted_on(BATCH_OF_FOUR)
    with strategy.scope():
        inside = fitted_on(BATCH_OF_FOUR)
        of_three = fitted_on({feature: ids[:3] for feature, ids in BATCH_OF_FOUR.items()})
    for one, other in zip(outside, inside, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert np.isfinite(of_three[0]).all()  # a row more on one replica than on the other


@pytest.mark.slow
@pytest.mark.skipif(BACKEND != "jax", reason="of JAX, over whose devices Keras distributes")
def test_fit_by_a_distribution_of_keras_is_fit_without():
    one, two = fitted_on(BATCH_OF_FOUR), keras.distribution.list_devices()[:2]
    heads = keras.distribution.LayoutMap(keras.distribution.DeviceMesh((1, 2), ["batch", "model"], two))
    heads[".*(query|key|value)_projection.*kernel"] = (None, "model")
    heads[".*output_projection.*kernel"] = ("model", None)
    try:
        for distribution in (
            keras.distribution.DataParallel(devices=two),
            keras.distribution.ModelParallel(layout_map=heads, batch_dim_name="batch"),
        ):
            keras.distribution.set_distribution(distribution)
            for ours, other in zip(one, fitted_on(BATCH_OF_FOUR), strict=True):
                np.testing.assert_allclose(ours, other, atol=1e-5)
    finally:
        keras.distribution.set_distribution(None)


def fitted_on(batch):
    """Returns history and weights of a model that is fitted on one batch."""
    keras.utils.set_random_seed(1)
    model = Transformer(**SMALL)
    model.compile(keras.optimizers.SGD(0.1), SmoothedCrossEntropy(), metrics=[MaskedAccuracy()])
    found = model.fit(batch, batch["targets"], batch_size=4, epochs=3, shuffle=False, verbose=0).history
    return [*found.values(), *(array(weight) for weight in model.weights)]


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch, whose gradients are cleared before a step")
@pytest.mark.parametrize("kind", [Transformer, TransformerLM])
def test_fit_in_mixed_precision_clears_all_gradients(kind):
    model = kind(20, hidden_size=16, dtype="mixed_float16")
    model.compile("adam", SmoothedCrossEntropy())
    model.fit(BATCH, TARGETS, verbose=0)
    assert all(weight.value.grad is not None for weight in model.trainable_weights)
    model.zero_grad()
    assert [weight.path for weight in model.trainable_weights if weight.value.grad is not None] == []


def test_fit_without_a_dict_says_what_is_expected():
    model = Transformer(**SMALL)
    model.compile("sgd", SmoothedCrossEntropy())
    with pytest.raises(ValueError, match="Transformer: expected a dict of integer ids"):
        model.fit(INPUTS, TARGETS, verbose=0)


@pytest.mark.slow
def test_shapes_are_known_without_a_call():
    model = Transformer(**SMALL, target_vocab_size=30, dtype="mixed_bfloat16")
    assert model.compute_output_shape({"inputs": (None, 7), "targets": (None, 6)}) == (None, 6, 30)
    symbols = {name: keras.Input((None,), dtype="int32", name=name) for name in BATCH}
    logits = model(symbols)
    assert logits.shape == (None, None, 30) and logits.dtype == "float32"
    outer = keras.Model(symbols, logits)
    np.testing.assert_allclose(array(outer(BATCH)), array(model(BATCH)), atol=1e-5)
    of_five_rows = keras.Input((7,), 5, dtype="int32")  # beside targets of any number
    assert model({"inputs": of_five_rows, "targets": symbols["targets"]}).shape == (None, None, 30)


def encoder(head, **options):
    sizes = {"num_layers": 1, "hidden_size": 8, "num_heads": 2, "filter_size": 8, "dropout": 0.0}
    return TransformerEncoder(20, None if head == "masked_lm" else 5, head=head, **sizes, **options)


@pytest.mark.parametrize("head", ["masked_lm", "class", "real", "tag", "span"])
def test_shapes_of_an_encoders_heads_are_those_of_a_call(head):
    model = encoder(head, sentence_classes=2)
    batch = {name: np.ones((2, 5)[:rank], "int32") for name, rank in model.features.items()}
    found = model(batch)
    expected = {name: tuple(x.shape) for name, x in found.items()}
    if head == "masked_lm":  # as many rows as there are targets
        expected["targets"] = (None, 20)
    assert model.compute_output_shape({name: ids.shape for name, ids in batch.items()}) == expected


@pytest.fixture(scope="module")
def language_model():
    """A compiled language model whose weights stay what they are."""
    model = TransformerLM(20, num_layers=1, hidden_size=8, num_heads=2, filter_size=8, dropout=0.0)
    metrics = {"weighted_metrics": [MaskedAccuracy()]}
    model.compile(keras.optimizers.SGD(0.0), SmoothedCrossEntropy(), jit_compile=BACKEND != "tensorflow", **metrics)
    return model


@pytest.mark.slow
def test_weights_may_have_another_rank_in_each_fit(language_model):
    batch = {"targets": TARGETS}
    for weights in (RNG.random(5), RNG.random((5, 6)), None):
        expected = float(SmoothedCrossEntropy()(TARGETS, language_model(batch), weights))
        fitted = language_model.fit(batch, TARGETS, sample_weight=weights, batch_size=5, verbose=0).history["loss"][0]
        assert fitted == pytest.approx(expected, rel=1e-5)
    weights = RNG.random((5, 1))
    on_batch = language_model.train_on_batch(batch, TARGETS, sample_weight=weights, return_dict=True)["loss"]
    assert on_batch == pytest.approx(float(SmoothedCrossEntropy()(TARGETS, language_model(batch), weights)), rel=1e-5)


@pytest.mark.slow
def test_weights_of_classes_are_of_one_label_a_row(language_model):
    for train in (language_model.fit, language_model.train_on_batch):
        with pytest.raises(ValueError, match=r"TransformerLM: `class_weight` .*\[batch\].*`sample_weight`"):
            train({"targets": TARGETS}, TARGETS, class_weight=dict.fromkeys(range(20), 2.0))
    model = encoder("class")
    model.compile(keras.optimizers.SGD(0.0), SmoothedCrossEntropy(0.0), **EAGER)
    classes, weights = np.array([1, 2, 3, 1, 2], "int32"), np.array([0, 1, 2, 0.5])
    losses = [
        model.train_on_batch({"inputs": INPUTS}, classes, **options)
        for options in ({"class_weight": dict(enumerate(weights))}, {"sample_weight": weights[classes]}, {})
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert abs(losses[2] - losses[0]) > 1e-3


@pytest.mark.parametrize("options", [{}, {"sentence_classes": 2}])
def test_losses_of_keras_ignore_positions_without_a_tag(options):
    model, tags = encoder("tag", **options), np.where(INPUTS == 0, 0, INPUTS % 4 + 1)
    tags[:, 1] = 0  # such as the second piece of a word
    batch = {"inputs": INPUTS, "targets": tags}
    batch |= {"sentence": np.ones(len(INPUTS), "int32")} if options else {}
    logits = model(batch)
    logits = logits["targets"] if options else logits
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    assert float(loss(tags, logits)) == pytest.approx(float(SmoothedCrossEntropy(0.0)(tags, logits)), rel=1e-5)


@pytest.mark.slow
@pytest.mark.few("masked_lm", "tag", "span")
@pytest.mark.parametrize("head", ["masked_lm", "class", "real", "tag", "span"])
def test_predictions_of_an_encoder_need_no_targets(head):
    check_without_targets(encoder(head, sentence_classes=2), head)


@pytest.mark.slow
def test_a_model_around_it_is_fitted_with_masks(tmp_path):
    symbols = {name: keras.Input((None,), dtype="int32", name=name) for name in BATCH}
    outer = keras.Model(symbols, Transformer(**SMALL)(symbols))
    outer.compile(keras.optimizers.Adam(0.01), SmoothedCrossEntropy(), metrics=["accuracy"], **EAGER)
    outer.fit(BATCH, TARGETS, epochs=2, verbose=0)
    right = (array(outer(BATCH)).argmax(-1) == TARGETS)[TARGETS != 0].mean()
    np.testing.assert_allclose(outer.evaluate(BATCH, TARGETS, verbose=0)[1], right, rtol=1e-5)
    outer.save(tmp_path / "outer.keras")
    loaded = keras.saving.load_model(tmp_path / "outer.keras")
    np.testing.assert_allclose(array(loaded(BATCH)), array(outer(BATCH)), atol=1e-6)
