"""Compares the settings that a command requests with the stored settings of an earlier command."""

from typing import NamedTuple


class Difference(NamedTuple):
    """A setting whose stored value `stored` differs from the requested value `requested`. A missing value is None."""

    name: str
    stored: object
    requested: object


class Request:
    """Compares the settings that a command requests with the settings of existing results.

    Args:
        requested, stored: {name: value}, the requested and the stored settings. A missing name counts as None.
        names: names to compare, in this order, or None for all names.

    Attributes:
        changes: {name: [stored value, requested value]} of the settings that differ.
    """

    def __init__(self, requested, stored, names=None):
        names = {**stored, **requested} if names is None else names
        both = {name: [stored.get(name), requested.get(name)] for name in names}
        self.changes = {name: values for name, values in both.items() if values[0] != values[1]}

    @property
    def first(self):
        """The first `Difference`, or None if all settings are equal."""
        return next((Difference(name, *values) for name, values in self.changes.items()), None)

    def difference(self):
        """Formats the differences, such as "num_heads: 4 -> 8, pos: timing -> none", or "" if there are none."""
        return ", ".join(f"{name}: {stored} -> {requested}" for name, (stored, requested) in self.changes.items())
