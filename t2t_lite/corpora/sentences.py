"""Splits texts into sentences, and long sentences at the least harmful places; joins their translations."""

import itertools
import re

from t2t_lite.corpora.scripts import WITHOUT_SPACES, scripts_without_spaces
from t2t_lite.settings.ranges import SPLIT_SENTENCES, Choices, typed_value

# Matches the end of a sentence: end punctuation, then quotes or brackets, then spaces. In scripts without spaces, a
# full stop is enough. The pattern matches possessively and only at the start of a run of full stops, so that each
# character is read once.
_SENTENCE = re.compile(
    r"""(?<![.?!…؟۔])[.?!…؟۔]++["'”“’‘»«›‹)\]}]*+\s+|"""
    r"""(?<![。？！।॥።။។])(?P<without_space>[。？！।॥።။។]++["'”’」』）】〉》〕］｝｣)\]]*+\s*)"""
)
# Matches a quotation. In scripts without spaces, no sentence ends within it. Longer text after an opening quotation
# mark is ignored, because the closing mark is probably missing.
_QUOTATION = re.compile(
    "「[^「」]{0,200}」|『[^『』]{0,200}』|“[^“”]{0,200}”|（[^（）]{0,200}）|《[^《》]{0,200}》|【[^【】]{0,200}】"
)
_CLOSED = re.compile(r"[”’」』）】〉》〕］｝｣]\s*\Z")
# The characters that continue a sentence after a quotation.
_CONTINUATION = re.compile("[とっをのがはにもでなへかや、，,;:；：。？！）」』]")
_CLAUSE = re.compile(r"[;:,]\s+|[；：，、]\s*")
_BLANKS = re.compile(r"\s+")
_WORD = re.compile(r"\w")
_WORD_BEFORE = re.compile(r"(?:^|[\s.(\[\"'“„«])(\w{1,6})\Z")  # matches the word before a full stop
# Abbreviations whose full stop does not end a sentence, and abbreviations for which this holds only before a number.
_ABBREVIATIONS = {
    "Adm", "Bd", "Capt", "Co", "Col", "Dec", "Dez", "Dhr", "Dipl", "Dott", "Dr", "Dra", "Exma", "Exmo", "Feb", "Fr",
    "Frl", "Ft", "Gen", "Gov", "Hon", "Hr", "Hrn", "Inc", "Ing", "Jan", "Jr", "Lt", "Ltd", "Mag", "Maj", "Messrs",
    "Mevr", "Mgr", "Mlle", "Mme", "Mr", "Mrs", "Ms", "Mt", "Nov", "Oct", "Okt", "Pres", "Prof", "Rep", "Rev", "Sen",
    "Sept", "Sgt", "Sig", "Sr", "Sra", "Srta", "St", "Str", "Tel", "Ud", "Uds", "bzw", "ca", "evtl", "ggf", "inkl",
    "sog", "vgl", "vs", "zzgl", "им", "св", "ул",
}  # fmt: skip
_BEFORE_NUMBERS = {
    "Abs", "Art", "Ch", "Eq", "Fig", "Figs", "No", "Nos", "Nr", "Sec", "Vol", "art", "ch", "eq", "fig", "no", "nos",
    "nr", "pp", "sec", "vol", "рис", "стр",
}  # fmt: skip
# After one of these words, a number is not an ordinal and may end a sentence, as in "see Eq. 2."
_REFERENCE = re.compile(
    r"\b(?:Abb|Abs|Art|Ch|Chapter|Eqs?|Equation|Figs?|Figure|Kapitel|Nos?|Nr|Number|Part|Secs?|Section|Step|Tab|Table|Vol|pp?)"
    r"\.?\s?\d\d?\Z",
    re.IGNORECASE,
)
_SEVERAL_DOTS = re.compile(r"(?:^|[\s(\[\"'“„«])((?:[^\W\d_]{1,2}\.){1,4}[^\W\d_])\Z")  # such as D.C, Ph.D and p.m
_INITIAL_BEFORE = re.compile(r"\w\.\s+\w\Z")  # initials such as J. K and abbreviations such as z. B
_NEVER_LAST = {"e.g", "i.e", "c.f", "z.B", "d.h", "u.a", "o.ä", "s.u", "v.a"}
_MAY_BE_LAST = {"Co", "Inc", "Jr", "Ltd", "Sr"}
# Words after an abbreviation that show that a new sentence begins. Words that are also names are omitted, such as He in
# "K. He".
_STARTER = re.compile(
    r"[\"'“‘„«(\[]?(?:After|All|Although|And|As|At|Because|Before|But|During|For|From|However|If|In|It|Its|Many|"
    r"Most|On|Our|Since|Some|That|The|Their|Then|There|Therefore|These|They|This|Those|Thus|We|What|When|While|With)"
    r"(?![\w.-])"
)
_PRONOUN = re.compile(r"[\"'“‘„«(\[]?(?:A|An|He|Her|His|I|My|She|You)(?![\w.-])")
_ENDS = frozenset(".?!…؟۔")
_CHARACTERS_OF_AN_ID = 16  # a text with more characters per allowed id is split without measuring its length in ids
SENTENCES = "sentences"  # name of the signature that an exported model has if it expects single sentences


def sentences(text):
    """Splits a text into sentences; returns a list of nonblank str without leading or trailing spaces.

    Every sentence contains a letter or digit. No sentence ends before a lower-case letter, unless the text has no
    capitals. A full stop after an initial, after a number of one or two digits (which may be an ordinal) or after a
    common abbreviation usually does not end a sentence. It does if the next word is known to begin sentences (`D.C.
    The`) or if the number belongs to a word (`Eq. 2. Then`). A full stop after `Dr.` or `e.g.` never ends a sentence.
    In scripts without spaces, no sentence ends within a quotation, or between a quotation and a particle. The running
    time is linear in the length of the text.
    """
    parts, start, position, has_word, has_capitals = [], 0, 0, False, text != text.lower()
    quotations = _QUOTATION.finditer(text)
    quotation = next(quotations, None)
    for match in _SENTENCE.finditer(text):
        has_word = has_word or _WORD.search(text, position, match.start()) is not None
        position = match.end()
        while quotation and quotation.end() <= match.start():
            quotation = next(quotations, None)
        is_quoted = quotation and quotation.start() < match.start() and match.end() < quotation.end()
        if match["without_space"] and is_quoted:
            continue
        if has_word and _ends_sentence(text, start, match, has_capitals):
            parts.append(text[start : match.end()].strip())
            start, has_word = match.end(), False
    if rest := text[start:].strip():
        parts.append(rest)
    return parts


def sentence_parts(text):
    """Returns the list of a text's sentences, or a list with the unchanged text if it is blank or a single one."""
    parts = sentences(text)
    return parts if len(parts) > 1 else [text]


def _ends_sentence(text, start, match, has_capitals):
    following = text[match.end() : match.end() + 1]
    # no sentence ends before a lower-case letter, nor between the full stops of ". . ."
    if (has_capitals and following.islower()) or following in _ENDS:
        return False
    if match["without_space"] and _CLOSED.search(match[0]) and _CONTINUATION.match(text, match.end()):
        return False
    if match[0].rstrip() != ".":
        return True
    before = text[max(start, match.start() - 16) : match.start()]
    match_before = _WORD_BEFORE.search(before[-8:])
    if match_before is None:
        return True
    word, is_start = match_before[1], _STARTER.match(text, match.end()) is not None
    if several_dots := _SEVERAL_DOTS.search(before):
        is_start = is_start or _PRONOUN.match(text, match.end()) is not None
        return is_start and several_dots[1] not in _NEVER_LAST
    if word.isdecimal() and len(word) < 3:
        return is_start or _REFERENCE.search(before) is not None
    if len(word) == 1:
        return is_start and not _INITIAL_BEFORE.search(before)
    is_numbered = following.isdecimal() and word in _BEFORE_NUMBERS
    is_abbreviation = not {word, word if has_capitals else word.capitalize()}.isdisjoint(_ABBREVIATIONS)
    return not (is_numbered or is_abbreviation) or (is_start and word in _MAY_BE_LAST)


def checked_choice(choice):
    """Returns a value of the option `split_sentences`. Raises `UserError` unless it is in `SPLIT_SENTENCES` or None."""
    return typed_value("split_sentences", choice, str | None, Choices(SPLIT_SENTENCES))


def split_text(text, length_of, limit):
    """Splits a text into sentences, and long sentences into parts of at most `limit` ids.

    A sentence within the limit is one part. A longer sentence is split into parts as large as the limit allows: if
    possible after semicolons, colons and commas, otherwise at spaces, otherwise anywhere.

    Args:
        text: str.
        length_of: function that returns the length of a str in ids.
        limit: int, maximum length of a part in ids.

    Returns:
        list of nonblank str without leading or trailing spaces.
    """
    parts = []
    for sentence in sentences(text):
        parts += _within(sentence, length_of, limit, (_CLAUSE, _BLANKS))
    return parts


def starts_of(parts, text):
    """Returns the offset of each part in the text, given the parts in order; only spaces separate them."""
    starts, at = [], 0
    for part in parts:
        at = text.index(part, at)
        starts.append(at)
        at += len(part)
    return starts


def join_texts(texts, language=None):
    """Joins the translations of consecutive parts, with spaces between them if the language is written with spaces.

    Args:
        texts: list of str.
        language: str such as "de", the language of the translations. If it is None or unknown, the characters on both
            sides of a joint decide whether a space is inserted.

    Returns:
        (joined text, list of int: the offset of each translation in the joined text).
    """
    pieces, starts, length = [], [], 0
    for text in texts:
        if text and pieces and not _is_without_spaces(pieces[-1][-1] + text[0], language):
            pieces.append(" ")
            length += 1
        starts.append(length)
        if text:
            pieces.append(text)
            length += len(text)
    return "".join(pieces), starts


def answers_to_parts(answer, parts, on_progress=None):
    """Passes the parts of several texts to a model in one call; returns a list of the parts' answers for each text.

    Args:
        answer: function that takes a list of parts and `on_progress`, and returns one answer per part.
        parts: list of lists, the parts of each text.
        on_progress: None, or a function that is called with the number of newly finished texts.
    """
    every = [part for text_parts in parts for part in text_parts]
    if on_progress and len(every) > len(parts):
        on_progress = _progress_in_wholes(on_progress, len(parts), len(every))
    answers = iter(answer(every, on_progress=on_progress))
    return [[next(answers) for _ in text_parts] for text_parts in parts]


def ranks(lists):
    """Returns, for each k, a list of the k-th items of nonempty lists. The last item of a shorter list is repeated."""
    return [[items[min(rank, len(items) - 1)] for items in lists] for rank in range(max(map(len, lists)))]


def _progress_in_wholes(on_progress, num_wholes, num_parts):
    """Returns a function that converts numbers of finished parts to numbers of texts and calls `on_progress`."""
    parts = wholes = 0

    def add(count):
        nonlocal parts, wholes
        parts += count
        on_progress(parts * num_wholes // num_parts - wholes)
        wholes = parts * num_wholes // num_parts

    return add


def _is_without_spaces(joint, language):
    return bool(scripts_without_spaces(language)) or len(WITHOUT_SPACES.findall(joint)) == 2


def _within(text, length_of, limit, boundaries):
    """Splits a text at matches of `boundaries[0]`, and parts above the limit at matches of the next boundaries."""
    if len(text) <= limit * _CHARACTERS_OF_AN_ID and length_of(text) <= limit:
        return [text]
    if not boundaries:
        size = limit * _CHARACTERS_OF_AN_ID
        blocks = (text[start : start + size].strip() for start in range(0, len(text), size))
        return [part for block in blocks if block for part in _halved(block, length_of, limit)]
    boundary, *finer = boundaries
    ends = [match.end() for match in boundary.finditer(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise([0, *ends, len(text)])]
    pieces = [piece for piece in pieces if piece.strip()]
    if len(pieces) == 1:
        return _within(text, length_of, limit, finer)
    parts, together, length = [], [], 0
    for piece in pieces:
        more = length_of(piece) if len(piece) <= limit * _CHARACTERS_OF_AN_ID else limit + 1
        if together and length + more > limit:
            parts += _fitting("".join(together), length_of, limit, finer)
            together, length = [], 0
        together.append(piece)
        length += more
    return parts + _fitting("".join(together), length_of, limit, finer)


def _fitting(text, length_of, limit, finer):
    # The joined pieces are measured again, because the sum of their lengths is only approximate, and because a single
    # piece may be too long.
    text = text.strip()
    return _within(text, length_of, limit, finer) if text else []


def _halved(text, length_of, limit):
    if length_of(text) <= limit or len(text) < 2:
        return [text]
    halves = (text[: len(text) // 2].strip(), text[len(text) // 2 :].strip())
    return [part for half in halves if half for part in _halved(half, length_of, limit)]
