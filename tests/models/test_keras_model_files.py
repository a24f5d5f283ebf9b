"""What comes back from the files of a model: `.keras`, weights alone, a checkpoint of TensorFlow, an export."""

# Nearest tests of: t2t_lite/models/exported_model.py, t2t_lite/layers/base.py

import keras
import numpy as np
import pytest

from t2t_lite import layers
from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from t2t_lite.training import SmoothedCrossEntropy
from tests.layers.backend import BACKEND
from tests.layers.equations import array
from tests.models.in_keras import BATCH, EAGER, RNG, SMALL, TARGETS, check_checkpoint


@pytest.mark.slow
@pytest.mark.few("model", instead="test_parts_frozen_before_they_are_built_are_frozen_whole")
@pytest.mark.parametrize("kind", ["model", "functional"])
def test_frozen_parts_are_frozen_in_the_file_and_training_goes_on(kind, tmp_path):
    if kind == "model":
        model, inputs, targets = Transformer(**SMALL), BATCH, TARGETS
        model.build()
        model.encoder.trainable = model.decoder.layers[0].feed_forward.trainable = False
        loss = SmoothedCrossEntropy()
    else:
        layer = layers.TransformerEncoderLayer(2, 8, dropout=0.0, name="layer")
        x = keras.Input((3, 8))
        model, loss = keras.Model(x, keras.layers.Dense(1)(layer(x))), "mse"
        layer.self_attention.trainable = False
        inputs, targets = RNG.normal(size=(4, 3, 8)), RNG.normal(size=(4, 3, 1))
    model.compile(keras.optimizers.Adam(0.01), loss, **EAGER)
    model.fit(inputs, targets, epochs=2, verbose=0)
    model.save(tmp_path / "frozen.keras")
    loaded = keras.saving.load_model(tmp_path / "frozen.keras")
    paths = [[v.path for v in m.trainable_variables] for m in (model, loaded)]
    assert paths[0] == paths[1] and len(paths[0]) < len(model.variables)
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations) > 0
    for m in (model, loaded):
        m.fit(inputs, targets, epochs=1, shuffle=False, verbose=0)
    for one, two in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "self_attention", ["dot_product", {"type": "dot_product_relative_v2", "max_relative_position": 2}]
)
def test_parts_frozen_before_they_are_built_are_frozen_whole(self_attention):
    trainable = []
    for builds_first in (True, False):
        model = Transformer(**SMALL, self_attention=self_attention)
        encoder = TransformerEncoder(20, 4, head="class", num_layers=1, hidden_size=8, filter_size=16, num_heads=2)
        for each, parts in ((model, [model.encoder, model.decoder.layers[0]]), (encoder, [encoder.class_head])):
            if builds_first:
                each.build()
            for part in parts:
                part.trainable = False
            each.build()
            trainable.append([v.path.partition("/")[2] for v in each.trainable_variables])
    assert trainable[:2] == trainable[2:]
    assert not any(path.startswith(("encoder/encoder_0", "decoder/decoder_0")) for path in trainable[0])


@pytest.mark.slow
def test_activation_and_initializers_are_saved(tmp_path):
    options = {"activation": keras.activations.tanh, "kernel_initializer": keras.initializers.Constant(0.1)}
    model = Transformer(**SMALL, **options, bias_initializer="ones")
    config = model.get_config()
    assert config["activation"] == "tanh" and Transformer.from_config(config).get_config() == config
    expected = array(model(BATCH))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(array(loaded(BATCH)), expected)
    kernel = model.decoder.layers[0].cross_attention.layer.key_projection.kernel
    assert np.unique(array(kernel)).tolist() == [np.float32(0.1)]


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow's checkpoints")
@pytest.mark.parametrize("kind", ["translation", "language model", "encoder", "stack", "own lists"])
@pytest.mark.parametrize("builds_first", [True, False])
def test_checkpoints_of_tensorflow_hold_every_weight(kind, builds_first, tmp_path):
    class Own(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.parts = [keras.layers.Dense(8), {"last": keras.layers.Dense(8)}]

        def build(self, shape):
            self.parts[0].build(shape), self.parts[1]["last"].build(shape)

    make = {
        "translation": lambda: Transformer(**SMALL),
        "language model": lambda: TransformerLM(20, num_layers=2, hidden_size=8, num_heads=2, filter_size=8),
        "encoder": lambda: TransformerEncoder(20, num_layers=2, hidden_size=8, num_heads=2, filter_size=8),
        "stack": lambda: layers.TransformerStack([layers.TransformerDecoderLayer(2, 8) for _ in range(2)]),
        "own lists": lambda: layers.TransformerEncoderLayer(2, feed_forward=Own()),
    }[kind]
    check_checkpoint(make, builds_first, tmp_path)
