"""The words that byte-level BPE splits a text into, and the characters that spell their bytes (OpenAI's encoder.py)."""

import functools
import re

from t2t_lite.text.published import character_classes

_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTE_ORDER = [*_PRINTABLE, *(byte for byte in range(256) if byte not in _PRINTABLE)]  # of the bytes' tokens
_CHARACTER_OF = {byte: chr(byte) for byte in _PRINTABLE}
_CHARACTER_OF |= {byte: chr(256 + n) for n, byte in enumerate(BYTE_ORDER[len(_PRINTABLE) :])}
CHARACTERS = "".join(_CHARACTER_OF[byte] for byte in range(256))  # that represent each byte
_SPELLING = dict(enumerate(CHARACTERS))
CONTRACTIONS = ("s", "t", "re", "ve", "m", "ll", "d")  # after an apostrophe


def spelled(word):
    """Returns the UTF-8 bytes of a text as the characters that represent them."""
    return word.encode("utf-8").decode("latin-1").translate(_SPELLING)


def split(text):
    """Returns the words of a text, as GPT-2 splits it; joined, they are the text."""
    return _splitter()(text)


@functools.cache
def _splitter():
    """Returns the function that splits a text: GPT-2's expression with the classes written out."""
    letters, numbers = (character_classes.pattern(character_classes.ranges(name)) for name in "LN")
    spaces = character_classes.pattern(character_classes.SPACES)
    endings = "|".join(f"'{ending}" for ending in CONTRACTIONS)
    runs = f" ?[{letters}]+| ?[{numbers}]+| ?[^{spaces}{letters}{numbers}]+"
    return re.compile(f"{endings}|{runs}|[{spaces}]+(?![^{spaces}])|[{spaces}]+").findall
