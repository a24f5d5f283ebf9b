"""Checks texts and options given in Python, to a Translator or to the client of a server."""

from t2t_lite.errors import nearest


def check_texts(texts, name="texts", may_be_none=False):
    """Returns a list of str, each valid Unicode.

    Args:
        texts: the user's value.
        name: str, the argument's name.
        may_be_none: bool, whether an item may be None, which then becomes "".

    Raises:
        TypeError: any other value; also a single str, which would pass for a list of characters.
    """
    if isinstance(texts, str | bytes | dict) or not hasattr(texts, "__iter__"):
        advice = " For one sentence: [text]." if isinstance(texts, str | bytes) else ""
        raise TypeError(f"`{name}` must be a list of str, received one {type(texts).__name__}.{advice}")
    checked = []
    for number, text in enumerate(texts):
        if text is None and may_be_none:
            text = ""
        if not isinstance(text, str):
            advice = " Decode it: .decode('utf-8')." if isinstance(text, bytes) else ""
            raise TypeError(f"`{name}`, item {number}: must be str, received {type(text).__name__}.{advice}")
        checked.append(valid_unicode(text))
    return checked


def check_options(given, known, where):
    """Raises `TypeError` for an unknown argument, and suggests the nearest one.

    Args:
        given, known: names.
        where: str, the function's name.
    """
    for name in given:
        if name not in known:
            advice = nearest(name, known) or f"Expected some of {', '.join(known)}."
            raise TypeError(f"{where}() has no argument `{name}`. {advice}")


def valid_unicode(text):
    """Returns a text with lone surrogates, which UTF-8 cannot encode, replaced by U+FFFD."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
