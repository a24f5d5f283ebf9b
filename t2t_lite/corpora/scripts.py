"""The script of a letter, and the scripts in which a language is written.

A script is named by the first word of its letters' Unicode names: LATIN, CYRILLIC, CJK (Han), DEVANAGARI …
"""

import functools
import unicodedata

from t2t_lite.errors import UserError

# ISO 639 language codes: those of two letters, and frequent ones of three. Any of several scripts is accepted.
_LANGUAGES = {
    "LATIN": """
        aa af ak an ast ay bar bi bm br ca ceb ch co cs csb cy da de dsb ee en eo es et eu ff fi fil fj fo fr fur fy ga
        gd gl gn gsw gv haw hil ho hr hsb ht hu hz ia id ie ig ik ilo in io is it jv kab kg ki kj kl kr kw la lb lg li
        lij lmo ln lt lu lv mg mh mi mo mt na nap nb nd nds ng nl nn no nr nso nv ny oc om pap pcm pl pms pt qu rm rn ro
        rw sc scn se sg sh sk sl sm sn so sq ss st su sv sw szl tl tn to tpi tr ts tw ty ve vec vi vo wa war wo xh yo za
        zu
    """,
    "CYRILLIC": "ab av ba be bg ce cu cv kbd kv ky mhr mk myv os ru sah tg tyv udm uk xal",
    "ARABIC": "ar ary arz azb bal ckb fa glk lrc mzn pnb ps ug ur",
    "DEVANAGARI": "awa bh bho gom hi mai mr ne new pi sa",
    "HEBREW": "he iw lad yi",
    "GREEK": "el grc",
    "ARMENIAN": "hy hyw",
    "GEORGIAN": "ka xmf",
    "ETHIOPIC": "am ti",
    "BENGALI": "as bn bpy mni",
    "TIBETAN": "bo dz",
    "THAANA": "dv",
    "GUJARATI": "gu",
    "YI": "ii",
    "KHMER": "km",
    "KANNADA": "kn",
    "LAO": "lo",
    "MALAYALAM": "ml",
    "MYANMAR": "my mnw shn",
    "ORIYA": "or",
    "OL": "sat",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
    "TIFINAGH": "zgh",
    "CHEROKEE": "chr",
    "CJK BOPOMOFO": "gan hak lzh wuu yue zh",
    "CJK HIRAGANA KATAKANA": "ja",
    "HANGUL CJK": "ko",
    "LATIN CYRILLIC": "az bs crh kk sr tk tt uz",
    "LATIN ARABIC": "ha ku ms",
    "LATIN CANADIAN": "cr iu oj",
    "LATIN TIFINAGH": "ber shi",
    "CYRILLIC MONGOLIAN": "mn",
    "ARABIC DEVANAGARI": "ks sd",
    "GURMUKHI ARABIC": "pa",
}
# ISO 15924 codes, as in sr-Latn.
_SUBTAGS = {
    "latn": "LATIN", "cyrl": "CYRILLIC", "arab": "ARABIC", "deva": "DEVANAGARI", "hebr": "HEBREW", "grek": "GREEK",
    "armn": "ARMENIAN", "geor": "GEORGIAN", "ethi": "ETHIOPIC", "beng": "BENGALI", "tibt": "TIBETAN", "thaa": "THAANA",
    "gujr": "GUJARATI", "khmr": "KHMER", "knda": "KANNADA", "laoo": "LAO", "mlym": "MALAYALAM", "mymr": "MYANMAR",
    "orya": "ORIYA", "olck": "OL", "sinh": "SINHALA", "taml": "TAMIL", "telu": "TELUGU", "thai": "THAI",
    "tfng": "TIFINAGH", "cher": "CHEROKEE", "hans": "CJK", "hant": "CJK", "hani": "CJK", "guru": "GURMUKHI",
    "jpan": "CJK HIRAGANA KATAKANA", "kore": "HANGUL CJK", "hang": "HANGUL", "cans": "CANADIAN", "mong": "MONGOLIAN",
    "nkoo": "NKO", "syrc": "SYRIAC", "java": "JAVANESE",
}  # fmt: skip
_WIDTHS = {"FULLWIDTH", "HALFWIDTH"}
# First words of letters' names that are not a script, or of letters that occur in any text: ª º µ Ω ℝ ⁿ ʼ.
_ANYWHERE = {
    "FEMININE", "MASCULINE", "MICRO", "OHM", "KELVIN", "ANGSTROM", "EULER", "DOUBLE-STRUCK", "BLACK-LETTER", "SCRIPT",
    "INFORMATION", "MATHEMATICAL", "SUPERSCRIPT", "SUBSCRIPT", "MODIFIER", "ARABIC-INDIC", "ALEF", "BET", "GIMEL",
}  # fmt: skip


def scripts_of(language):
    """Returns the set of scripts that a language is written in.

    Args:
        language: a code such as "de" or "zh_TW". A script (ISO 15924), as in "sr-Latn", takes precedence.

    Raises:
        UserError: the language is not in the table.
    """
    base, *subtags = language.replace("_", "-").lower().split("-")
    for subtag in subtags:
        if subtag in _SUBTAGS:
            return set(_SUBTAGS[subtag].split())
    if base not in _scripts_by_language():
        raise UserError(
            f"wrong_script: no scripts are known for the language {language!r}. Give a two-letter code, or the script "
            f"as well, by --languages, such as {base}-Latn or {base}-Cyrl; or leave wrong_script out of --filters."
        )
    return set(_scripts_by_language()[base])


def script_of(character):
    """Returns the script of a letter, or "" for other characters and for letters of no particular script."""
    if not character.isalpha():
        return ""
    words = [word for word in unicodedata.name(character, "").split() if word not in _WIDTHS]
    if not words or words[0] in _ANYWHERE:
        return ""
    # KATAKANA-HIRAGANA PROLONGED SOUND MARK, IDEOGRAPHIC ITERATION MARK
    return "CJK" if words[0] == "IDEOGRAPHIC" else words[0].partition("-")[0]


@functools.cache
def _scripts_by_language():
    return {code: scripts.split() for scripts, codes in _LANGUAGES.items() for code in codes.split()}
