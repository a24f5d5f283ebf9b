"""Converts between tensors and the JSON of TensorFlow Serving's REST API, in row and column format.

Formats and error messages follow TensorFlow Serving's json_tensor.cc, but JSON is parsed more strictly: NaN, Infinity,
invalid UTF-8, an unpaired surrogate, a repeated name and text after the object are errors.
"""

import base64
import binascii
import json

import numpy as np

from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.files.safe_json import strict_json

_NAMES = {"float32": "float", "float64": "double"}  # all other types have the same name in Python and C++
_MOST_SHOWN = 256  # maximum number of characters of a value in a message
_NUMBERS_AT_ONCE = 10_000
_MOST_AXES = 32  # maximum number of axes of an array; NumPy supports up to 64


def parse_body(body):
    """Returns the JSON object in a request's body, bytes. Raises `Refusal` if the body is invalid."""
    if not body:
        raise Refusal("JSON Parse error: The document is empty")
    try:
        request = strict_json(body)
    except ValueError as error:
        raise Refusal(f"JSON Parse error: {error}") from None
    if b"\\ud" in body.lower():  # an escaped surrogate
        try:
            json.dumps(request, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Refusal("JSON Parse error: The surrogate pair in string is invalid.") from None
    if not isinstance(request, dict):
        raise _invalid(request, "Is not object")
    if not isinstance(request.get("signature_name", ""), str):
        raise _invalid(request, "not formatted correctly. 'signature_name' key must be a string value.")
    return request


def tensors_of(request, specs):
    """Returns ({input: array}, whether the request is in row format). Texts become object arrays of bytes.

    Args:
        request: dict from `parse_body`, with "instances" (row format) or "inputs" (column format).
        specs: {input: tf.TensorSpec}, the inputs of the signature.

    Raises:
        Refusal: the format, a type or a shape is wrong.
    """
    is_row = "instances" in request
    if is_row and "inputs" in request:
        raise _invalid(request, "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist")
    if not is_row and "inputs" not in request:
        raise Refusal("Missing 'inputs' or 'instances' key")
    parse = _from_rows if is_row else _from_columns
    tensors = parse(request["instances" if is_row else "inputs"], {name: spec.dtype for name, spec in specs.items()})
    for name, tensor in tensors.items():
        if not specs[name].shape.is_compatible_with(tensor.shape):
            raise Refusal(f"input {name}: expected the shape {specs[name].shape}, found {tensor.shape}")
    return tensors, is_row


def rows_of(request, specs):
    """Estimates the number of rows that `tensors_of` would read; returns 1 if it cannot be determined."""
    values = request.get("instances", request.get("inputs"))
    is_named = "instances" not in request and _is_object(values)
    columns = [values.get(name) for name in specs] if is_named else [values]
    return max((len(column) for column in columns if isinstance(column, list)), default=1)


def body_of(outputs, is_row):
    """Returns the body of an answer, bytes, for {output: array} whose first axis is the batch."""
    columns = {name: _plain(name, value) for name, value in outputs.items()}
    if len(columns) == 1:
        (answer,) = columns.values()
    elif is_row:
        answer = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    else:
        answer = columns
    return to_json({"predictions" if is_row else "outputs": answer})


def to_json(value):
    """Returns a value as JSON, encoded in UTF-8."""
    return _json(value, levels=4).encode("utf-8", "backslashreplace")  # an escape such as \ud800 is valid JSON


def _json(value, levels):
    """Returns `json.dumps(value)`, computed row by row because a call of `json` blocks all other threads."""
    if levels and isinstance(value, dict):
        return f"{{{', '.join(f'{_json(name, 0)}: {_json(item, levels - 1)}' for name, item in value.items())}}}"
    if levels and isinstance(value, list) and value and isinstance(value[0], list | dict):
        return f"[{', '.join(_json(item, levels - 1) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _from_rows(rows, dtypes):
    if not isinstance(rows, list):
        raise _invalid(rows, "Expecting 'instances' to be an list/array")
    if not rows:
        raise _invalid(rows, "No values in 'instances' array")
    are_objects = _is_object(rows[0])
    if not are_objects and len(dtypes) > 1:
        raise Refusal(
            "instances is a plain list, but expecting list of objects as multiple input tensors required as per "
            f"tensorinfo_map: {', '.join(sorted(dtypes))}"
        )
    tensors_by_name = {name: [] for name in dtypes}
    for number, row in enumerate(rows):
        if _is_object(row) != are_objects:
            expected = "object but got list" if are_objects else "value/list but got object"
            raise Refusal(f"Expecting {expected} at item {number} of input list")
        row = row if are_objects else dict.fromkeys(dtypes, row)
        if row.keys() != dtypes.keys():
            raise Refusal(
                f"Failed to process element: {number} of 'instances' list. JSON object: {_beginning(row)} keys must be "
                f"equal to: {','.join(sorted(dtypes))}"
            )
        for name, value in row.items():
            try:
                tensor = _tensor(value, dtypes[name])
                if tensors_by_name[name] and tensor.shape != tensors_by_name[name][0].shape:
                    raise Refusal(f"Expecting shape {_brackets(tensors_by_name[name][0])} but got: {_brackets(tensor)}")
            except Refusal as error:
                key = f" key: {name}" if are_objects else ""
                where = f"Failed to process element: {number}{key} of 'instances' list."
                raise Refusal(f"{where} Error: {error.code}: {error.message}", error.code) from None
            tensors_by_name[name].append(tensor)
    return {name: np.stack(tensors) for name, tensors in tensors_by_name.items()}


def _from_columns(columns, dtypes):
    if not _is_object(columns):
        if len(dtypes) > 1:
            raise Refusal(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as per "
                f"tensorinfo_map: {', '.join(sorted(dtypes))}"
            )
        columns = dict.fromkeys(dtypes, columns)
    for name in dtypes:
        if name not in columns:
            raise Refusal(f"Missing named input: {name} in 'inputs' object.")
    return {name: _tensor(columns[name], dtype) for name, dtype in dtypes.items()}


def _tensor(value, dtype):
    """Converts a JSON value to an array with an axis for each level of nested lists."""
    shape, item = [], value
    while isinstance(item, list):
        shape.append(len(item))
        item = item[0] if item else None
    if len(shape) > _MOST_AXES:
        raise _invalid(value, f"has lists in {len(shape)} levels. Expected at most {_MOST_AXES}.")
    values = []
    _collect(value, 0, shape, dtype, values)
    return np.array(values, dtype.as_numpy_dtype).reshape(shape)


def _collect(value, level, shape, dtype, values):
    if not isinstance(value, list):
        if level != len(shape):
            raise _invalid(
                value, f"found at incorrect level: {level + 1} in the JSON DOM. Expected at level: {len(shape)}"
            )
        values.append(_scalar(value, dtype))
        return
    if level >= len(shape):
        raise Refusal(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise Refusal(
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: {shape[level]}"
        )
    for item in value:
        _collect(item, level + 1, shape, dtype, values)


def _scalar(value, dtype):
    """Returns a JSON value as bytes, bool, int or float for an array of `dtype`. Raises `Refusal`."""
    if dtype == "string" and isinstance(value, str):
        return value.encode()
    if dtype == "string" and isinstance(value, dict):
        if not _is_base64(value):
            raise _invalid(value, "not formatted correctly for base64 data")
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError):  # ValueError: the text is not ASCII
            raise Refusal("Unable to base64 decode") from None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if dtype == "bool":
        is_right = isinstance(value, bool)
    elif dtype.is_floating:
        is_right = is_number and abs(value) <= float(dtype.max)
    else:
        is_right = dtype.is_integer and isinstance(value, int) and is_number and dtype.min <= value <= dtype.max
    if not is_right:
        name = _NAMES.get(dtype.name, dtype.name)
        raise _invalid(value, f"Type: {_json_type(value)} is not of expected type: {name}")
    return value


def _plain(name, tensor):
    """Returns an array as a JSON value."""
    if tensor.dtype == object:
        return _map(_bytes_object if name.endswith("_bytes") else _text, tensor.tolist())
    if tensor.dtype == np.float32:
        if tensor.ndim > 1 and tensor.size > _NUMBERS_AT_ONCE:  # other threads wait while NumPy formats numbers
            return [_plain(name, row) for row in tensor]
        return short_floats(tensor)
    return tensor.tolist()


def short_floats(array):
    """Returns a float32 array as nested lists of float, which have only as many digits as identify a float32."""
    return array.astype(str).astype(float).tolist()


def _map(function, value):
    return [_map(function, item) for item in value] if isinstance(value, list) else function(value)


def _text(value):
    return value.decode("utf-8", "replace")


def _bytes_object(value):
    return {"b64": base64.b64encode(value).decode()}


def _is_base64(value):
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def _is_object(value):
    return isinstance(value, dict) and not _is_base64(value)


def _json_type(value):
    names = {type(None): "Null", str: "String", list: "Array", dict: "Object"}
    return str(value) if isinstance(value, bool) else names.get(type(value), "Number")


def _brackets(tensor):
    return f"[{','.join(map(str, tensor.shape))}]"


def _invalid(value, complaint):
    return Refusal(f"JSON Value: {_beginning(value)} {complaint}")


def _beginning(value):
    """Returns the beginning of a value's JSON. Does not encode all of a large value."""
    text, encoder = "", json.JSONEncoder()  # ASCII, because a value may contain an unpaired surrogate
    for part in encoder.iterencode(value):
        text += part[:_MOST_SHOWN]
        if len(text) > _MOST_SHOWN:
            return text[:_MOST_SHOWN]
    return text
