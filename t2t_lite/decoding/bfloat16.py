"""Checks whether this machine has instructions for bfloat16; measures how much faster they make matrix products."""

import os
import time

import tensorflow as tf

from t2t_lite.errors import LOGGER
from t2t_lite.settings.ranges import COMPUTE_DTYPES, Choices, typed_value

_CPU_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # CPU flags for bfloat16 instructions: two for x86, one for ARM
_GPU_CAPABILITY = (8, 0)  # compute capability of Ampere, the first GPUs with bfloat16
_MOST_ROWS = 2048  # maximum number of rows of a measured matrix product, so that it takes only milliseconds
_WORTHWHILE = 1.5  # minimum speedup of matrix products; a smaller speedup hardly affects the time per step
_SMALLEST = 256  # minimum hidden_size, since in narrower models other operations take most of the time


def usable_dtype(dtype, check_device=True, cpuinfo="/proc/cpuinfo"):
    """Returns `dtype`, or "float32" with a warning if this machine has no instructions for bfloat16.

    Without such instructions oneDNN falls back to code that is many times slower.

    Args:
        dtype: "float32", "bfloat16", or None for the dtype that the model was trained in.
        check_device: bool; if False, `dtype` is returned without checking the machine.
        cpuinfo: path of the file in which Linux describes the CPU.

    Raises:
        UserError: the dtype is unknown.
    """
    dtype = typed_value("compute_dtype", dtype, str | None, Choices(COMPUTE_DTYPES))
    missing = _missing_for_bfloat16(cpuinfo) if dtype == "bfloat16" and check_device else ""
    if not missing:
        return dtype
    LOGGER.warning(f"compute_dtype=bfloat16: {missing}, so it would be slower than float32. Using float32.")
    return "float32"


def _missing_for_bfloat16(cpuinfo="/proc/cpuinfo"):
    """Returns the reason why bfloat16 is slow on this machine, or "" if bfloat16 is fast."""
    if gpus := tf.config.list_physical_devices("GPU"):
        levels = [tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) for gpu in gpus]
        return "" if min(levels) >= _GPU_CAPABILITY else "a GPU's compute capability is below 8.0"
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        return "TF_ENABLE_ONEDNN_OPTS=0 disables the CPU's bfloat16 kernels"
    try:
        with open(cpuinfo) as file:
            words = set(file.read().split())
    except OSError:
        words = set()  # not Linux: assume that bfloat16 is slow
    return "" if words & _CPU_FLAGS else "this CPU has no bfloat16 instructions (AVX512-BF16, AMX or ARM's BF16)"


def suggest(setting, hparams, rows):
    """Measures for half a second whether bfloat16 is faster on this CPU. If it is, logs a hint to use it.

    Nothing is measured for small models, for models that do not compute in float32, or on a GPU.

    Args:
        setting: str, the flag that the user would add to the command.
        hparams: dict, hyperparameters of the model: dtype_policy, hidden_size and filter_size.
        rows: int, the number of tokens per step, which are the rows of the matrix products.
    """
    is_large = hparams["dtype_policy"] == "float32" and hparams["hidden_size"] >= _SMALLEST
    if not is_large or tf.config.list_physical_devices("GPU") or _missing_for_bfloat16():
        return
    factor = speedup(min(rows, _MOST_ROWS), hparams["hidden_size"], hparams["filter_size"])
    if factor >= _WORTHWHILE:
        LOGGER.info(
            f"bfloat16: matrix products of the model's size are {factor:.1f} times as fast in bfloat16 as in float32 "
            f"on this CPU (just measured). To use bfloat16, add {setting}."
        )


def speedup(rows, inputs, outputs, seconds=0.5):
    """Returns the speedup of a matrix product [rows, inputs] x [inputs, outputs] in bfloat16 relative to float32.

    Args:
        rows, inputs, outputs: int.
        seconds: float, how long to measure bfloat16 and float32 products alternately. Only the shortest time of each
            dtype counts.
    """
    product, best = tf.function(tf.matmul), {tf.float32: float("inf"), tf.bfloat16: float("inf")}
    factors = {dtype: (tf.ones((rows, inputs), dtype), tf.ones((inputs, outputs), dtype)) for dtype in best}
    for dtype in best:
        product(*factors[dtype])  # traces the function before the measurement
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or max(best.values()) == float("inf"):
        for dtype in best:
            begin = time.perf_counter()
            product(*factors[dtype]).numpy()
            best[dtype] = min(best[dtype], time.perf_counter() - begin)
    return best[tf.float32] / best[tf.bfloat16]
