"""What every layer must do, checked in one call."""

import keras
import numpy as np
from keras import ops


def check_layer(layer_class, init, inputs, trainable_weights, tmp_path, output_dtype="float32", **call):
    """Checks a layer: config, symbolic and eager calls, saving, dtype policies, gradients to every weight.

    Args:
        layer_class: the class.
        init: dict of constructor arguments.
        inputs: NumPy array, the first input.
        trainable_weights: int, how many weights it must have.
        tmp_path: a folder.
        output_dtype: dtype of its output under the mixed_bfloat16 policy is bfloat16, or this.
        **call: further arguments of its calls.

    Returns:
        The float32 layer and its output as an array.
    """
    layer = layer_class(**init)
    output = ops.convert_to_numpy(layer(inputs, **call))
    assert len(layer.trainable_weights) == trainable_weights

    # The configuration makes an equal layer.
    clone = layer_class.from_config(layer.get_config())
    clone.build(*_build_shapes(inputs, call))
    clone.set_weights(layer.get_weights())
    assert clone.get_config() == layer.get_config()
    np.testing.assert_array_equal(ops.convert_to_numpy(clone(inputs, **call)), output)

    # Symbolic calls agree with eager ones in shape and dtype, with unknown sizes too.
    assert tuple(layer.compute_output_shape(inputs.shape)) == output.shape
    symbolic = keras.Input(inputs.shape[1:], dtype=inputs.dtype)
    result = layer(symbolic, **call)
    assert result.shape == (None, *output.shape[1:])
    dynamic = keras.Input((None, *inputs.shape[2:]), dtype=inputs.dtype)
    assert layer(dynamic).shape[1] is None

    # A model of it is saved and loaded without custom_objects.
    model = keras.Model(symbolic, result)
    model.save(tmp_path / "layer.keras")
    loaded = keras.saving.load_model(tmp_path / "layer.keras")
    np.testing.assert_array_equal(ops.convert_to_numpy(loaded(inputs)), output)

    # In a Sequential.
    sequential = keras.Sequential([layer_class(**init)])
    assert sequential(inputs).shape == output.shape

    # Mixed precision: bfloat16 out, float32 weights.
    mixed = layer_class(**init, dtype="mixed_bfloat16")
    mixed_output = mixed(inputs, **call)
    expected = output_dtype if output_dtype != "float32" else "bfloat16"
    assert keras.backend.standardize_dtype(mixed_output.dtype) == expected
    assert all(w.dtype == "float32" for w in mixed.trainable_weights)

    _check_gradients(layer, inputs, call)
    return layer, output


def _build_shapes(inputs, call):
    return [inputs.shape, *([call["value"].shape] if "value" in call else [])]


def _check_gradients(layer, inputs, call):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        output = (
            layer(inputs, training=True, **call) if "training" in layer._call_signature.parameters else layer(inputs)
        )
        loss = tf.reduce_sum(tf.square(output) * tf.random.stateless_normal(output.shape, (1, 2)))
    gradients = tape.gradient(loss, [w.value for w in layer.trainable_weights])
    for weight, gradient in zip(layer.trainable_weights, gradients, strict=True):
        assert gradient is not None, weight.path
        assert float(tf.reduce_sum(tf.abs(tf.convert_to_tensor(gradient)))) > 0, weight.path
