"""The pieces of the words of a sentence, for tags of words."""

from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.vocabulary import UNK_ID, ByteTextEncoder


def word_pieces(encoder, words):
    """Encodes words one by one, as in a sentence with single spaces.

    Args:
        encoder: TextEncoder.
        words: list of str.

    Returns:
        A list of int per word. A word without pieces in the vocabulary is one unknown id.
    """
    space = space_before(encoder)
    return [list(encoder.encode((space if at else "") + word)) or [UNK_ID] for at, word in enumerate(words)]


def space_before(encoder):
    """Returns the prefix with which a word inside a sentence is encoded: " " if its pieces include the space."""
    return " " if isinstance(encoder, ByteLevelBPEEncoder | ByteTextEncoder) else ""
