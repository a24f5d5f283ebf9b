"""Texts: checks those given in Python, splits ones too long for the model where it does least harm, joins the parts."""

import re

from t2t_lite.corpora.scripts import WITHOUT_SPACES, scripts_without_spaces
from t2t_lite.errors import nearest

# End punctuation, then quotes or brackets, then spaces; in scripts without spaces the full stop is enough.
_SENTENCE = re.compile(r"""[.?!…]+["'”’»)\]]*\s+|[。？！]+["'”’」』）]*\s*""")
_CLAUSE = re.compile(r"[;:,]\s+|[；：，、]\s*")
_BLANKS = re.compile(r"\s+")
_INITIAL = re.compile(r"(?:^|[\s.(])\w\.\s+$")  # as in "J. Smith" or "z. B. hier"


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


def check_text(text, number, name="texts"):
    """Returns an item of a list, number `number`, as valid Unicode. Raises `TypeError` unless it is a str."""
    if not isinstance(text, str):
        advice = " Decode it: .decode('utf-8')." if isinstance(text, bytes) else ""
        raise TypeError(f"`{name}`, item {number}: must be str, received {type(text).__name__}.{advice}")
    return valid_unicode(text)


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


def split_text(text, length_of, limit):
    """Splits a text into parts of at most `limit` ids each.

    Each sentence is a part. A sentence that is too long is split after semicolons, colons and commas, then at spaces,
    then anywhere, into parts as large as the limit allows.

    Args:
        text: str.
        length_of: function that returns the length of a str in ids.
        limit: int, length of the longest part in ids.

    Returns:
        list of str without leading or trailing spaces; none is blank.
    """
    parts = []
    for sentence in _sentences(text):
        parts += _within(sentence, length_of, limit, (_CLAUSE, _BLANKS))
    return parts


def join_texts(texts, language=None):
    """Joins translations of consecutive parts by a space, or by nothing in languages written without spaces.

    Args:
        texts: list of str.
        language: str such as "de", of the translations; if None or unknown, the characters at the joint decide.
    """
    joined = ""
    for text in filter(None, texts):
        blank = " " if joined and not _is_without_spaces(joined[-1] + text[0], language) else ""
        joined += blank + text
    return joined


def _is_without_spaces(joint, language):
    return bool(scripts_without_spaces(language)) or len(WITHOUT_SPACES.findall(joint)) == 2


def _sentences(text):
    """Yields sentences; no sentence ends before a lower-case letter or after an initial."""
    start = 0
    for match in _SENTENCE.finditer(text):
        following = text[match.end() : match.end() + 1]
        if following.islower() or _INITIAL.search(text[max(start, match.end() - 8) : match.end()]):
            continue
        if sentence := text[start : match.end()].strip():
            yield sentence
        start = match.end()
    if rest := text[start:].strip():
        yield rest


def _within(text, length_of, limit, boundaries):
    """Splits the text into parts within the limit, by the first pattern of `boundaries` that suffices."""
    if length_of(text) <= limit:
        return [text]
    if not boundaries:
        return _halved(text, length_of, limit)
    boundary, *finer = boundaries
    ends = [match.end() for match in boundary.finditer(text)]
    pieces = [
        text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if text[start:end].strip()
    ]
    parts, together, length = [], "", 0
    for piece in pieces:
        more = length_of(piece)
        if together and length + more > limit:
            parts += _fitting(together, length_of, limit, finer)
            together, length = "", 0
        together, length = together + piece, length + more
    return parts + _fitting(together, length_of, limit, finer)


def _fitting(text, length_of, limit, finer):
    # The sum of the lengths is only approximate, and a single piece may be too long.
    text = text.strip()
    return _within(text, length_of, limit, finer) if text else []


def _halved(text, length_of, limit):
    if length_of(text) <= limit or len(text) < 2:
        return [text]
    middle = len(text) // 2
    return [
        part
        for half in (text[:middle], text[middle:])
        if half.strip()
        for part in _halved(half.strip(), length_of, limit)
    ]
