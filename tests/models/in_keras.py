"""A small model and a batch for Keras' own methods, and what is checked of any model."""

import keras
import numpy as np

from tests.layers.backend import BACKEND
from tests.layers.equations import array

SMALL = {
    "vocab_size": 20, "hidden_size": 16, "filter_size": 32, "num_heads": 2, "num_encoder_layers": 1,
    "num_decoder_layers": 1, "dropout": 0.0,
}  # fmt: skip
RNG = np.random.default_rng(0)
INPUTS, TARGETS = RNG.integers(3, 20, (5, 7)).astype("int32"), RNG.integers(3, 20, (5, 6)).astype("int32")
INPUTS[1, 4:] = TARGETS[2, 3:] = TARGETS[0, 5:] = 0
BATCH = {"inputs": INPUTS, "targets": TARGETS}
EAGER = {"run_eagerly": True} if BACKEND == "tensorflow" else {}  # for tests that do not ask for the graph of a step


def check_fit(model, batch, labels, loss):
    """Checks that a step of `fit` changes every weight of a model."""
    model.build()
    before = [array(weight) for weight in model.trainable_weights]
    model.compile(keras.optimizers.SGD(1.0), loss)
    model.fit(batch, labels, batch_size=5, verbose=0)
    same = [w.path for w, old in zip(model.trainable_weights, before, strict=True) if np.array_equal(array(w), old)]
    assert same == []


def check_without_targets(model, head):
    def of_targets(outputs):
        return outputs["targets"] if isinstance(outputs, dict) else outputs

    model.run_eagerly = True
    given = {name: INPUTS if rank == 2 else INPUTS[:, 0] for name, rank in model.features.items()}
    expected, found = array(of_targets(model(given))), of_targets(model.predict({"inputs": INPUTS}, verbose=0))
    symbol = of_targets(model({"inputs": keras.Input((7,), dtype="int32")}))
    assert symbol.shape == (None, *found.shape[1:])
    # With targets, masked ids are those of the positions that have one, in order.
    np.testing.assert_allclose(found[INPUTS != 0] if head == "masked_lm" else found, expected, atol=1e-5)


def check_checkpoint(make, builds_first, tmp_path):
    """Checks that TensorFlow's checkpoint holds all weights; `make`: function that returns a model or layer."""
    import tensorflow as tf

    saved, restored = make(), make()
    saved.build((None, None, 8))
    path = tf.train.Checkpoint(model=saved).write(str(tmp_path / "checkpoint"))
    names = [name for name, _ in tf.train.list_variables(path) if name.endswith("VARIABLE_VALUE")]
    assert len(names) == len(saved.weights)
    if builds_first:
        restored.build((None, None, 8))
        tf.train.Checkpoint(model=restored).read(path).assert_consumed()
    else:
        tf.train.Checkpoint(model=restored).read(path)
        restored.build((None, None, 8))
    for one, two in zip(saved.weights, restored.weights, strict=True):
        np.testing.assert_array_equal(one, two, err_msg=one.path)
