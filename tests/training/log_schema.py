"""The fields of `train.log` as docs/train_log.md lists them, and whether a line fits."""

import fnmatch
import itertools
import pathlib
import re

_PAGE = pathlib.Path(__file__).parents[2] / "docs/train_log.md"
_KINDS = {"number": (int, float), "integer": int, "string": str, "boolean": bool, "object": dict, "list": list}


def documented():
    """Returns {event: {field: (type, whether it may lack)}}; the fields of every event are in each.

    `loss_<feature>` stands for fields: it becomes loss_*.
    """
    schema = {}
    for row in re.findall(r"^\| ([\w, ]+) \| (`[\w<>`, ]+`) \| (\w+)(, optional)? \|", _PAGE.read_text(), re.MULTILINE):
        events, fields, kind, optional = row
        for event, field in itertools.product(events.split(", "), re.findall(r"[\w<>]+", fields)):
            schema.setdefault(event, {})[re.sub("<.*>", "*", field)] = (_KINDS[kind], bool(optional))
    common = schema.pop("every")
    return {event: common | fields for event, fields in schema.items()}


def assert_documented(lines):
    """Every line has the documented fields of its event, of the documented types, and no other."""
    schema = documented()
    for line in lines:
        fields = schema[line["event"]]
        assert not [name for name in line if not any(fnmatch.fnmatch(name, field) for field in fields)], line
        for field, (kind, may_lack) in fields.items():
            assert field in line or may_lack, (field, line)
            value = line.get(field)
            is_of_kind = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
            assert value is None or is_of_kind, (field, line)
