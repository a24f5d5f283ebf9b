"""Divides the text of an entry into pieces to translate and what has to stay: line ends, placeholders, tags."""

import collections
import re

# printf's (also with positions, %1$s, and names, %(name)s), braces, tags and entities of markup.
PLACEHOLDERS = re.compile(
    r"%%|%(?:[0-9]+\$|\([0-9A-Za-z_.]+\))?[-+0#']*(?:[0-9]+|\*)?(?:\.(?:[0-9]+|\*))?(?:hh?|ll?|[jztLq])?[@a-zA-Z]\b"
    r"|%(?:[0-9]+\$)?@|[%$#]?\{[^{}]*\}|</?[A-Za-z][^<>]*>|&#?[0-9A-Za-z]+;"
)
_FIXED = re.compile(rf"[\r\n\t]+|{PLACEHOLDERS.pattern}")


class TextPieces:
    """The pieces of a text.

    Args:
        text: str.
        keeps: see `Catalog`; placeholders in these parts stay within their piece.

    Attributes:
        pieces: list of str, one line each, with letters.
    """

    def __init__(self, text, keeps=None):
        self._text, self._parts = text, []
        kept, end = keeps(text) if keeps else [], 0
        for match in _FIXED.finditer(text):
            if any(first <= match.start() and match.end() <= last for first, last in kept):
                continue
            self._parts += [text[end : match.start()], match[0]]
            end = match.end()
        self._parts.append(text[end:])
        self.pieces = [part.strip() for part in self._parts[::2] if _has_letters(part)]

    def joined(self, translations):
        """Returns the translation of the text, or None if a piece has none or the placeholders would differ.

        Args:
            translations: list of str, one for each of the pieces.
        """
        found, parts = iter(translations), []
        for at, part in enumerate(self._parts):
            if at % 2 or not _has_letters(part):
                parts.append(part)
                continue
            if not (translation := next(found).strip()):
                return None
            before, after = len(part) - len(part.lstrip()), len(part.rstrip())
            parts.append(part[:before] + translation + part[after:])
        text = "".join(parts)
        return text if placeholders(text) == placeholders(self._text) else None


def _has_letters(text):
    # A model that protects placeholders gets those with a text around them.
    return any(map(str.isalpha, PLACEHOLDERS.sub("", text)))


def placeholders(text):
    """Returns a Counter of the placeholders of a text."""
    return collections.Counter(PLACEHOLDERS.findall(text))
