"""Computes corpus scores with sacreBLEU, with signatures that make them comparable, and warns of unsuitable texts."""

import dataclasses
import unicodedata
from collections.abc import Sequence

import sacrebleu.metrics

from t2t_lite.errors import LOGGER, UserError, counted
from t2t_lite.evaluation.ter_options import check_ter_options
from t2t_lite.evaluation.tokenizations import DEFAULT, TOKENIZATIONS, check_tokenization, suggested_tokenization
from t2t_lite.settings.ranges import Choices, typed_value

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "TOKENIZATIONS",
    "Score",
    "check_metrics",
    "check_texts",
    "corpus_bleu",
    "corpus_scores",
]

# {name of a metric: printed title}. BLEU is printed as "sacreBLEU" to distinguish it from tensor2tensor's BLEU_cased.
METRICS = {"bleu": "sacreBLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}
# TER is not computed by default, because it may be slow: it takes 2 to 5 seconds for 1,000 sentences of news, but half
# a minute for one line of 800 words.
DEFAULT_METRICS = ("bleu", "chrf")
_TOKENIZED_LINES = 100  # number of tokenized lines that causes a warning, as in sacreBLEU
_LONG_FOR_TER = 300  # number of words in a line for which TER takes several seconds


@dataclasses.dataclass(frozen=True)
class Score:
    """A corpus score (0 to 100; TER can be higher) and sacreBLEU's signature (references, case, tokenization etc.)."""

    score: float
    signature: str

    def __str__(self):
        return f"{self.score:.2f} ({self.signature})"


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence, lowercase: bool = False, tokenize: str = DEFAULT
) -> Score:
    """Computes the BLEU-4 score of a corpus with sacreBLEU.

    tensor2tensor's own BLEU (utils/bleu_hook.py) is almost equal to this score with `tokenize="intl"`; see
    `t2t_lite.evaluation.score_files`.

    Args:
        hypotheses: list of str, detokenized text, one per sentence.
        references: list of str of the same length, or several such lists, one per reference translation.
        lowercase: whether to ignore case.
        tokenize: one of `TOKENIZATIONS`; for languages without spaces see `tokenizations.tokenization_of`.

    Returns:
        `Score`.

    Raises:
        UserError: the lists are empty or of unequal lengths, or the tokenization is unknown or not installed.

    Example:
        >>> corpus_bleu(["The red house is old."], ["The red house is old."]).score
        100.0
    """
    hypotheses, references = check_texts(hypotheses, references)
    metric = make_metric("bleu", tokenize, lowercase)
    warn_of_texts(hypotheses, references, {"bleu": metric})
    return _score(metric, hypotheses, references)


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence,
    metrics: Sequence[str] = DEFAULT_METRICS,
    tokenize: str = DEFAULT,
    ter: dict | None = None,
    where: str | None = "",
) -> dict[str, Score]:
    """Computes several scores of a corpus; all except TER are cased, as in sacreBLEU.

    Args:
        hypotheses, references: as for `corpus_bleu`.
        metrics: names in `METRICS`.
        tokenize: one of `TOKENIZATIONS`; used only by BLEU.
        ter: {name in `ter_options.TER_OPTIONS`: bool}; used only by TER.
        where: name of the translation in warnings, such as its path. If None, no warnings are logged.

    Returns:
        {name: `Score`}, in the order of `metrics`. A lower TER is better.

    Raises:
        UserError: see `corpus_bleu`; also if a metric is unknown or an option of TER has no effect.
    """
    hypotheses, references = check_texts(hypotheses, references)
    check_metrics(metrics)
    scorers = {name: make_metric(name, tokenize, ter=ter) for name in metrics}
    if where is not None:
        warn_of_texts(hypotheses, references, scorers, where)
    return {name: _score(metric, hypotheses, references) for name, metric in scorers.items()}


def make_metric(name, tokenize=DEFAULT, lowercase=False, of_sentences=False, ter=None):
    """Returns the metric object of sacreBLEU for a name.

    Args:
        name: a name in `METRICS`.
        tokenize, lowercase: used only by BLEU.
        of_sentences: whether to skip n-gram orders for which a sentence is too short; used only by BLEU.
        ter: {name in `ter_options.TER_OPTIONS`: bool}, or None; used only by TER.

    Raises:
        UserError: the tokenization is unknown or not installed, or an option of TER has no effect.
    """
    if name == "bleu":
        check_tokenization(tokenize)
        # `force` disables sacreBLEU's warning about tokenized text, which every call would log; see `warn_of_texts`
        # instead.
        return sacrebleu.metrics.BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=of_sentences, force=True)
    if name == "ter":
        check_ter_options(ter or {})
        return sacrebleu.metrics.TER(**(ter or {}))
    return sacrebleu.metrics.CHRF(word_order=2 * (name == "chrf++"))


def by_title(by_name):
    """Converts {name: `Score`} from `corpus_scores` to {title: {"score", "signature"}}, for JSON."""
    return {METRICS[name]: dataclasses.asdict(score) for name, score in by_name.items()}


def signature_lines(by_name):
    """Returns a line `<title>: <signature>` for each entry of {name: `Score`}."""
    return [f"{METRICS[name]}: {score.signature}" for name, score in by_name.items()]


def check_metrics(names, where="metrics"):
    """Raises `UserError` unless `names` has one or more different names in `METRICS`."""
    for name in names:
        typed_value(where, name, str, Choices(tuple(METRICS)))
    if not names or len(set(names)) < len(names):
        raise UserError(f"{where}={','.join(names)}: expected one or more of {', '.join(METRICS)}, each once.")


def check_texts(hypotheses, references):
    """Returns hypotheses and references as (list of str, list of lists of str, one per reference translation).

    Raises:
        UserError: the lists are empty or of unequal lengths, or one of them is a str.
    """
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):  # its characters would be taken for sentences
            raise UserError(f"{name}: found one str. Expected a list of sentences, such as [text].")
    hypotheses, references = list(hypotheses), list(references)
    if not references or isinstance(references[0], str):
        references = [references]
    for reference in references:
        if len(hypotheses) != len(reference):
            raise UserError(
                f"found {counted(len(hypotheses), 'translation')} but {counted(len(reference), 'reference')}. Expected "
                "one reference per translation."
            )
    if not hypotheses:
        raise UserError("there are no sentences to score, because the translations and the references are empty.")
    return hypotheses, references


def _score(metric, hypotheses, references):
    return Score(bounded(metric, metric.corpus_score(hypotheses, references).score), metric.get_signature().format())


def bounded(metric, score):
    """Returns a score of at most 100, except for TER; due to rounding, sacreBLEU's BLEU may be 100.00000000000004."""
    return score if isinstance(metric, sacrebleu.metrics.TER) else min(score, 100.0)


def warn_of_texts(hypotheses, references, metrics, where=""):
    """Checks texts that are to be scored, and logs warnings.

    Args:
        hypotheses: list of str.
        references: list of lists of str, one per reference translation.
        metrics: {name: result of `make_metric`}. Without metrics, spaces and blank lines are not checked.
        where: str, the beginning of the warnings, or "".
    """
    warnings = [_warning_of_spaces(name, metrics[name], references[0]) for name in ("bleu", "ter") if name in metrics]
    warnings.append(warning_of_forms(hypotheses, references))
    if "bleu" in metrics or "ter" in metrics:  # chrF uses the best reference, so blank references have no effect
        warnings += _warnings_of_blanks(references)
    tokenized = sum(line.endswith(" .") for line in hypotheses)
    if tokenized > _TOKENIZED_LINES:
        warnings.append(f"{tokenized} lines end in a space and a full stop. sacreBLEU expects detokenized text.")
    tabs = sum("\t" in line for line in hypotheses)
    if 2 * tabs > len(hypotheses) and not any("\t" in (line or "") for line in references[0]):
        warnings.append(
            f"{counted(tabs, 'line')} with a tab, which references lack. Scores and further outputs "
            "(write_beam_scores, n_best) count as words. Score the first column: cut -f1."
        )
    if "ter" in metrics and any(line.count(" ") >= _LONG_FOR_TER for line in hypotheses):
        warnings.append(f"TER is slow for lines with more than {_LONG_FOR_TER} words.")
    for warning in filter(None, warnings):
        LOGGER.warning(f"{where}: {warning}" if where else warning)


def _warning_of_spaces(name, metric, lines):
    lines = [line for line in lines if line]
    suggested = suggested_tokenization(lines, [metric.tokenizer(line) for line in lines])
    if not suggested:
        return ""
    if name == "bleu":
        return (
            f"BLEU with the tokenization {metric.tokenizer_signature} needs spaces, but the references contain hardly "
            f"any, so a line counts as one word. Set --tokenization={suggested}, or in Python tokenize={suggested!r}."
        )
    return (
        "TER needs spaces, but the references contain hardly any, so a line counts as one word. For Chinese and "
        "Japanese, add --ter_normalized --ter_asian_support, or in Python ter={'normalized': True, 'asian_support': "
        "True}. For other scripts, use BLEU or chrF."
    )


def _warnings_of_blanks(references):
    """Yields a warning for each reference with blank lines where another reference has text."""
    for number, reference in enumerate(references, 1):
        blank = [
            at
            for at, lines in enumerate(zip(*references, strict=True))
            if reference[at] is not None and not reference[at].strip() and any(line and line.strip() for line in lines)
        ]
        if blank:
            yield (
                f"reference {number} of {len(references)} has {counted(len(blank), 'blank line')}, such as line "
                f"{blank[0] + 1}. A blank line counts as a reference without words, as if there were nothing to "
                "translate. Expected a translation on each line, or fewer references."
            )


def warning_of_forms(hypotheses, references, unit="line"):
    """Returns a warning if texts and references have letters that are equal only after NFC normalization; otherwise "".

    Args:
        hypotheses: list of str.
        references: list of lists of str or None, one list per reference.
        unit: str, the word for one of the texts in the warning.
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
        f"{counted(len(different), unit)}, such as {unit} {min(different)}: the text and the reference use different "
        "Unicode forms (é as one character, or as e plus an accent), so equal letters do not match. Normalize both to "
        "NFC: uconv -x any-nfc; in Python unicodedata.normalize('NFC', text)."
    )


def _differ_in_form(first, second):
    """Returns whether two texts have letters that are equal only after NFC normalization."""
    if first.isascii() or second.isascii() or _is_nfc(first) == _is_nfc(second):
        return False
    normalized = [{*unicodedata.normalize("NFC", text)} for text in (first, second)]
    return not set.intersection(*normalized) <= {*first} & {*second}


def _is_nfc(text):
    return unicodedata.is_normalized("NFC", text)
