"""The safetensors format: eight bytes of length, a JSON header, then the tensors' bytes. Nothing in it is code."""

import json
import math

import ml_dtypes  # Keras brings it along
import numpy as np

from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import check_schema, parse_json

_DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
}
_LONGEST_AXIS = 2**40
_LONGEST_HEADER = 100_000_000  # bytes, as the format has it


def write_tensors(path, tensors):
    """Writes {name: float32 array} to a local file."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + 4 * tensor.size]}
        at += 4 * tensor.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of eight bytes
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor, "<f4").tobytes())


def read_tensors(data, path):
    """Returns {name: array} of a file's bytes; 16-bit and 64-bit floats come as float32.

    Args:
        data: bytes.
        path: the file's name, for errors.

    Raises:
        UserError: not such a file, or one that is cut off or contradicts itself.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(_LONGEST_HEADER, len(data) - 8):
        raise UserError(f"{path}: not a safetensors file, or only its beginning ({len(data):,} bytes). Copy it again.")
    header = parse_json(data[8 : 8 + length], f"{path}: the header", _LONGEST_HEADER, dict)
    header.pop("__metadata__", None)
    check_schema(header, {str: {"dtype": str, "shape": [int], "data_offsets": [int]}}, path)
    try:
        used = sum(facts["data_offsets"][1] - facts["data_offsets"][0] for facts in header.values())
        if used > len(data):  # the same bytes as many tensors would fill any memory
            raise ValueError(f"{used:,} bytes of tensors in a file of {len(data):,}")
        return {name: _tensor(facts, memoryview(data)[8 + length :]) for name, facts in header.items()}
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        reason = f"no such type of numbers: {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(f"{path}: not a whole safetensors file: {reason}. Copy it again.") from None


def _tensor(facts, data):
    dtype, shape = _DTYPES[facts["dtype"]], facts["shape"]
    begin, end = facts["data_offsets"]
    is_there = 0 <= begin <= end <= len(data) and all(0 <= n <= _LONGEST_AXIS for n in shape)
    if not is_there or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(
            f"a tensor of shape {shown(shape)} is at bytes {shown(begin)} to {shown(end)} of {len(data):,}"
        )
    array = np.frombuffer(data[begin:end], dtype).reshape(shape)
    return array if array.dtype.kind == "i" else array.astype("float32")
