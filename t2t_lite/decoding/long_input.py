"""Splits text that is too long for the model at the least harmful places, and joins the translations of the parts."""

import re

# End punctuation, then quotes or brackets, then spaces; in scripts without spaces the full stop is enough.
_SENTENCE = re.compile(r"""[.?!…]+["'”’»)\]]*\s+|[。？！]+["'”’」』）]*\s*""")
_CLAUSE = re.compile(r"[;:,]\s+|[；：，、]\s*")
_BLANKS = re.compile(r"\s+")
_INITIAL = re.compile(r"(?:^|[\s.(])\w\.\s+$")  # as in "J. Smith" or "z. B. hier"
_WITHOUT_BLANKS = {"bo", "ja", "km", "lo", "my", "th", "zh"}
_SCRIPT_WITHOUT_BLANKS = re.compile("[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uff60]")


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
        blank = " " if joined and not _is_without_blanks(joined[-1] + text[0], language) else ""
        joined += blank + text
    return joined


def _is_without_blanks(joint, language):
    if language and re.split("[-_]", language)[0].lower() in _WITHOUT_BLANKS:
        return True
    return len(_SCRIPT_WITHOUT_BLANKS.findall(joint)) == 2


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
