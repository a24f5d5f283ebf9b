"""Finds the script of a letter and the scripts of a language, and tells which scripts put no spaces between words.

A script is named by the first word of its letters' Unicode names: LATIN, CYRILLIC, CJK (Han), DEVANAGARI …
"""

import functools
import re
import unicodedata

from t2t_lite.errors import UserError

# {script: ISO 639 codes of the languages written in it}. The table has all two-letter codes and common three-letter
# codes, even if a two-letter code exists (jpn, zho, chi). The codes cn, jp and jap are not in ISO 639, but files and
# models use them. If a language has several scripts, text in any of these scripts is accepted.
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
    "HEBREW": "he iw lad yi", "GREEK": "el grc", "ARMENIAN": "hy hyw", "GEORGIAN": "ka xmf", "ETHIOPIC": "am ti",
    "BENGALI": "as bn bpy mni", "TIBETAN": "bo bod dz dzo tib", "THAANA": "dv", "GUJARATI": "gu", "YI": "ii",
    "KHMER": "khm km", "KANNADA": "kn", "LAO": "lao lo", "MALAYALAM": "ml", "MYANMAR": "bur mnw my mya shn",
    "ORIYA": "or", "OL": "sat", "SINHALA": "si", "TAMIL": "ta", "TELUGU": "te", "THAI": "th tha", "TIFINAGH": "zgh",
    "CHEROKEE": "chr", "CJK BOPOMOFO": "cdo chi cjy cmn cn gan hak hsn lzh wuu yue zh zho",
    "CJK HIRAGANA KATAKANA": "ja jap jp jpn", "HANGUL CJK": "ko kor",
    "LATIN CYRILLIC": "az bs crh kk sr tk tt uz", "LATIN ARABIC": "ha ku ms", "LATIN CANADIAN": "cr iu oj",
    "LATIN TIFINAGH": "ber shi", "CYRILLIC MONGOLIAN": "mn", "ARABIC DEVANAGARI": "ks sd", "GURMUKHI ARABIC": "pa",
}  # fmt: skip
# ISO 15924 codes of scripts, as in the language code sr-Latn.
_SUBTAGS = {
    "latn": "LATIN", "cyrl": "CYRILLIC", "arab": "ARABIC", "deva": "DEVANAGARI", "hebr": "HEBREW", "grek": "GREEK",
    "armn": "ARMENIAN", "geor": "GEORGIAN", "ethi": "ETHIOPIC", "beng": "BENGALI", "tibt": "TIBETAN", "thaa": "THAANA",
    "gujr": "GUJARATI", "khmr": "KHMER", "knda": "KANNADA", "laoo": "LAO", "mlym": "MALAYALAM", "mymr": "MYANMAR",
    "orya": "ORIYA", "olck": "OL", "sinh": "SINHALA", "taml": "TAMIL", "telu": "TELUGU", "thai": "THAI",
    "tfng": "TIFINAGH", "cher": "CHEROKEE", "hans": "CJK", "hant": "CJK", "hani": "CJK", "guru": "GURMUKHI",
    "jpan": "CJK HIRAGANA KATAKANA", "kore": "HANGUL CJK", "hang": "HANGUL", "cans": "CANADIAN", "mong": "MONGOLIAN",
    "nkoo": "NKO", "syrc": "SYRIAC", "java": "JAVANESE",
}  # fmt: skip
# Scripts without spaces between words. Korean (Hangul with some Han characters) has spaces.
_WITHOUT_SPACES = {"CJK", "BOPOMOFO", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"}
# Matches a character of the scripts without spaces, including their punctuation and digits.
WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u3000-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u9fff"
    "\uaa60-\uaa7f\uf900-\ufaff\uff00-\uff9f\U00020000-\U0003ffff]"
)
_SAMPLE = 1000  # number of lines of a text that are examined for spaces
_LONG = 40  # number of characters; a longer line has several words in any language
_WIDTHS = {"FULLWIDTH", "HALFWIDTH"}
# Words that begin the Unicode names of letters, but do not name a script. Any text may use these letters, such as ª µ Ω
# ℝ ⁿ ʼ.
_ANYWHERE = {
    "FEMININE", "MASCULINE", "MICRO", "OHM", "KELVIN", "ANGSTROM", "EULER", "DOUBLE-STRUCK", "BLACK-LETTER", "SCRIPT",
    "INFORMATION", "MATHEMATICAL", "SUPERSCRIPT", "SUBSCRIPT", "MODIFIER", "ARABIC-INDIC", "ALEF", "BET", "GIMEL",
}  # fmt: skip


def scripts_of(language):
    """Returns the set of scripts in which a language is written.

    Args:
        language: a code such as "de" or "zh_TW". A script in the code (ISO 15924), as in "sr-Latn", takes precedence.

    Raises:
        UserError: the language is unknown.
    """
    scripts = _known_scripts(language)
    if not scripts:
        base = subtags(language)[0]
        raise UserError(
            f"wrong_script: the scripts of the language {language!r} are unknown. Set --languages to a two-letter "
            f"code, or to a code with a script, such as {base}-Latn or {base}-Cyrl; or remove wrong_script from "
            "--filters."
        )
    return scripts


def scripts_without_spaces(language):
    """Returns the set of scripts of a language whose words are not separated by spaces.

    Args:
        language: a code as for `scripts_of`, or None.

    Returns:
        The set of scripts. It is empty for languages with spaces, for romanized languages ("ja-Latn") and for unknown
        languages.
    """
    scripts = _known_scripts(language) if language else set()
    return scripts if scripts <= _WITHOUT_SPACES else set()


def lacks_spaces(lines):
    """Returns whether lines contain so few spaces that each line would be taken for one word.

    In languages with spaces between words, every 4th to 12th character is a space. Short lines, such as the words of a
    list, are judged only if they are in a script without spaces.

    Args:
        lines: list of str, tokenized or not; only the first thousand are examined.
    """
    lines = lines[:_SAMPLE]
    words = [line.split() for line in lines]
    characters, spaces = sum(map(len, map("".join, words))), sum(max(0, len(line) - 1) for line in words)
    if 2 * sum(len(WITHOUT_SPACES.findall(line)) for line in lines) > characters:
        return 8 * spaces < characters
    return characters > _LONG * sum(map(bool, words)) and 25 * spaces < characters


def is_language(code):
    """Returns whether the scripts of a language are known; `code` has no script or region."""
    return code in _scripts_by_language()


def script_of(character):
    """Returns the script of a letter, or "" for other characters and for letters that belong to no script."""
    if not character.isalpha():
        return ""
    words = [word for word in unicodedata.name(character, "").split() if word not in _WIDTHS]
    if not words or words[0] in _ANYWHERE:
        return ""
    # for example, KATAKANA-HIRAGANA PROLONGED SOUND MARK and IDEOGRAPHIC ITERATION MARK
    return "CJK" if words[0] == "IDEOGRAPHIC" else words[0].partition("-")[0]


def _known_scripts(language):
    base, *others = subtags(language)
    scripts = [_SUBTAGS[subtag] for subtag in others if subtag in _SUBTAGS]
    return set((scripts[0] if scripts else _scripts_by_language().get(base, "")).split())


def subtags(language):
    """Splits a language code such as "zh_TW" into a list of lower-case parts, with the language first."""
    return language.replace("_", "-").lower().split("-")


@functools.cache
def _scripts_by_language():
    return {code: scripts for scripts, codes in _LANGUAGES.items() for code in codes.split()}
