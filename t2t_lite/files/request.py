"""Compares the settings that a command requests with the stored settings of an earlier command."""

from typing import NamedTuple


class Difference(NamedTuple):
    """A setting whose stored value `there` differs from the requested value `asked`. A missing value is None."""

    name: str
    there: object
    asked: object


class Request:
    """Compares the settings that a command requests with the settings of existing results.

    Args:
        asked, there: {name: value}, the requested and the stored settings. A missing name counts as None.
        names: names to compare, in this order, or None for all names.

    Attributes:
        changes: {name: [stored value, requested value]} of the settings that differ.
    """

    def __init__(self, asked, there, names=None):
        names = {**there, **asked} if names is None else names
        both = {name: [there.get(name), asked.get(name)] for name in names}
        self.changes = {name: values for name, values in both.items() if values[0] != values[1]}

    @property
    def first(self):
        """The first `Difference`, or None if all settings are equal."""
        return next((Difference(name, *values) for name, values in self.changes.items()), None)

    def difference(self):
        """Formats the differences, such as "num_heads: 4 -> 8, pos: timing -> none", or "" if there are none."""
        return ", ".join(f"{name}: {there} -> {asked}" for name, (there, asked) in self.changes.items())
