"""Quantized layers: which parts of a layer are, in its configuration, and tables of rows in int8 or int4."""

import keras
from keras import ops

from t2t_lite.errors import UserError

TABLE_MODES = ("int8", "int4")
_INT4 = (-8, 7)


@keras.saving.register_keras_serializable("t2t_lite")
class PartPolicies(keras.dtype_policies.DTypePolicyMap):
    """A `DTypePolicyMap` that finds a layer's policy by the end of its path.

    Its keys are paths from the layer that it belongs to, whose own place in a model may be another once it is loaded.
    """

    def __getitem__(self, key):
        """Returns the policy of the layer with the path `key`; the default policy for others."""
        parts = key.split("/")
        for start in range(len(parts)):
            if (end := "/".join(parts[start:])) in self:
                return super().__getitem__(end)
        return self.default_policy


def own_policy(layer):
    """Returns the dtype policy of one layer, also where it was given those of several in a map."""
    policy = layer.dtype_policy
    if not isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy
    return policy[layer.path] if layer.path else policy.default_policy


def is_quantized(layer):
    """Returns whether a layer or model, or one inside it, is quantized."""
    return any(part.quantization_mode for part in layer._flatten_layers())


def check_plain_weights(models, what):
    """Raises `UserError` if one of several models is quantized or has LoRA; `what` needs one float kernel per layer."""
    for model in models:
        if is_quantized(model):
            raise UserError(
                f"{type(model).__name__}: is quantized, and {what} needs float weights. Call it before quantize; "
                "save the quantized model by model.save."
            )
        if any(getattr(part, "lora_enabled", False) for part in model._flatten_layers()):
            raise UserError(
                f"{type(model).__name__}: has LoRA, and {what} needs one kernel per layer. Call model.merge_lora(), "
                "which adds it to the kernels, before."
            )


def policy_config(layer):
    """Returns {"dtype": …} for `get_config`: where layers inside are quantized, `PartPolicies` of them; else {}.

    Raises:
        ValueError: a layer was quantized with quantizers of its own, which a dtype policy does not say.
    """
    found, above = {}, (layer.path or "").rpartition("/")[0]
    for part in layer._flatten_layers(include_self=False):
        if part.quantization_mode:
            _check_quantizers(part)
            # In place of a map that it was loaded with: Keras' own layers save no scales under one (as of 3.15).
            part._dtype_policy = own_policy(part)
            found[part.path.removeprefix(f"{above}/") if above else part.path] = own_policy(part)
    if not found:
        return {}
    # Not by `serialize`: objects with one id() are the same to it, and the next policies may lie where these have lain.
    return {
        "dtype": {
            "module": __name__,
            "class_name": "PartPolicies",
            "config": PartPolicies(own_policy(layer).name, found).get_config(),
            "registered_name": "t2t_lite>PartPolicies",
        }
    }


def _check_quantizers(layer):
    config = getattr(layer, "quantization_config", None)
    if config is None or config.mode not in TABLE_MODES:
        return
    given, usual = config.activation_quantizer, _usual_activation_quantizer(config.mode)
    same = (given and given.get_config()) == (usual and usual.get_config())
    if config.weight_quantizer is not None or not same:
        raise ValueError(
            f"{layer.path}: quantized with quantizers of your own, which the configuration of the layer around it "
            f"can't hold. To save the model, quantize it by model.quantize('{config.mode}')."
        )


def _usual_activation_quantizer(mode):
    kind = keras.quantizers.Int8QuantizationConfig if mode == "int8" else keras.quantizers.Int4QuantizationConfig
    return kind().activation_quantizer


def can_quantize(layer, mode):
    """Returns whether Keras or this package has a quantized form of a layer without others inside."""
    kinds = (keras.layers.Dense, keras.layers.EinsumDense)
    tables = (keras.layers.Embedding,)
    own = getattr(layer, "QUANTIZATION_MODES", ())
    return isinstance(layer, kinds) or mode in own or (isinstance(layer, tables) and mode in TABLE_MODES)


def quantized_rows(matrix, mode, block_size=None):
    """Quantizes a table row by row.

    Args:
        matrix: float [V, E].
        mode: "int8", symmetric with one scale per row; or "int4", with a scale and a zero point per block of a row, two
            values in a byte.
        block_size: int, columns of a block in int4; None: the whole row is one.

    Returns:
        {"values" int8 [V, E], or [V, ceil(E / 2)] in int4; "scale" float [V, blocks]; in int4 "zero" int8 [V, blocks]},
        NumPy arrays or tensors; a row is (value - zero) * scale.
    """
    if mode == "int8":
        values, inverse = keras.quantizers.abs_max_quantize(matrix, axis=-1, to_numpy=True)
        return {"values": values, "scale": 1.0 / inverse}
    values, scale, zero = keras.quantizers.abs_max_quantize_grouped_with_zero_point(
        ops.transpose(matrix), block_size or matrix.shape[-1], value_range=_INT4, to_numpy=True
    )
    packed, *_ = keras.quantizers.pack_int4(ops.transpose(values), axis=-1)
    return {"values": packed, "scale": ops.transpose(scale), "zero": ops.transpose(zero)}


def float_rows(values, scale, zero, size, block_size, dtype):
    """Returns rows of a quantized table as numbers of `dtype`, [..., size].

    Args:
        values, scale, zero: rows of what `quantized_rows` returns; zero None: int8.
        size: int, E.
        block_size: int or None, as there.
        dtype: of the result.
    """
    scale = ops.cast(scale, dtype)
    if zero is None:
        return ops.cast(values, dtype) * scale
    rows, zero = ops.cast(keras.quantizers.unpack_int4(values, size, axis=-1), dtype), ops.cast(zero, dtype)
    if scale.shape[-1] > 1:
        blocks = ops.arange(size, dtype="int32") // block_size
        scale, zero = ops.take(scale, blocks, axis=-1), ops.take(zero, blocks, axis=-1)
    return (rows - zero) * scale
