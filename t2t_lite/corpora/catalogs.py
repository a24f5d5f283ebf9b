"""Files that hold texts with their translations, of which some may be missing; extras register the kinds."""

from t2t_lite.corpora import plain_text
from t2t_lite.registry import Registries


class Catalog:
    """A file of translators, opened to fill in missing translations.

    A subclass is registered by the extension of its files: `@registry.register_catalog("po")`.

    Args:
        source: path of a file, or another source that `plain_text.open_binary` takes.
        keeps: None, or a function of a text that returns [(start, end)] of the parts that the model leaves unchanged.

    Attributes:
        lines: list of str, the texts to translate, each one line.

    Raises:
        UserError: the file is missing, damaged or of another kind.
    """

    lines: list

    def __init__(self, source, keeps=None):
        raise NotImplementedError

    def translated(self, lines):
        """Returns (the file with missing translations filled in, bytes; how many; how many are still missing).

        Args:
            lines: list of str, the translations of `lines`; "" where there is none.
        """
        raise NotImplementedError

    @classmethod
    def pairs(cls, source, removed):
        """Yields {"inputs": str, "targets": str} for every finished translation; `removed`, a Counter, has the rest."""
        raise NotImplementedError


def catalog_of(path):
    """Returns the subclass of `Catalog` for a path's extension (without .gz and the like), or None."""
    ending = plain_text.kind(path).removeprefix(".")
    return Registries.catalogs.get(ending) if is_catalog(path) else None


def is_catalog(path):
    """Returns whether the extension of a path is that of a registered kind; imports none."""
    return plain_text.kind(path).removeprefix(".") in Registries.catalogs


def joined_lines(text):
    """Returns a text as one line: line ends and other control characters become spaces."""
    return " ".join(plain_text.CONTROL.sub(" ", text).split())
