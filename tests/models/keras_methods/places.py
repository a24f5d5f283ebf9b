"""Where a model computes, and in what: dtype policies, strategies; and classes that users derive from it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.models.arguments import model_hparams
from t2t_lite.settings.config import HParams
from tests.layers.equations import array
from tests.models.every_model import VOCAB
from tests.models.keras_methods.fitting import BY_ONE, check_is_by_hand
from tests.models.keras_methods.table import SMALLEST, Outer, method, same, without_dropout


def under(policy, make):
    """Returns what a function makes while Keras' global dtype policy is another."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        return make()
    finally:
        keras.config.set_dtype_policy(before)


def policies_of(model):
    """Returns the names of the policies of a model's parts: a gate that halts is in float32 whatever the policy."""
    parts = [part for part in model._flatten_layers() if part.name != "gate"]
    return {part.dtype_policy.name for part in parts if part.weights}


@method("dtype_policy")
def global_policies(case):
    exact = case.logits(case.model)
    for policy in ("mixed_bfloat16", "mixed_float16", "float64"):
        model = under(policy, lambda: case.row.make(**without_dropout(case.row)))
        model.set_weights(case.start)
        assert policies_of(model) == {policy}
        assert {w.dtype for w in model.trainable_weights} == {"float64" if policy == "float64" else "float32"}
        for one, other in zip(case.logits(model), exact, strict=True):
            real = np.abs(other) < 1e4
            assert np.abs(one - other)[real].max() < (1e-4 if policy == "float64" else 0.2) * np.abs(other[real]).max()
        explicit = under(policy, lambda: case.fresh(dtype="float32"))
        assert policies_of(explicit) == {"float32"}
        same(case.logits(explicit), exact, 0)
        losses = under(policy, lambda model=model: case.compiled(model=model).fit(case.x, case.y, **BY_ONE).history)
        assert np.isfinite(losses["loss"]).all()


@method(beyond="it is not made of hyperparameters")
def from_hparams_under_a_global_policy(case):
    hparams = model_hparams(case.model, HParams())
    hparams.said.clear()
    make = type(case.model).from_hparams

    def policies(hparams, **options):
        model = under("mixed_bfloat16", lambda: make(hparams, VOCAB, case.model.config["target_vocab_size"], **options))
        return model.dtype_policy.name, policies_of(model)

    assert policies(hparams) == ("mixed_bfloat16", {"mixed_bfloat16"})
    assert policies(hparams.parse("dtype_policy=float32")) == ("float32", {"float32"})
    assert policies(hparams.parse("dtype_policy=mixed_float16")) == ("mixed_float16", {"mixed_float16"})
    assert policies(hparams, dtype="float32") == ("float32", {"float32"})


@method("distribute_strategy", "distribute_reduction_method", models=SMALLEST)
def mirrored_strategy(case):
    if any(hasattr(part, "noise") for part in case.model._flatten_layers()):
        pytest.skip("each replica draws noise of its own")
    # TensorFlow mixes up collectives of several strategies of one process.
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
    x, y = keras.tree.map_structure(lambda each: np.repeat(each[:1], 4, axis=0), (case.x, case.y))
    fitted = []
    for scope in (strategy, tf.distribute.get_strategy()):
        with scope.scope():
            model = case.compiled(keras.optimizers.SGD(0.1), case.fresh(), run_eagerly=False)
            losses = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]
        fitted.append([np.array(losses), *model.get_weights()])
    same(*fitted, 1e-5)


@method()
def subclass(case):
    base = registry.model(case.row.name)

    @keras.saving.register_keras_serializable("tests", f"Own{base.__name__}")
    class Own(base):
        def __init__(self, *args, factor=1.0, **kwargs):
            super().__init__(*args, **kwargs)
            self.factor = factor

        def train_step(self, data):
            x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
            with tf.GradientTape() as tape:
                loss = self.factor * self.compute_loss(x, y, self(x, training=True), weights)
            gradients = tape.gradient(loss, self.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
            return {"loss": loss / self.factor, "ours": loss}

        def get_config(self):
            return {**super().get_config(), "factor": self.factor}

    model = case.row.unbuilt(kind=Own, factor=2.0, **without_dropout(case.row))
    model.build()
    model.set_weights(case.start)
    case.compiled(keras.optimizers.SGD(0.05), model)
    history = model.fit(case.x, case.y, epochs=2, **BY_ONE).history
    np.testing.assert_allclose(history["ours"], 2 * np.array(history["loss"]), rtol=1e-6)
    check_is_by_hand(case, history["loss"], model)
    model.save(case.folder / "own.keras")
    loaded = keras.saving.load_model(case.folder / "own.keras")
    assert type(loaded) is Own and loaded.factor == 2.0
    same(case.logits(loaded), case.logits(model), 0)


@method("add_weight", "add_variable")
def model_around_it(case):
    outer = Outer(case.fresh())
    y = case.y if isinstance(case.y, dict) else {"targets": case.y}
    loss = case.loss() if isinstance(case.loss(), dict) else {"targets": case.loss()}
    outer.compile(keras.optimizers.SGD(0.1), loss, run_eagerly=True)
    before = outer.evaluate(case.x, y, verbose=0, return_dict=True)["loss"]
    outer.fit(case.x, y, epochs=2, **BY_ONE)
    assert outer.evaluate(case.x, y, verbose=0, return_dict=True)["loss"] < before
    assert float(array(outer.factor)) != 1.0


@method(models=SMALLEST)
def saved_model_of_a_model_around_it(case):
    outer = Outer(case.fresh())
    expected = case.logits(outer, case.needed)
    outer.export(case.folder / "export", verbose=False)
    tf.saved_model.save(outer, case.folder / "saved_model")
    floats = {f: tf.cast(ids, "float32") for f, ids in case.needed.items()}  # as Keras asks
    loaded = [tf.saved_model.load(case.folder / name) for name in ("export", "saved_model")]
    same(case.predictions(loaded[0].serve(floats)), expected, 3e-6)
    serve = loaded[1].signatures["serving_default"]
    names = [*serve.structured_input_signature[1]]  # TensorFlow numbers them, in the order of the features' names
    found = serve(**{name: floats[f] for name, f in zip(sorted(names), sorted(floats), strict=True)})
    same(case.predictions(found), expected, 3e-6)
