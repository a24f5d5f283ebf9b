"""Classes of characters by which published tokenizers split text, the same in every version of Python.

`unicodedata` follows Python's version, and RE2 and ICU in a graph follow TensorFlow's, so the ids of rare characters
would change with an upgrade, and differ between Python and an export. The table beside this file holds what Hugging
Face's tokenizers 0.23 does for each code point (tests/peers/test_tokenizers.py compares all of them):

* L, N: letters and numbers of Unicode 16, as its byte-level splitter has them;
* Mn, P, C: the marks, the punctuation (with ASCII's symbols), and the controls of its BERT normalizer, from Unicode 8.
"""

import functools
import importlib.resources

import numpy as np

SPACES = ((0x9, 0xD), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029))
SPACES += ((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))  # Unicode's White_Space
# The blocks of ideographs in BERT's code, including the gap of Hugging Face's tokenizers from 2B820 to 2B91F.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


@functools.cache
def ranges(name):
    """Returns the class L, N, Mn, P or C as a tuple of (first, last) code points, in order."""
    text = importlib.resources.files(__package__).joinpath("character_classes.tsv").read_text("ascii")
    parts = dict(line.split("\t") for line in text.splitlines())[name]
    pairs = (part.partition("-") for part in parts.split(" "))
    return tuple((int(first, 16), int(last or first, 16)) for first, _, last in pairs)


def code_points(pairs):
    """Returns the set of the code points in ranges."""
    return {code for first, last in pairs for code in range(first, last + 1)}


def pattern(pairs):
    """Returns ranges as the contents of a bracket expression of `re`."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in pairs)


def is_in(codes, pairs):
    """In a graph: int32 of any shape -> bool of that shape, whether each code point is in the ranges."""
    import tensorflow as tf

    borders = np.array([(first, last + 1) for first, last in pairs], np.int32).reshape(-1)
    return tf.searchsorted(tf.constant(borders), codes, side="right") % 2 == 1
