"""BERT's normalization of text, character by character, which also determines where words begin and end.

Composed characters are decomposed and lose their marks regardless of their neighbors, which Unicode's normal form may
reorder: this matters only for two consecutive spacing marks (Mc) in an order that is not canonical.
"""

import functools
import unicodedata

from t2t_lite.text.published import character_classes


@functools.cache
def normalization(lower):
    """Returns the table for `str.translate`: {code point: text}, filled when a character first occurs."""
    return _Normalization(lower)


class _Normalization(dict):
    """Maps controls to nothing, every kind of space to a space, and adds spaces around words of one character."""

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
        """Returns {code point: text} of all characters that change, in order."""
        # Beyond plane 2 only the classes matter: no character there has a lower case or is composed.
        codes = [*range(0xD800), *range(0xE000, 0x30000), *sorted(self._controls | self._marks | self._alone)]
        texts = {code: self._normalized(code) for code in codes}
        return {code: text for code, text in texts.items() if text != chr(code)}

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
