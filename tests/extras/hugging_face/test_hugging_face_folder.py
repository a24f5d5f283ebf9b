"""Files of tensors: types of numbers, and what is written is read."""

import ml_dtypes
import numpy as np
import pytest

from t2t_lite.extras.hugging_face.hugging_face_folder import read_tensors, write_tensors


@pytest.mark.parametrize(
    "name, dtype, expected",
    [("F64", "<f8", "float32"), ("F32", "<f4", "float32"), ("F16", "<f2", "float32"),
     ("BF16", ml_dtypes.bfloat16, "float32"), ("I64", "<i8", "int64"), ("I32", "<i4", "int32"),
     ("U8", "u1", "uint8"), ("BOOL", "?", "bool")],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_types_of_numbers(name, dtype, expected):
    """A file as the format's specification has it, byte by byte."""
    values = np.array([[1, -2, 0], [96, 4, 3]]).astype(dtype)
    header = f'{{"x": {{"dtype": "{name}", "shape": [2, 3], "data_offsets": [0, {values.nbytes}]}}}}'.encode()
    found = read_tensors(len(header).to_bytes(8, "little") + header + values.tobytes(), "file")["x"]
    assert found.dtype == expected
    np.testing.assert_array_equal(found, values.astype(expected))


def test_what_is_written_is_read(tmp_path):
    tensors = {"matrix": np.arange(6, dtype="float32").reshape(2, 3).T, "vector": np.ones(3, "float32")}
    write_tensors(tmp_path / "file", tensors)
    found = read_tensors((tmp_path / "file").read_bytes(), "file")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor)
