"""Normalizes text and splits it into words like published tokenizers, with the same result in every Python version.

`unicodedata` depends on the version of Python, and RE2 and ICU in a graph depend on the version of TensorFlow. If they
were used to classify characters, the ids of rare characters would change with an upgrade, and would differ between
Python and an export. Instead, the table `character_classes.tsv` holds the class that Hugging Face's tokenizers 0.23
assigns to each code point (tests/peers/test_tokenizers.py compares all code points):

* L, N: letters and numbers of Unicode 16, as in the byte-level splitter of tokenizers;
* Mn, P, C: marks, punctuation (including ASCII symbols) and control characters of Unicode 8, as in the BERT normalizer
  of tokenizers.
"""

import functools
import importlib.resources
import re
import unicodedata

import numpy as np

SPACES = ((0x9, 0xD), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029))
SPACES += ((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))  # Unicode's White_Space
# The blocks of ideographs in BERT's code, without 2B820 to 2B91F, which Hugging Face's tokenizers leave out.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


@functools.cache
def ranges(name):
    """Returns the ranges of the class L, N, Mn, P or C, a tuple of (first, last) code points, in order."""
    text = importlib.resources.files(__package__).joinpath("character_classes.tsv").read_text("ascii")
    parts = dict(line.split("\t") for line in text.splitlines())[name]
    pairs = (part.partition("-") for part in parts.split(" "))
    return tuple((int(first, 16), int(last or first, 16)) for first, _, last in pairs)


def code_points(pairs):
    """Returns the set of the code points in some ranges, each (first, last)."""
    return {code for first, last in pairs for code in range(first, last + 1)}


def pattern(pairs):
    """Returns ranges as the contents of a bracket expression for `re`."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in pairs)


def is_in(codes, pairs):
    """Returns whether each code point, int32 of any shape, is in one of the given ranges; works in a graph."""
    import tensorflow as tf

    borders = np.array([(first, last + 1) for first, last in pairs], np.int32).reshape(-1)
    return tf.searchsorted(tf.constant(borders), codes, side="right") % 2 == 1


@functools.cache
def normalization(lower):
    """Returns BERT's table for `str.translate`, {code point: text}; its entries are computed at their first use."""
    return _Normalization(lower)


class _Normalization(dict):
    """Removes control characters, maps every kind of space to a space, and adds spaces around one-character words.

    Each composed character is decomposed and loses its marks, regardless of its neighbors. Unicode's normal form could
    also reorder marks of neighboring characters, but this would matter only for two consecutive spacing marks (Mc) that
    are not in canonical order.
    """

    def __init__(self, lower):
        super().__init__()
        self._lower = lower
        sets = (code_points(ranges(name)) for name in ("C", "Mn", "P"))
        self._controls, self._marks, self._alone = sets
        self._spaces = code_points(SPACES)
        self._alone |= code_points(IDEOGRAPHS)

    def __missing__(self, code):
        self[code] = text = self._normalized(code)
        return text

    def changes(self):
        """Returns {code point: text} for all characters that BERT's normalization changes, in order."""
        # Beyond Unicode's plane 2, only the classes matter, because no character there has a lower case or is composed.
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


_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
# The order of the byte tokens in GPT-2's vocabulary.
BYTE_ORDER = [*_PRINTABLE, *(byte for byte in range(256) if byte not in _PRINTABLE)]
_CHARACTER_OF = {byte: chr(byte) for byte in _PRINTABLE}
_CHARACTER_OF |= {byte: chr(256 + n) for n, byte in enumerate(BYTE_ORDER[len(_PRINTABLE) :])}
CHARACTERS = "".join(_CHARACTER_OF[byte] for byte in range(256))  # for each byte, the character that represents it
_SPELLING = dict(enumerate(CHARACTERS))
CONTRACTIONS = ("s", "t", "re", "ve", "m", "ll", "d")  # the endings of contractions, which follow an apostrophe


def spelled(word):
    """Returns the characters that represent the UTF-8 bytes of a text."""
    return word.encode("utf-8").decode("latin-1").translate(_SPELLING)


def split(text):
    """Splits a text into words like GPT-2; the joined words are the text."""
    return _splitter()(text)


@functools.cache
def _splitter():
    """Returns the function that splits a text, made from GPT-2's regular expression with explicit character classes."""
    letters, numbers = (pattern(ranges(name)) for name in "LN")
    spaces = pattern(SPACES)
    endings = "|".join(f"'{ending}" for ending in CONTRACTIONS)
    runs = f" ?[{letters}]+| ?[{numbers}]+| ?[^{spaces}{letters}{numbers}]+"
    return re.compile(f"{endings}|{runs}|[{spaces}]+(?![^{spaces}])|[{spaces}]+").findall
