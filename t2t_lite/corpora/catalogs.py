"""Reads and fills in files of texts and their translations, some of which are missing. Extras register file formats."""

from t2t_lite.corpora import plain_text
from t2t_lite.registry import Registries


class Catalog:
    """A translator's file of texts and translations, in which missing translations are to be filled in.

    A subclass is registered by the extension of its files: `@registry.register_catalog("po")`.

    Args:
        source: path of a file, or another source that `plain_text.open_binary` takes.
        keeps: None, or a function that returns [(start, end)], the parts of a text that the model leaves unchanged.

    Attributes:
        lines: list of str, the texts to translate, each as one line.

    Raises:
        UserError: the file is missing, damaged or in a different format.
    """

    lines: list

    def __init__(self, source, keeps=None):
        raise NotImplementedError

    def translated(self, lines):
        """Returns (contents of the filled-in file, number of translations filled in, number still missing).

        Args:
            lines: list of str, a translation for each entry of the attribute `lines`; "" leaves it untranslated.
        """
        raise NotImplementedError

    @classmethod
    def pairs(cls, source, removed):
        """Yields {"inputs": str, "targets": str} for every finished translation; counts all others in `removed`."""
        raise NotImplementedError


def catalog_of(path):
    """Returns the subclass of `Catalog` for a path's extension (ignoring .gz and the like), or None."""
    ending = plain_text.kind(path).removeprefix(".")
    return Registries.catalogs.get(ending) if is_catalog(path) else None


def is_catalog(path):
    """Returns whether a file format is registered for a path's extension; does not import the format's module."""
    return plain_text.kind(path).removeprefix(".") in Registries.catalogs


def joined_lines(text):
    """Returns a text as one line: line ends and other control characters become spaces."""
    return " ".join(plain_text.CONTROL.sub(" ", text).split())
