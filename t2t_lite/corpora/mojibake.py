"""Finds mojibake: UTF-8 that a program has read in another encoding and saved, such as `grÃ¶ÃŸe` for `größe`."""

import re

from t2t_lite.corpora.scripts import script_of

_REPLACEMENT = "\ufffd"  # stands for bytes that a program could not read
# Other encodings in which whole texts are misread, and the fewest sequences that count. In most, two letters may be
# adjacent by chance, as in `—École`; those of DOS have lines of boxes.
_OTHERS = {"cp1250": 2, "cp1251": 2, "cp1253": 2, "cp1254": 2, "mac_roman": 2, "cp437": 1, "cp850": 1, "cp866": 2}
_PAIR = re.compile(r"[^\x00-\x7f]{2}")
_ALONE = re.compile(r"(?<![^\x00-\x7f])[^\x00-\x7f](?![^\x00-\x7f])")


# Of Windows-1252 from byte 0x80; its five gaps are those of Latin-1, as in browsers.
_CHARACTERS = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}
_BYTES = {ord(character): byte for byte, character in _CHARACTERS.items()} | {byte: byte for byte in range(0x80, 0xA0)}


def _among(first, last):
    characters = "".join(chr(point) for point, byte in _BYTES.items() if first <= byte <= last)
    return f"[{re.escape(characters)}]"


_NEXT = _among(0x80, 0xBF)
# The bytes of one character in UTF-8, read as Windows-1252 or Latin-1.
_SEQUENCE = re.compile(f"{_among(0xC2, 0xDF)}{_NEXT}|{_among(0xE0, 0xEF)}{_NEXT}{{2}}|{_among(0xF0, 0xF4)}{_NEXT}{{3}}")


def is_mojibake(text):
    """Returns whether a text is mojibake, in whole or in part, or contains U+FFFD in place of unreadable bytes.

    Correct text may contain such sequences by chance: `CAFÉ™`, `«IRMÃ»`, `è…”`. So a sequence counts only if the
    character that it stands for fits the letters beside it.
    """
    if text.isascii():
        return False
    if _REPLACEMENT in text:
        return True
    if not _PAIR.search(text):  # a character has at least two bytes
        return False
    return _has_sequences(text) or (
        not _ALONE.search(text) and any(_is_read_as(text, *other) for other in _OTHERS.items())
    )


def _has_sequences(text):
    foreign = 0
    for match in _SEQUENCE.finditer(text):
        try:
            character = bytes(_BYTES[ord(c)] for c in match[0]).decode("utf-8")
        except UnicodeDecodeError:
            continue
        left, right = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        if not (character.isprintable() or character in "\u00a0\u00ad\ufeff\ufffd"):
            continue
        if left.isupper() and not right.isalpha():  # a capital letter, and the punctuation behind it
            continue
        if not character.isalpha() or script_of(character) in ("LATIN", ""):
            return True
        is_glued = (left.isascii() and left.isalpha()) or (right.isascii() and right.isalpha())
        foreign += not is_glued
    return foreign > 1  # one may occur by chance


def _is_read_as(text, encoding, fewest):
    """Returns whether a whole text is UTF-8 misread in an encoding, with at least `fewest` non-ASCII characters."""
    try:
        original = text.encode(encoding).decode("utf-8")
    except UnicodeError:
        return False
    return sum(not character.isascii() for character in original) >= fewest
