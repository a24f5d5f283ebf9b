"""Parses untrusted JSON, and safely refuses anything that this package would not have written."""

import collections
import json
import math
import types
import typing

from t2t_lite.errors import UserError, shown


def parse_json(text, where, schema=None):
    """Parses a JSON text and returns its value.

    Args:
        text: str or UTF-8 bytes.
        where: str, the name of the text or value in error messages, such as a path.
        schema: the value's expected form, see `check_schema`. If None, any form is accepted.

    Raises:
        UserError: the text is not JSON, is nested too deeply, contains a repeated name in an object or a non-finite
            number, or does not match the schema.
    """
    try:
        value = strict_json(text)
    except ValueError as error:
        raise UserError(f"{where}: not readable as JSON: {error}. Copy the file again.") from None
    if schema is not None:
        check_schema(value, schema, where)
    return value


def check_schema(value, schema, where):
    """Raises `UserError`, which names the place of the mismatch, unless a JSON value matches a schema.

    Args:
        value: a JSON value.
        schema: a type or union of types; `[schema]` for a list of such items; `{str: schema}` for an object with any
            names; or `{"name": schema, "other?": schema}` for an object with these names. A question mark means that
            the name is optional, and additional names are allowed. An int also counts as a float, but a bool does not
            count as a number.
        where: str, the name of the text or value in error messages, such as a path.
    """
    if isinstance(schema, list):
        _expect(isinstance(value, list), value, "a list", where)
        for number, item in enumerate(value):
            check_schema(item, schema[0], f"{where}: item {number}")
    elif isinstance(schema, dict):
        _expect(isinstance(value, dict), value, "an object", where)
        if str in schema:
            schema = dict.fromkeys(value, schema[str])
        for name, part in schema.items():
            required, name = not name.endswith("?"), name.removesuffix("?")
            if name in value:
                check_schema(value[name], part, f"{where}: {shown(name)}")
            elif required:
                raise UserError(f"{where}: {shown(name)} is missing.")
    else:
        kinds = typing.get_args(schema) if isinstance(schema, types.UnionType) else (schema,)
        is_kind = isinstance(value, kinds) or (float in kinds and isinstance(value, int))
        is_kind = is_kind and (not isinstance(value, bool) or bool in kinds)
        _expect(is_kind, value, " or ".join(_KINDS[kind] for kind in kinds), where)


_KINDS = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object",
    list: "a list", types.NoneType: "null",
}  # fmt: skip


def _expect(is_right, value, expected, where):
    if not is_right:
        raise UserError(f"{where}: expected {expected}, found {shown(value)}.")


def strict_json(text):
    """Parses JSON from a str or UTF-8 bytes. Raises a one-line `ValueError` for the mistakes named in `parse_json`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite, parse_int=_whole
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:  # also a UnicodeDecodeError
        raise ValueError(str(error).splitlines()[0]) from None


def _object(pairs):
    value = dict(pairs)
    if len(value) < len(pairs):
        repeated = collections.Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{repeated[:80]!r} occurs twice")
    return value


def _constant(name):
    raise ValueError(f"{name} is not a number")


def _whole(digits):
    _finite(digits)  # rejects integers that no float can hold, since Python refuses to parse or print some of them
    return int(digits)


def _finite(digits):
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is too large a number")
    return number


def storable(name, value):
    """Returns a user's value; raises `UserError`, which names the value, if JSON cannot represent it."""
    try:
        if not isinstance(value, bool | int | float | str | list):
            raise TypeError
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise UserError(
            f"{shown(name)}: expected true or false, a finite number, text or a list of such values, found "
            f"{shown(value)}."
        ) from None
    return [*value] if isinstance(value, list) else value
