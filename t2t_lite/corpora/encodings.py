"""Detects the compression and encoding of text files, advises on text that is not UTF-8, and detects mojibake."""

import codecs
import itertools
import re
import unicodedata

from t2t_lite.corpora.scripts import script_of
from t2t_lite.errors import UserError
from t2t_lite.files import PACKERS

HEAD = 2**16  # number of bytes at the beginning of a file that are examined
_PACKED = {  # {extension, see `files.PACKERS`: first bytes}; no UTF-8 text begins with these bytes
    ".gz": re.compile(rb"\x1f\x8b\x08"),
    ".bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\0"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd"),
}
_OTHER_FORMATS = (  # (pattern of the first bytes, what the file is, how to turn it into text)
    (rb"\x04\x22\x4d\x18", "lz4 data", "Unpack it: lz4 -d"),
    (rb"\x1f\x9d", "data of compress", "Unpack it: gzip -d"),
    (rb"PK\x03\x04", "a zip archive, or a document in zip format", "Unpack it: unzip, or save the document as text"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it: 7z x"),
    (rb"Rar!\x1a\x07", "a RAR archive", "Unpack it: unrar x"),
    (rb"%PDF-", "a PDF", "Extract its text"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an office document", "Save it as text"),
    (rb"PAR1\x15", "a Parquet table", "Write its columns as text"),
    (rb"(?s:.{257})ustar(\0|  \0)", "a tar archive", "Unpack it: tar -xf"),
)
_MARKS = (  # byte order marks; the mark of UTF-32 begins with the mark of UTF-16
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_WIDE = ("UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE")
_NO_TEXT = {"Cc", "Cn", "Co", "Cs"}  # Unicode categories that do not occur in text, apart from white space
_LINES_COUNTED = 10_000
_BAD_PER_VALID = 20  # at a higher ratio, the valid non-ASCII lines are probably valid by chance
_REPLACEMENT = "\ufffd"  # U+FFFD, which programs write in place of bytes that they cannot decode
# Encodings in which a whole UTF-8 text may have been misread, each with the number of non-ASCII characters required as
# evidence. The number is 2 if correct text may by chance look as if it had one misread character, as in `—École`. It is
# 1 for cp437 and cp850, in which misread characters contain box-drawing characters.
_OTHERS = {"cp1250": 2, "cp1251": 2, "cp1253": 2, "cp1254": 2, "mac_roman": 2, "cp437": 1, "cp850": 1, "cp866": 2}
_PAIR = re.compile(r"[^\x00-\x7f]{2}")
_ALONE = re.compile(r"(?<![^\x00-\x7f])[^\x00-\x7f](?![^\x00-\x7f])")
# The characters of Windows-1252 from byte 0x80 on; its five gaps are filled from Latin-1, as in browsers.
_CHARACTERS = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}
_BYTES = {ord(character): byte for byte, character in _CHARACTERS.items()} | {byte: byte for byte in range(0x80, 0xA0)}


def packing(head):
    """Returns how data with these first bytes are compressed: ".gz", ".bz2", ".xz" or ".zst", or "" if they are not."""
    return next((ending for ending, magic in _PACKED.items() if magic.match(head)), "")


def check_head(name, head, has_lines=True):
    """Raises `UserError` if the first bytes of a file show that it is not UTF-8 text with line ends.

    This refuses archives and other compressed data, UTF-16 and UTF-32 with or without a byte order mark, and lines that
    end in CR alone. A UTF-8 decoder alone would accept some of these files. For example, Latin or Cyrillic letters in
    UTF-16 are valid UTF-8 with a NUL or another control character next to each letter.

    Args:
        name: name of the source, for messages.
        head: the first bytes of the file, about `HEAD` bytes.
        has_lines: bool, whether to refuse a text whose lines end in CR alone.
    """
    if ending := packing(head):  # the data come from a pipe or were compressed twice
        raise UserError(
            f"{name}: this is {PACKERS[ending]} data. Expected UTF-8 text. Unpack it: {PACKERS[ending]} -dc."
        )
    for magic, format_name, advice in _OTHER_FORMATS:
        if re.match(magic, head):
            raise UserError(f"{name}: this is {format_name}. Expected UTF-8 text. {advice}.")
    if encoding := wide_encoding(head):
        raise UserError(
            f"{name}: the text is {encoding}. Expected UTF-8. Convert the text: iconv -f {encoding} -t UTF-8"
        )
    if has_lines and b"\n" not in head and b"\r" in head.strip(b"\r"):
        raise UserError(
            f"{name}: its lines end in CR alone, as on old Macintoshes. Expected LF or CR LF. Convert the text: "
            "tr '\\r' '\\n'"
        )


def not_utf8(name, number, error, begin=0):
    """Returns the message about a line that is not UTF-8; `error` is from decoding its bytes from offset `begin` on."""
    at = error.start
    return f"{name}, line {number}: byte 0x{error.object[at]:02x} at position {begin + at} is not UTF-8."


def advice(valid, following):
    """Returns advice on how to repair a text, given the lines around its first line that is not UTF-8.

    The lines that are not ASCII show whether the text has another encoding or is UTF-8 with a few damaged lines. If
    only a few lines are damaged, converting the file would damage all the valid lines.

    Args:
        valid: int, number of preceding lines that are UTF-8 but not ASCII.
        following: iterable of bytes, the lines that follow. At most the first 10,000 of them are read.
    """
    bad = 1
    for raw in itertools.islice(following, _LINES_COUNTED):
        if not raw.isascii():
            is_valid = raw.decode("utf-8", "ignore").encode() == raw
            valid, bad = valid + is_valid, bad + (not is_valid)
    ratio = f"{valid:,} of the {valid + bad:,} non-ASCII lines examined are UTF-8"
    leave_out = "skip such lines (t2t-datagen --skip_bad_lines, t2t-decoder --on_error=skip)."
    if valid * _BAD_PER_VALID >= bad:
        return f"{ratio}, and a conversion would damage them. Correct the line, or {leave_out}"
    return f"{ratio}. Find out the encoding and convert the text (iconv -f ENCODING -t UTF-8), or {leave_out}"


def wide_encoding(head):
    """Returns iconv's name for the encoding of a text in UTF-16 or UTF-32, or "" for other encodings."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    if b"\0" not in head:  # in UTF-16, one of the two bytes of a line end or space is NUL
        return ""
    texts = {encoding: _text_in(head[:HEAD], encoding) for encoding in _WIDE}
    texts = {encoding: text for encoding, text in texts.items() if text}
    # Latin letters read in the wrong byte order are Chinese characters.
    return max(texts, key=lambda encoding: sum(map(str.isascii, texts[encoding])), default="")


def _text_in(head, encoding):
    """Decodes bytes in UTF-16 or UTF-32 without a byte order mark; returns "" if the bytes are not in this encoding."""
    # UTF-8 text with a few NULs is also valid UTF-16, but decoded as UTF-16 it contains no white space.
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)  # the last character in `head` may be cut off
    except UnicodeDecodeError:
        return ""
    if not all(c in "\t\n\r\x0c" or unicodedata.category(c) not in _NO_TEXT for c in set(text)):
        return ""
    has_its_lines = 0 < text.count("\n") >= head.count(b"\n") / 2
    has_its_words = text.count(" ") * 50 >= len(text) and " " in text
    has_its_letters = head.count(b"\0") * 4 >= len(head) and b"\n" not in head
    return text if has_its_lines or has_its_words or has_its_letters else ""


def _among(first, last):
    characters = "".join(chr(point) for point, byte in _BYTES.items() if first <= byte <= last)
    return f"[{re.escape(characters)}]"


_NEXT = _among(0x80, 0xBF)
# Matches the UTF-8 bytes of one character that were misread as Windows-1252 or Latin-1.
_SEQUENCE = re.compile(f"{_among(0xC2, 0xDF)}{_NEXT}|{_among(0xE0, 0xEF)}{_NEXT}{{2}}|{_among(0xF0, 0xF4)}{_NEXT}{{3}}")


def is_mojibake(text):
    """Returns whether a text is partly or wholly mojibake, or contains U+FFFD in place of unreadable bytes.

    A sequence of characters may be mojibake if its bytes in the wrong encoding are the UTF-8 bytes of another
    character. Correct text may contain such sequences by chance, as in `CAFÉ™`, `«IRMÃ»` and `è…”`. So a sequence
    counts only if the other character fits its neighbours.
    """
    if text.isascii():
        return False
    if _REPLACEMENT in text:
        return True
    if not _PAIR.search(text):  # a non-ASCII character has at least two bytes in UTF-8
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
        # after a capital letter, the sequence is probably the last letter of a word and punctuation, as in `CAFÉ™`
        if left.isupper() and not right.isalpha():
            continue
        if not character.isalpha() or script_of(character) in ("LATIN", ""):
            return True
        is_glued = (left.isascii() and left.isalpha()) or (right.isascii() and right.isalpha())
        foreign += not is_glued
    return foreign > 1  # a single misread character may be a coincidence


def _is_read_as(text, encoding, fewest):
    """Returns whether a whole text is UTF-8 misread in `encoding` and has at least `fewest` non-ASCII characters."""
    try:
        original = text.encode(encoding).decode("utf-8")
    except UnicodeError:
        return False
    return sum(not character.isascii() for character in original) >= fewest
