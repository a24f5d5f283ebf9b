"""What several encoders use: a file's lines, a cache of the ids of words, and the words of a text in a graph."""

import codecs

from t2t_lite import files
from t2t_lite.errors import UserError

BLANK = "\u2581"  # SentencePiece's symbol for a space
_LONGEST_WORD = 64  # characters; longer ones are rare, and would fill the memory
SPACE = r"[\s\v\x1c-\x1f\x{85}\p{Z}]"  # whitespace as defined by `str.isspace`, for RE2


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


class WordCache(dict):
    """Maps a word to its ids, which a function computes at the first lookup.

    Args:
        encode: a function of a word. It is pickled with the cache; the words are not.
        most: number of words at which the cache is emptied.
    """

    def __init__(self, encode, most=2**18):
        super().__init__()
        self._encode = encode
        self._most = most

    def __missing__(self, word):
        ids = self._encode(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= self._most:
                self.clear()
            self[word] = ids
        return ids

    def __reduce__(self):
        return WordCache, (self._encode, self._most)


def longest_pieces(word, ids, longest, continues=""):
    """Returns the ids of the longest pieces that spell a word from the left, or None if none fits at some point.

    Args:
        word: str.
        ids: {piece: id}.
        longest: int, characters of the longest piece.
        continues: str that marks pieces which do not begin a word.
    """
    found, start, mark = [], 0, ""
    while start < len(word):
        for end in range(min(len(word), start + longest), start, -1):
            if (piece_id := ids.get(mark + word[start:end])) is not None:
                break
        else:
            return None
        found.append(piece_id)
        start, mark = end, continues
    return found


def split_words(texts):
    """string [batch], UTF-8 -> ragged [batch, (words)], the parts between whitespace."""
    import tensorflow as tf

    return tf.strings.split(tf.strings.regex_replace(texts, f"{SPACE}+", " "))
