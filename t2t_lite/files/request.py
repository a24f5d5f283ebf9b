"""What a command is asked for, compared with what is there from an earlier one."""

from typing import NamedTuple


class Difference(NamedTuple):
    """A setting that has one value in what is there, and another one in what is asked for; None: it has none."""

    name: str
    there: object
    asked: object


class Request:
    """Settings that results depend on, as they are asked for and as they are in the results that are there.

    Args:
        asked, there: {name: value}; a missing name counts as None.
        names: those to compare, in this order; None: all of both.

    Attributes:
        changes: {name: [value there, value asked for]} of those that differ.
    """

    def __init__(self, asked, there, names=None):
        names = {**there, **asked} if names is None else names
        both = {name: [there.get(name), asked.get(name)] for name in names}
        self.changes = {name: values for name, values in both.items() if values[0] != values[1]}

    @property
    def first(self):
        """The first `Difference`, or None if there is none."""
        return next((Difference(name, *values) for name, values in self.changes.items()), None)

    def difference(self):
        """Returns the differences in words, such as "num_heads: 4 -> 8, pos: timing -> none"; "" if there is none."""
        return ", ".join(f"{name}: {there} -> {asked}" for name, (there, asked) in self.changes.items())
