"""LoRA, which Keras' dense layers enable one by one, in files of layers and models."""

# Nearest tests of: t2t_lite/layers/quantization.py

import keras
import numpy as np
import pytest

from t2t_lite import layers
from t2t_lite.errors import UserError
from t2t_lite.layers.dense import Dense
from t2t_lite.layers.quantization import check_plain_weights
from t2t_lite.models import TransformerEncoder, TransformerLM
from tests.layers.equations import array

SMALL = {"num_layers": 1, "hidden_size": 8, "num_heads": 2, "filter_size": 16, "dropout": 0.0}
IDS = np.array([[3, 4, 5, 0], [6, 7, 8, 9]], "int32")
BATCH = {"targets": IDS}


def adapted():
    """Returns a language model with LoRA in two layers, of which both matrices are random."""
    model = TransformerLM(20, **SMALL)
    model.build()
    layer = model.decoder.layers[0]
    layer.self_attention.layer.query_projection.enable_lora(2, lora_alpha=3)
    layer.feed_forward.layer.outer.enable_lora(4)
    for weight in model.trainable_weights:
        if "lora" in weight.path:
            weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    return model


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "bfloat16"])
def test_lora_computes_in_the_dtype_of_its_layer(policy):
    layer = Dense(5, dtype=policy)
    layer.build((None, 3))
    layer.enable_lora(2, lora_alpha=3)
    layer.lora_kernel_b.assign(np.full((2, 5), 0.5))
    inputs = np.arange(6, dtype="float32").reshape(2, 3) / 8
    outputs = layer(keras.ops.convert_to_tensor(inputs))
    kernel = array(layer._kernel).astype("float32") + 1.5 * array(layer.lora_kernel_a) @ array(layer.lora_kernel_b)
    assert keras.backend.standardize_dtype(outputs.dtype) == layer.compute_dtype
    tolerance = 1e-5 if policy == "float32" else 0.05
    np.testing.assert_allclose(array(keras.ops.cast(outputs, "float32")), inputs @ kernel, atol=tolerance)


@pytest.mark.slow
def test_weights_without_lora_fit_a_model_with_it(tmp_path):
    model, plain = adapted(), TransformerLM(20, **SMALL)
    base = array(plain(BATCH))
    plain.save_weights(tmp_path / "base.weights.h5")
    model.load_weights(tmp_path / "base.weights.h5")  # begins anew, from where training leads on
    np.testing.assert_allclose(array(model(BATCH)), base, atol=1e-6)
    first = [array(weight) for weight in model.trainable_weights if weight.path.endswith("lora_kernel_a")]
    assert len(first) == 2 and all(np.abs(matrix).min() > 0 for matrix in first)


@pytest.mark.parametrize("kind", ["int8", "table"])
def test_tables_and_quantized_layers_keep_it(kind, tmp_path):
    ids = keras.Input((None,), dtype="int32")
    if kind == "table":
        model = TransformerEncoder(20, 4, head="class", **SMALL)
        model.build()
        model.segment_embedding.enable_lora(2)
        call = {"inputs": IDS}
    else:
        layer = layers.FeedForward(16)
        model, call = keras.Model(ids, layer(keras.layers.Embedding(20, 8)(ids))), IDS
        layer.inner.enable_lora(2)
    for weight in model.trainable_weights:
        weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    if kind == "int8":
        layer.quantize("int8")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(loaded(call)), array(model(call)), rtol=1e-5, atol=1e-5)
    assert len(loaded.trainable_weights) == len(model.trainable_weights)


def test_what_needs_one_kernel_per_layer_refuses_it():
    with pytest.raises(UserError, match=r"TransformerLM .*LoRA.*save_run.*merge_lora"):
        check_plain_weights([adapted()], "save_run")
