"""Quantization: the dtype policies of quantized sublayers in a configuration, and embedding tables in int8 or int4."""

import keras
from keras import ops

from t2t_lite.errors import UserError

TABLE_MODES = ("int8", "int4")
_INT4 = (-8, 7)


@keras.saving.register_keras_serializable("t2t_lite")
class PartPolicies(keras.dtype_policies.DTypePolicyMap):
    """A `DTypePolicyMap` that looks up a layer's dtype policy by the end of its path.

    The keys are paths relative to the layer that owns the map, because this layer may be loaded elsewhere in a model.
    """

    def __getitem__(self, key):
        """Returns the dtype policy of the layer with the path `key`, or the default policy."""
        parts = key.split("/")
        for start in range(len(parts)):
            if (end := "/".join(parts[start:])) in self:
                return super().__getitem__(end)
        return self.default_policy


def own_policy(layer):
    """Returns the dtype policy of a single layer, even if the layer was created with a map of policies."""
    policy = layer.dtype_policy
    if not isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy
    return policy[layer.path] if layer.path else policy.default_policy


def is_quantized(layer):
    """Returns whether a layer or model, or any of its sublayers, is quantized."""
    return any(part.quantization_mode for part in layer._flatten_layers())


def check_plain_weights(models, what):
    """Raises `UserError` if a model is quantized or has LoRA, but `what` needs one float kernel per layer."""
    for model in models:
        if is_quantized(model):
            raise UserError(
                f"{type(model).__name__} is quantized, but {what} needs float weights. Call model.quantize only "
                "afterwards, or save the quantized model with model.save."
            )
        if any(getattr(part, "lora_enabled", False) for part in model._flatten_layers()):
            raise UserError(
                f"{type(model).__name__} has LoRA, but {what} needs one kernel per layer. First call "
                "model.merge_lora(), which merges LoRA into the kernels."
            )


def policy_config(layer):
    """Returns {"dtype": `PartPolicies`} for `get_config` if sublayers are quantized, otherwise {}.

    Raises:
        ValueError: if a layer was quantized with custom quantizers, which a dtype policy cannot express.
    """
    policies, above = {}, (layer.path or "").rpartition("/")[0]
    for part in layer._flatten_layers(include_self=False):
        if part.quantization_mode:
            _check_quantizers(part)
            # Replaces the map that the layer was loaded with, because with a map, Keras layers do not save scales (as
            # of 3.15).
            part._dtype_policy = own_policy(part)
            policies[part.path.removeprefix(f"{above}/") if above else part.path] = own_policy(part)
    if not policies:
        return {}
    # Not `serialize`, which identifies objects by id(): later policies may reuse the id() of these temporary policies.
    return {
        "dtype": {
            "module": __name__,
            "class_name": "PartPolicies",
            "config": PartPolicies(own_policy(layer).name, policies).get_config(),
            "registered_name": "t2t_lite>PartPolicies",
        }
    }


def _check_quantizers(layer):
    config = getattr(layer, "quantization_config", None)
    if config is None or config.mode not in TABLE_MODES:
        return
    quantizer, usual = config.activation_quantizer, type(config)().activation_quantizer
    same = (quantizer and quantizer.get_config()) == (usual and usual.get_config())
    if config.weight_quantizer is not None or not same:
        raise ValueError(
            f"{layer.path} has custom quantizers, which the configuration of its parent layer cannot record. To save "
            f"the model, quantize it with model.quantize('{config.mode}')."
        )


def quantized_rows(matrix, mode, block_size=None):
    """Quantizes an embedding table row by row.

    Args:
        matrix: float [V, E].
        mode: "int8" (symmetric, with one scale per row) or "int4" (two values per byte, with a scale and a zero point
            per block of a row).
        block_size: int, the number of columns per block in int4. If None, there is one block per row.

    Returns:
        {"values" int8 [V, E], or [V, ceil(E / 2)] in int4; "scale" float [V, blocks]; in int4 "zero" int8 [V, blocks]},
        as NumPy arrays or tensors. The dequantized row is (values - zero) * scale.
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
    """Dequantizes rows of an embedding table to `dtype`, [..., size].

    Args:
        values, scale, zero: rows of the tensors from `quantized_rows`; zero is None in int8.
        size: int, E.
        block_size: int or None, as in `quantized_rows`.
        dtype: the dtype of the result.
    """
    scale = ops.cast(scale, dtype)
    if zero is None:
        return ops.cast(values, dtype) * scale
    rows, zero = ops.cast(keras.quantizers.unpack_int4(values, size, axis=-1), dtype), ops.cast(zero, dtype)
    if scale.shape[-1] > 1:
        blocks = ops.arange(size, dtype="int32") // block_size
        scale, zero = ops.take(scale, blocks, axis=-1), ops.take(zero, blocks, axis=-1)
    return (rows - zero) * scale
