"""How large a vocabulary a text can use."""

import logging

_LOGGER = logging.getLogger("t2t_lite")
_BYTES = 256
_SPECIAL = 3  # padding, end, unknown
_WORDS_PER_MERGE = 4


def sensible_size(num_words, num_others=0):
    """Returns the size of a vocabulary whose pieces are still parts of words.

    It has one merge for every four distinct words, so that at most a quarter of them are one piece each. The number of
    distinct words grows about as the square root of the text (Heaps' law), and so does the vocabulary: 3,700 pieces
    for 5,000 captions in two languages, 10,200 for 29,000.

    Args:
        num_words: number of distinct words.
        num_others: number of characters and symbols that are pieces in addition to bytes and merges.
    """
    return _BYTES + _SPECIAL + num_others + num_words // _WORDS_PER_MERGE


def choose_size(largest, num_words, num_others=0):
    """Returns `sensible_size`, at most `largest`, and logs it."""
    size = min(largest, sensible_size(num_words, num_others))
    _LOGGER.info(
        f"chose a vocabulary of {size:,} pieces for {num_words:,} distinct words (--vocab_size sets another size)"
    )
    return size
