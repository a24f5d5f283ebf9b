"""The first ids of a text, without encoding much more of it than needed: anyone may send a text of megabytes."""

CHARACTERS_OF_AN_ID = 64  # no vocabulary's pieces are that long on average over hundreds
_FEWEST_IDS = 64
_MARGIN = 64  # ids before a cut, which may differ from those of the whole text


def encode_beginning(encoder, text, count, prepare=None):
    """Returns the ids of a text, or the first of them, more than `count`, without encoding all of a long text.

    Args:
        encoder: TextEncoder.
        text: str.
        count: int, number of ids needed.
        prepare: None, or a function of the text that returns the text to encode.

    Raises:
        UserError: as `encoder.encode`.
    """
    prepare = prepare or (lambda text: text)
    size = len(beginning_of(text, count))
    while size < len(text):
        ids = encoder.encode(prepare(text[:size]))
        if len(ids) > count + _MARGIN:
            return ids[: len(ids) - _MARGIN]
        size *= 4  # text without ids, such as spaces, may be of any length
    return encoder.encode(prepare(text))


def beginning_of(text, count):
    """Returns a text, or a beginning of it with the same first `count` ids, except for hostile texts."""
    return text[: longest_text(count + _MARGIN)]


def longest_text(count):
    """Returns a number of characters, or bytes, that contain `count` ids of any text that is not hostile."""
    return CHARACTERS_OF_AN_ID * max(count, _FEWEST_IDS)
