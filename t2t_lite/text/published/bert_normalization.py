"""BERT's normalization of text, one character at a time: what becomes of each, and where words begin and end.

Composed characters are decomposed and lose their marks without looking at neighbours, which Unicode's normal form may
reorder: this matters only where two spacing marks (Mc) follow each other in an order that is not canonical.
"""

import functools
import unicodedata

from t2t_lite.text.published import character_classes


@functools.cache
def normalization(lower):
    """Returns the table for `str.translate`: {code point: text}, completed when a character is first met."""
    return _Normalization(lower)


class _Normalization(dict):
    """What becomes of each character: nothing of controls, one space of each kind, spaces around what stands alone."""

    def __init__(self, lower):
        super().__init__()
        self._lower = lower
        sets = (character_classes.code_points(character_classes.ranges(name)) for name in ("C", "Mn", "P"))
        self._controls, self._marks, self._alone = sets
        self._spaces = character_classes.code_points(character_classes.SPACES)
        self._alone |= character_classes.code_points(character_classes.IDEOGRAPHS)

    def __missing__(self, code):
        self[code] = text = self._normalized(code)
        return text

    def changes(self):
        """Returns {code point: text} of all that do not stay as they are, in order."""
        # Beyond plane 2 only the classes change: no character there has a lower case or is composed.
        codes = [*range(0xD800), *range(0xE000, 0x30000), *sorted(self._controls | self._marks | self._alone)]
        found = {code: self._normalized(code) for code in codes}
        return {code: text for code, text in found.items() if text != chr(code)}

    def _normalized(self, code):
        if code in self._controls:
            return ""
        if code in self._spaces:
            return " "
        text = chr(code)
        if self._lower:
            parts = unicodedata.normalize("NFD", text)
            text = "".join(part.lower() for part in parts if ord(part) not in self._marks)
        return "".join(f" {part} " if ord(part) in self._alone else part for part in text)
