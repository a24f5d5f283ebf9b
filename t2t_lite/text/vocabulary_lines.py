"""Reads the vocabularies that are text files with one entry per line."""

import codecs

from t2t_lite import files
from t2t_lite.errors import UserError


def read_content(path):
    """Returns the bytes of a vocabulary's text file, without a byte-order mark. Raises `UserError` if it is missing."""
    return files.read_bytes(path, files.MOST_BYTES_OF_A_VOCABULARY).removeprefix(codecs.BOM_UTF8)


def lines_of(content, path, expected):
    """Returns the lines of a vocabulary's text file, without line ends and a byte-order mark.

    Args:
        content: bytes.
        path: str, the file's name, for errors.
        expected: str, the expected contents, for errors.

    Raises:
        UserError: the bytes are not UTF-8.
    """
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8: byte {error.start:,}. Expected {expected}.") from None
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")
