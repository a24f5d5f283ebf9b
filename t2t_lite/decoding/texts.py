"""Checks of texts, and of lists of texts, that are given in Python; clients of servers use them without TensorFlow."""

from t2t_lite.errors import UserError, counted, nearest


def check_texts(texts, name="texts", may_be_none=False):
    """Returns a list of str, each valid Unicode.

    Args:
        texts: the user's value.
        name: str, the argument's name.
        may_be_none: bool, whether an item may be None, which then becomes "".

    Raises:
        TypeError: any other value; also a single str, which would pass for a list of characters.
    """
    check_list(texts, name)
    return ["" if text is None and may_be_none else check_text(text, number, name) for number, text in enumerate(texts)]


def check_list(texts, name="texts"):
    """Raises `TypeError` unless a value may be a list of texts: a single str would pass for a list of characters."""
    if isinstance(texts, str | bytes | dict) or not hasattr(texts, "__iter__"):
        advice = " For one sentence: [text]." if isinstance(texts, str | bytes) else ""
        raise TypeError(f"`{name}` must be a list of str, received one {type(texts).__name__}.{advice}")


def one_for_each(values, count, name, expected="one for each"):
    """Returns a list of the user's values, one for each of `count` texts.

    Raises:
        TypeError: as `check_list`.
        UserError: there are more or fewer.
    """
    check_list(values, name)
    values = list(values)
    if len(values) != count:
        raise UserError(f"{counted(count, 'text')}, but {name}: {len(values)}: expected {expected}.")
    return values


def check_text(text, number, name="texts"):
    """Returns an item of a list, number `number`, as valid Unicode. Raises `TypeError` unless it is a str."""
    if not isinstance(text, str):
        advice = " Decode it: .decode('utf-8')." if isinstance(text, bytes) else ""
        raise TypeError(f"`{name}`, item {number}: must be str, received {type(text).__name__}.{advice}")
    return valid_unicode(str(text))  # not a subclass such as NumPy's, which protocols and JSON would have to know


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
