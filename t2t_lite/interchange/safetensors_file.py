"""Reads and writes safetensors files, which cannot contain code, with the safetensors package."""

import ml_dtypes  # a dependency of Keras
import numpy as np
import safetensors
import safetensors.numpy

from t2t_lite.errors import UserError

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": ml_dtypes.bfloat16, "I64": "<i8", "I32": "<i4"}


def write_tensors(path, tensors):
    """Writes {name: float32 array} to a local file."""
    contiguous = {name: np.ascontiguousarray(tensor, "<f4") for name, tensor in tensors.items()}
    data = safetensors.numpy.save(contiguous, metadata={"format": "pt"})
    with open(path, "wb") as file:  # the package's save_file creates files that only the owner can read
        file.write(data)


def read_tensors(data, path):
    """Returns {name: array} of a file's bytes; 16-bit and 64-bit floats become float32.

    Args:
        data: bytes.
        path: the file's name, for errors.

    Raises:
        UserError: the file is of another format, truncated or inconsistent.
    """
    try:
        entries = safetensors.deserialize(data)  # a list: safetensors.numpy would refuse bfloat16
        return {name: _array(facts) for name, facts in entries}
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not a whole safetensors file: {reason}. Copy it again.") from None


def _array(facts):
    """Returns a tensor; its bytes are released if they are converted."""
    if facts["dtype"] not in _DTYPES:
        raise ValueError(f"numbers of type {facts['dtype']}, expected one of {', '.join(_DTYPES)}")
    array = np.frombuffer(facts.pop("data"), _DTYPES[facts["dtype"]]).reshape(facts["shape"])
    return array if array.dtype.kind == "i" else array.astype("float32", copy=False)
