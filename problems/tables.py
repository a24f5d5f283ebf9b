"""Reads the `.tsv` tables beside the modules of problems."""

import collections
import csv
import importlib.resources


def read_table(package, name, **convert):
    """Returns the rows of `<name>.tsv` in a package as named tuples of its columns, named by its first line.

    Columns are strings, "" if a line is too short; `convert` gives other types: {column: function of a string}.
    """
    text = (importlib.resources.files(package) / f"{name}.tsv").read_text(encoding="utf-8")
    reader = csv.DictReader(text.splitlines(), delimiter="\t", restval="")
    row_of = collections.namedtuple(name, reader.fieldnames)
    return [row_of(**{column: convert.get(column, str)(text) for column, text in row.items()}) for row in reader]


def words(text):
    """Returns the words of a column that holds several, as a tuple."""
    return tuple(text.split())
