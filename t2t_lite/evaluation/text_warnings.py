"""Warns of texts whose scores are wrong or slow without an error: no spaces, other Unicode forms, blank references."""

import unicodedata

from t2t_lite.corpora.scripts import lacks_spaces
from t2t_lite.errors import counted
from t2t_lite.evaluation.tokenizations import suggested_tokenization

_TOKENIZED_LINES = 100  # sacreBLEU's limit for its warning
_LONG_FOR_TER = 300  # words: seconds for one line


def text_warnings(hypotheses, references, metrics):
    """Returns warnings about texts to be scored, a list of str.

    Args:
        hypotheses: list of str.
        references: list of lists of str, one per reference translation.
        metrics: {name: sacreBLEU's metric}, as `scores.make_metric` returns them.
    """
    warnings = [_warning_of_spaces(name, metrics[name], references[0]) for name in ("bleu", "ter") if name in metrics]
    warnings.append(warning_of_forms(hypotheses, references))
    if "bleu" in metrics or "ter" in metrics:  # chrF uses the best reference
        warnings += _warnings_of_blanks(references)
    tokenized = sum(line.endswith(" .") for line in hypotheses)
    if tokenized > _TOKENIZED_LINES:
        warnings.append(f"{tokenized} lines end in a blank and a full stop. sacreBLEU expects detokenized text.")
    if "ter" in metrics and any(line.count(" ") >= _LONG_FOR_TER for line in hypotheses):
        warnings.append(f"TER takes long where lines have more than {_LONG_FOR_TER} words.")
    return [warning for warning in warnings if warning]


def _warning_of_spaces(name, metric, lines):
    lines = [line for line in lines if line]
    if not lacks_spaces([metric.tokenizer(line) for line in lines]):
        return ""
    suggested = suggested_tokenization(lines)
    if name == "bleu":
        return (
            f"BLEU with the tokenization {metric.tokenizer_signature} needs spaces, and the references hold next to "
            f"none: a line counts as one word. Expected --tokenization={suggested}; in Python tokenize={suggested!r}."
        )
    if metric.normalized and metric.asian_support:
        advice = "sacreBLEU's TER has no option for this script; BLEU and chrF have."
    else:
        advice = (
            "Expected --ter_normalized --ter_asian_support, for Chinese and Japanese; in Python ter={'normalized': "
            "True, 'asian_support': True}."
        )
    return f"TER needs spaces, and the references hold next to none: a line counts as one word. {advice}"


def _warnings_of_blanks(references):
    """Yields a warning for each reference with blank lines where another one has text."""
    for number, reference in enumerate(references, 1):
        blank = [
            at
            for at, lines in enumerate(zip(*references, strict=True))
            if reference[at] is not None and not reference[at].strip() and any(line and line.strip() for line in lines)
        ]
        if blank:
            yield (
                f"reference {number} of {len(references)}: {counted(len(blank), 'blank line')}, such as line "
                f"{blank[0] + 1}. Each counts as a reference of no words, as if nothing had to be "
                "translated there. Expected a translation on each line, or one reference less."
            )


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
