"""BERT's normalisation of text, one character at a time: what becomes of each, and where words begin and end.

Composed characters are decomposed and lose their marks without looking at neighbours, which Unicode's normal form may
reorder: this matters only where two spacing marks (Mc) follow each other in an order that is not canonical.
"""

import functools
import unicodedata

from t2t_lite.text.published import character_classes

# As BERT's code lists the blocks of ideographs. A gap of Hugging Face's tokenizers, 2B820 to 2B91F, is kept.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


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
        self._alone |= character_classes.code_points(_IDEOGRAPHS)

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
