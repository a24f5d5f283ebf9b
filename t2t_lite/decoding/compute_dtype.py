"""The dtype in which a trained model decodes, and whether this machine is fast in it."""

import logging
import os

import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import COMPUTE_DTYPES

_LOGGER = logging.getLogger("t2t_lite")
_CPU_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # x86's two kinds of instructions, and ARM's
_GPU_CAPABILITY = (8, 0)  # Ampere, the first with bfloat16


def usable_dtype(dtype, check_device=True, cpuinfo="/proc/cpuinfo"):
    """Returns `dtype`, or "float32" with a warning if this machine has no instructions for bfloat16.

    Without them oneDNN falls back to code that is many times slower.

    Args:
        dtype: "float32", "bfloat16", or None for the dtype that the model was trained in.
        check_device: bool, False returns `dtype` on any machine.
        cpuinfo: path of Linux's description of the CPU.

    Raises:
        UserError: another dtype.
    """
    if dtype is not None and dtype not in COMPUTE_DTYPES:
        raise UserError(f"compute_dtype={dtype}: expected {' or '.join(COMPUTE_DTYPES)}.")
    missing = _missing_for_bfloat16(cpuinfo) if dtype == "bfloat16" and check_device else ""
    if not missing:
        return dtype
    _LOGGER.warning(f"compute_dtype=bfloat16: {missing}, so it would be slower than float32. float32 is used.")
    return "float32"


def _missing_for_bfloat16(cpuinfo):
    """Returns what this machine lacks, or "" if it lacks nothing."""
    if gpus := tf.config.list_physical_devices("GPU"):
        found = [tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) for gpu in gpus]
        return "" if min(found) >= _GPU_CAPABILITY else "a GPU's compute capability is below 8.0"
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        return "TF_ENABLE_ONEDNN_OPTS=0 turns the CPU's kernels for it off"
    try:
        with open(cpuinfo) as file:
            words = set(file.read().split())
    except OSError:
        words = set()  # not Linux: nothing is known
    return "" if words & _CPU_FLAGS else "this CPU has neither AVX512-BF16 nor AMX"
