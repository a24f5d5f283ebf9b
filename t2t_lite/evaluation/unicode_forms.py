"""Detects texts and references in different normalization forms of Unicode, in which equal letters differ."""

import unicodedata

from t2t_lite.errors import counted


def warning_of_forms(hypotheses, references, unit="line"):
    """Returns a warning if texts and references have letters that are equal only in NFC; or "".

    Args:
        hypotheses: list of str.
        references: list of lists of str or None, one per reference.
        unit: str, the word for one of the texts.
    """
    different = {
        number
        for reference in references
        for number, pair in enumerate(zip(hypotheses, reference, strict=True), 1)
        if pair[1] and _differ_in_form(*pair)
    }
    if not different:
        return ""
    return (
        f"{counted(len(different), unit)}, such as {unit} {min(different)}: text and reference are in different "
        "forms of Unicode (é is one character, or e and an accent), and equal letters do not match. Normalize both to "
        "one form, NFC: uconv -x any-nfc; in Python unicodedata.normalize('NFC', text)."
    )


def _differ_in_form(first, second):
    """Returns whether two texts share letters in NFC that they do not share as they are."""
    if first.isascii() or second.isascii() or _is_nfc(first) == _is_nfc(second):
        return False
    normalized = [{*unicodedata.normalize("NFC", text)} for text in (first, second)]
    return not set.intersection(*normalized) <= {*first} & {*second}


def _is_nfc(text):
    return unicodedata.is_normalized("NFC", text)
