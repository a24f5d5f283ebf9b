"""The first ids of a text, of which not much more is encoded than is read: anyone may send a text of megabytes."""

CHARACTERS_OF_AN_ID = 64  # no vocabulary's pieces are as long in the mean of hundreds
_FEWEST_IDS = 64
_MARGIN = 64  # ids before the place where a text was cut, which may be others than those of the whole


def encode_beginning(encoder, text, count, prepare=None):
    """Returns the ids of a text, or the first of them, more than `count`, without encoding all of a long text.

    Args:
        encoder: TextEncoder.
        text: str.
        count: int, how many ids are read.
        prepare: None, or a function of the text that returns the one to encode.

    Raises:
        UserError: as `encoder.encode`.
    """
    prepare = prepare or (lambda text: text)
    size = len(beginning_of(text, count))
    while size < len(text):
        ids = encoder.encode(prepare(text[:size]))
        if len(ids) > count + _MARGIN:
            return ids[: len(ids) - _MARGIN]
        size *= 4  # what is left out, such as spaces, may take any room
    return encoder.encode(prepare(text))


def beginning_of(text, count):
    """Returns a text, or its beginning, whose first `count` ids are those of the text unless it is a hostile one."""
    return text[: longest_text(count + _MARGIN)]


def longest_text(count):
    """Returns the number of characters, or bytes, in which there are `count` ids, of any text but a hostile one."""
    return CHARACTERS_OF_AN_ID * max(count, _FEWEST_IDS)
