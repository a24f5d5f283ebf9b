"""What several encoders use: lines of files, a cache of words, words in a graph, the piece that masks others."""

import codecs

from t2t_lite import files
from t2t_lite.errors import UserError

BLANK = "\u2581"  # SentencePiece's symbol for a space
_LONGEST_WORD = 64  # characters; longer ones are rare, and would fill the memory
SPACE = r"[\s\v\x1c-\x1f\x{85}\p{Z}]"  # whitespace as defined by `str.isspace`, for RE2
_MASKS = ("[MASK]", "<mask>")  # BERT's, and RoBERTa's and XLNet's
_SEPARATE = "\u2581"  # SentencePiece's blank


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


def mask_of(encoder):
    """Returns (id, piece) of a vocabulary's mask. Raises `UserError` if it has none."""
    return mask_in(encoder.pieces(range(encoder.vocab_size)))


def mask_in(pieces):
    """As `mask_of`, given all pieces of a vocabulary."""
    masks = [(pieces.index(mask), mask) for mask in _MASKS if mask in pieces]
    if not masks:
        raise UserError(
            f"The vocabulary has no {_MASKS[0]}, nor {_MASKS[1]}, which masked ids are shown as. Expected one that "
            "masked_lm_own has learned, or a published encoder's."
        )
    return masks[0]


def blank_before_mask(encoder):
    """Returns the id of a bare space, which belongs to a mask after it, if `encode` knows the mask; else None.

    A SentencePiece vocabulary that was learned here encodes a text with masks like any other. If a published one
    belongs to a tokenizer with special tokens, the parts between the masks are encoded separately, as by that
    tokenizer: ALBERT's and XLNet's each begin with a space.
    """
    pieces = encoder.pieces(range(encoder.vocab_size))
    mask_id, mask = mask_in(pieces)
    if {"[CLS]", "<cls>"} & {*pieces} or _SEPARATE not in pieces or mask_id not in encoder.encode(mask):
        return None
    return pieces.index(_SEPARATE)
