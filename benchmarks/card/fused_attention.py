"""Compares cuDNN's fused attention, called from TensorFlow through XLA, with plain attention.

python -m benchmarks.card.fused_attention --once   # without a GPU, only checks that the program has both calls

The two are compared in their results, time and memory. TensorFlow has no operation for fused attention, but XLA has
custom calls for it: `__cudnn$fmhaSoftmax` and a call for the backward pass. JAX emits these calls
(`jax/_src/cudnn/fused_attention_stablehlo.py`); here, `XlaCustomCallV2` emits them. Attention weights are never stored
in memory. Nothing in the package uses fused attention.

Fused attention needs bfloat16 or float16, a head size that is a multiple of 8 and at most 128, and shapes that are
known when the program is compiled. Attention dropout is not possible, because the seed is part of the configuration and
thus the same at each step.
"""

import json
import sys
import time

from benchmarks.card.ours import card, peak_gb
from benchmarks.card.talk import answer

_SHAPE, _TOY = (24, 12, 1024, 64), (2, 3, 128, 64)  # batch, heads, length, head size: as in gpt2_small, and for a CPU
_TURNS, _ROUNDS = 20, 3
_TOLERANCE = 2e-2  # for bfloat16, relative to the largest value of a result
_CALL, _BACKWARD = "__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxBackward"
_MASKS = {(False, False): "NO_MASK", (True, False): "PADDING", (False, True): "CAUSAL", (True, True): "PADDING_CAUSAL"}
# The contracted axes of the left and the right operand, both [B, N, T, H].
_PRODUCTS = {"bmm1": (3, 3), "bmm2": (3, 2)}
_PRODUCTS_OF_GRADIENT = {
    "bmm1_grad_gemm1": (2, 2), "bmm1_grad_gemm2": (3, 2), "bmm2_grad_gemm1": (2, 2), "bmm2_grad_gemm2": (3, 3),
}  # fmt: skip


def fused(query, key, value, lengths=None, causal=True):
    """Returns softmax(query key' / √H) value, 16-bit float [B, N, T, H].

    Args:
        query, key, value: 16-bit float [B, N, T, H], with known shapes.
        lengths: int32 [B], number of non-padding positions in each row; None means all.
        causal: bool, whether later keys are hidden from queries.
    """
    import tensorflow as tf

    rows = [] if lengths is None else [lengths, lengths]  # for queries and keys
    mask = _MASKS[lengths is not None, causal]

    @tf.custom_gradient
    def attend(query, key, value):
        stored = [query.shape, query.shape[:-1]]  # the result, and one statistic for each softmax
        config = _config(query, key, mask, _PRODUCTS)
        result, statistics, _ = _custom_call(
            _CALL, [query, key, value, *rows], config, [query.dtype, tf.float32, tf.uint8], [*stored, [0]]
        )

        def gradient(upstream):
            config = _config(query, key, mask, _PRODUCTS_OF_GRADIENT)
            operands = [query, key, value, statistics, upstream, result, *rows]
            inputs = (query, key, value)
            types, shapes = [x.dtype for x in inputs], [x.shape for x in inputs]
            return _custom_call(_BACKWARD, operands, config, [*types, tf.uint8], [*shapes, [0]])[:3]

        return result, gradient

    return attend(query, key, value)


def _custom_call(target, operands, config, dtypes, shapes):
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    return gen_xla_ops.xla_custom_call_v2(
        operands=operands, call_target_name=target, backend_config=json.dumps(config), has_side_effect=False,
        result_dtypes=dtypes, result_shapes=shapes,
    )  # fmt: skip


def _config(query, key, mask, products):
    """Returns the configuration of a call, a dict with the field names of XLA's `CudnnfMHABackendConfig`."""
    batch, heads, length, size = query.shape
    layout = {
        "dim_level_types": [], "dim_unique": [], "dim_ordered": [], "minor_to_major": ["3", "2", "1", "0"], "tiles": [],
        "element_size_in_bits": "0", "memory_space": "0", "index_primitive_type": "PRIMITIVE_TYPE_INVALID",
        "pointer_primitive_type": "PRIMITIVE_TYPE_INVALID", "dynamic_shape_metadata_prefix_bytes": "0",
    }  # fmt: skip
    weights = {
        "element_type": {"bfloat16": "BF16", "float16": "F16"}[query.dtype.name],
        "dimensions": [str(n) for n in (batch, heads, length, key.shape[2])],
        "tuple_shapes": [],
        "layout": layout,
        "is_dynamic_dimension": [False] * 4,
    }
    algorithm = {
        "algo_id": "0", "math_type": "TENSOR_OP_MATH", "tuning_knobs": {"17": "1", "24": "0"},
        "is_cudnn_frontend": True, "workspace_size": "0",
    }  # fmt: skip
    config = {
        "algorithm": algorithm, "fmha_scale": size**-0.5, "intermediate_tensor_shape": weights,
        "is_flash_attention": True, "mask_type": mask, "dropout_rate": 0.0, "seed": 42, "sliding_window_length": 0,
        "max_seg_per_batch": 1, "is_paged_attention": False,
    }  # fmt: skip
    for name, (left, right) in products.items():
        config[f"{name}_dot_dimension_numbers"] = {
            "lhs_contracting_dimensions": [str(left)], "rhs_contracting_dimensions": [str(right)],
            "lhs_batch_dimensions": ["0", "1"], "rhs_batch_dimensions": ["0", "1"],
        }  # fmt: skip
    return {"operation_queue_id": "0", "wait_on_operation_queues": [], "cudnn_fmha_backend_config": config}


def plain(query, key, value, lengths=None, causal=True):
    """Computes the same as `fused` with plain operations, which store the attention weights."""
    import tensorflow as tf

    length = query.shape[2]
    is_seen = tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0 if causal else -1)
    if lengths is not None:
        is_seen &= tf.sequence_mask(lengths, length)[:, None, None]
    scores = tf.einsum("bnth,bnsh->bnts", query, key) * tf.cast(query.shape[-1] ** -0.5, query.dtype)
    weights = tf.nn.softmax(tf.where(is_seen, tf.cast(scores, tf.float32), -1e9))
    return tf.einsum("bnts,bnsh->bnth", tf.cast(weights, query.dtype), value)


def compiled(attention):
    """Returns an XLA-compiled function (query, key, value) -> [result, *gradients]."""
    import tensorflow as tf

    @tf.function(jit_compile=True)
    def run(query, key, value):
        with tf.GradientTape() as tape:
            tape.watch([query, key, value])
            result = attention(query, key, value)
            loss = tf.reduce_sum(tf.cast(result, tf.float32) ** 2)
        return [result, *tape.gradient(loss, [query, key, value])]

    return run


def compare():
    """Checks that fused and plain attention agree and measures both; on a CPU, only checks the compiled program."""
    import tensorflow as tf

    shape = _SHAPE if card() else _TOY
    inputs = [tf.cast(tf.random.stateless_normal(shape, (seed, 1)), tf.bfloat16) for seed in range(3)]
    if not card():
        program = compiled(fused).experimental_get_compiler_ir(*inputs)(stage="hlo")
        is_called = all(f'custom_call_target="{name}"' in program for name in (_CALL, _BACKWARD))
        return {"ok": is_called, "says": "XLA's program has both calls, which need a GPU to run"}
    sides = {"fused": compiled(fused), "plain": compiled(plain)}
    results = {name: [tf.cast(x, tf.float32) for x in run(*inputs)] for name, run in sides.items()}
    gaps = [
        float(tf.reduce_max(tf.abs(a - b)) / tf.reduce_max(tf.abs(b))) for a, b in zip(*results.values(), strict=True)
    ]
    figures = {name: [] for name in sides}
    for _ in range(_ROUNDS):
        for name, run in sides.items():
            tf.config.experimental.reset_memory_stats(card().removeprefix("/device:"))
            started = time.perf_counter()
            for _ in range(_TURNS):
                result = run(*inputs)
            result[0].numpy()
            figures[name].append((1e3 * (time.perf_counter() - started) / _TURNS, peak_gb()))
    fastest = {name: min(turns) for name, turns in figures.items()}
    says = f"{max(gaps):.1e} relative difference (result and gradients); " + ", ".join(
        f"{name} {ms:.2f} ms, {gb:.2f} GB" for name, (ms, gb) in fastest.items()
    )
    return {"ok": max(gaps) <= _TOLERANCE, "says": says, "gaps": gaps, "figures": figures}


if __name__ == "__main__":
    if sys.argv[1:] == ["--once"]:
        print(json.dumps(compare()))
    else:
        answer({"compare": compare})
