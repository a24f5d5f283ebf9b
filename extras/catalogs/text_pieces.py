"""Divides the text of an entry into pieces to translate and parts to keep: line ends, placeholders and tags."""

import collections
import re

# A pair of braces with up to five levels of braces inside, as in {name}, {{name}} and ICU's messages.
_BRACES = r"\{[^{}]*\}"
for _ in range(5):
    _BRACES = rf"\{{[^{{}}]*(?:{_BRACES}[^{{}}]*)*\}}"
# Matches placeholders of printf, which may have a position (%1$s) or a name (%(name)s), placeholders in braces, and the
# tags and entities of markup.
PLACEHOLDERS = re.compile(
    r"%%|%(?:[0-9]+\$|\([0-9A-Za-z_.]+\))?[-+0#']*(?:[0-9]+|\*)?(?:\.(?:[0-9]+|\*))?(?:hh?|ll?|[jztLq])?[@a-zA-Z]\b"
    rf"|%(?:[0-9]+\$)?@|[%$#]?{_BRACES}|</?[A-Za-z][^<>]*>|&#?[0-9A-Za-z]+;"
)
_FIXED = re.compile(rf"[\r\n\t]+|{PLACEHOLDERS.pattern}")


class TextPieces:
    """A text divided into pieces to translate and parts to keep.

    Args:
        text: str.
        keeps: see `Catalog`. Placeholders inside the parts that `keeps` returns do not divide the text.

    Attributes:
        pieces: list of str, the pieces to translate. Each piece is on a single line and contains letters.
    """

    def __init__(self, text, keeps=None):
        self._text, self._parts, end = text, [], 0
        self._kept = spans = keeps(text) if keeps else []
        for match in _FIXED.finditer(text):
            if any(first <= match.start() and match.end() <= last for first, last in spans):
                continue
            self._parts += [text[end : match.start()], match[0]]
            end = match.end()
        self._parts.append(text[end:])
        self.pieces = [part.strip() for part in self._parts[::2] if _has_letters(part)]

    @property
    def has_open_braces(self):
        """Whether a brace to translate lacks its counterpart in the text."""
        closed = [*self._kept, *(match.span() for match in PLACEHOLDERS.finditer(self._text))]
        places = {at for first, last in closed for at in range(first, last)}
        return any(letter in "{}" and at not in places for at, letter in enumerate(self._text))

    def joined(self, translations):
        """Returns the translation of the text, or None if a translation is blank or has different placeholders.

        Args:
            translations: list of str, one per piece.
        """
        remaining, parts = iter(translations), []
        for at, part in enumerate(self._parts):
            if at % 2 or not _has_letters(part):
                parts.append(part)
                continue
            if not (translation := next(remaining).strip()):
                return None
            before, after = len(part) - len(part.lstrip()), len(part.rstrip())
            parts.append(part[:before] + translation + part[after:])
        text = "".join(parts)
        return text if placeholders(text) == placeholders(self._text) else None


def _has_letters(text):
    # A part that contains only placeholders is not translated, even if the model can keep placeholders.
    return any(map(str.isalpha, PLACEHOLDERS.sub("", text)))


def placeholders(text):
    """Returns a Counter of the placeholders of a text."""
    return collections.Counter(PLACEHOLDERS.findall(text))
