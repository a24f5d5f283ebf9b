"""Helpers shared by encoders: reading files, caching words, splitting words in a graph, and finding the mask piece."""

import codecs

from t2t_lite import files
from t2t_lite.errors import UserError

BLANK = "\u2581"  # SentencePiece's symbol for a space
_LONGEST_WORD = 64  # maximum number of characters in a cached word; longer words are rare and would fill the memory
SPACE = r"[\s\v\x1c-\x1f\x{85}\p{Z}]"  # whitespace as defined by `str.isspace`, for RE2
_MASKS = ("[MASK]", "<mask>")  # the mask token of BERT, and the mask token of RoBERTa and XLNet


def read_content(path):
    """Returns the bytes of a vocabulary's text file, without a byte order mark.

    Raises `UserError` if the file is missing.
    """
    return files.read_bytes(path, files.MOST_BYTES_OF_A_VOCABULARY).removeprefix(codecs.BOM_UTF8)


def lines_of(content, path, expected):
    """Returns the lines of a vocabulary's text file, without line ends or a byte order mark.

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


def open_sentencepiece(model, path):
    """Returns SentencePiece's processor for a model.

    Args:
        model: bytes of a `.model` file.
        path: str, the file's name, for errors.

    Raises:
        UserError: `model` is not a SentencePiece model.
    """
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        processor.id_to_piece(list(range(processor.vocab_size())))  # a piece may be invalid UTF-8
    except (RuntimeError, ValueError):  # ValueError: the error message is invalid UTF-8
        raise UserError(
            f"{path}: not a SentencePiece model ({len(model):,} bytes). Copy the file again. Expected a .model file "
            "from spm_train or t2t-datagen, or a vocabulary named .subwords, vocab.json, encoder.json or vocab.txt."
        ) from None
    return processor


class WordCache(dict):
    """A cache of the ids of words; a function computes a word's ids when the word is first looked up.

    Args:
        encode: function that returns the ids of a word. If the cache is pickled, the function is included, but the
            words are not.
        most: int, the number of words at which the cache is emptied.
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
    """Spells a word from the left with the longest pieces that fit; returns their ids, or None if no piece fits.

    Args:
        word: str.
        ids: {piece: id}.
        longest: int, number of characters in the longest piece.
        continues: str that marks pieces that do not begin a word.
    """
    piece_ids, start, mark = [], 0, ""
    while start < len(word):
        for end in range(min(len(word), start + longest), start, -1):
            if (piece_id := ids.get(mark + word[start:end])) is not None:
                break
        else:
            return None
        piece_ids.append(piece_id)
        start, mark = end, continues
    return piece_ids


def split_words(texts):
    """Splits UTF-8 strings [batch] at whitespace into a ragged tensor [batch, (words)]."""
    import tensorflow as tf

    return tf.strings.split(tf.strings.regex_replace(texts, f"{SPACE}+", " "))


def mask_of(encoder):
    """Returns (id, piece) of the mask token in a vocabulary. Raises `UserError` if the vocabulary has no mask."""
    return mask_in(encoder.pieces(range(encoder.vocab_size)))


def mask_in(pieces):
    """Does the same as `mask_of` for a list of all pieces of a vocabulary."""
    masks = [(pieces.index(mask), mask) for mask in _MASKS if mask in pieces]
    if not masks:
        raise UserError(
            f"The vocabulary has no mask token, neither {_MASKS[0]} nor {_MASKS[1]}. Expected a vocabulary learned by "
            "masked_lm_own, or a vocabulary published with an encoder."
        )
    return masks[0]


def blank_before_mask(encoder):
    """Returns the id of the space before a mask token; None if the parts between mask tokens are encoded separately.

    With a SentencePiece vocabulary learned by this package, a text with masks is encoded like any other text. A
    published vocabulary may belong to a tokenizer with special tokens. Such a tokenizer encodes the parts between mask
    tokens separately, so this package does the same. With ALBERT and XLNet, each part begins with a space.
    """
    pieces = encoder.pieces(range(encoder.vocab_size))
    mask_id, mask = mask_in(pieces)
    if {"[CLS]", "<cls>"} & {*pieces} or BLANK not in pieces or mask_id not in encoder.encode(mask):
        return None
    return pieces.index(BLANK)
