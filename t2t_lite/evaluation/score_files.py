"""Reads translations and references from files, and computes tensor2tensor's own BLEU."""

import functools
import math
import re
import unicodedata

import sacrebleu.metrics

from t2t_lite.corpora import plain_text, wmt_files
from t2t_lite.corpora.scripts import lacks_spaces
from t2t_lite.errors import LOGGER, UserError, counted
from t2t_lite.evaluation.scores import check_texts

_LAST_CODE_POINT = 0x20000  # from this code point on, no character is punctuation or a symbol


def read_lines(path, side=""):
    """Returns the lines of a file, a pipe or standard input ("-") as a list of str.

    Args:
        path: str.
        side: the side to read if the file is a WMT test set (`wmt_files`), such as `wmt_files.SOURCE`; "" to read plain
            lines.

    Raises:
        UserError: the file is missing, unreadable, empty or damaged.
    """
    path = "/dev/stdin" if path == "-" else path
    if side and wmt_files.is_test_set(path):
        return wmt_files.read_side(path, side)
    return list(plain_text.read_lines(path))


def read_references(paths):
    """Reads reference files; returns a list of str for each file, or for each complete reference of an XML test set.

    Raises:
        UserError: see `read_lines`; also if the numbers of lines differ.
    """
    references = []
    for path in paths:
        is_set = wmt_files.is_test_set(path)
        sides = wmt_files.read_sides(path, wmt_files.REFERENCE) if is_set else [read_lines(path)]
        if references and len(sides[0]) != len(references[0]):
            raise UserError(
                f"{path} has {counted(len(sides[0]), 'line')}, but {paths[0]} has {len(references[0])}. Expected "
                "references for the same text."
            )
        references += sides
    return references


def read_translation(path, other_path, count, advice="Expected as many.", side=wmt_files.TRANSLATION):
    """Returns the lines of a file, see `read_lines`. Raises `UserError` unless the file has `count` lines."""
    lines = read_lines(path, side)
    if len(lines) != count:
        name = "standard input" if path == "-" else path
        raise UserError(f"{name} has {counted(len(lines), 'line')}, but {other_path} has {count}. {advice}")
    return lines


def tensor2tensor_scores(translation, references, variant="both"):
    """Returns tensor2tensor's BLEU, {"BLEU_uncased": float, "BLEU_cased": float} or only one of these entries."""
    return {
        f"BLEU_{case}": tensor2tensor_bleu(*check_texts(translation, references), case == "uncased")
        for case in ("uncased", "cased")
        if variant in (case, "both")
    }


def note_tensor2tensors_words(lines):
    """Logs that tensor2tensor's scores mean little if the lines of a reference have hardly any spaces."""
    if lacks_spaces(lines):
        LOGGER.info(
            "tensor2tensor's BLEU_uncased and BLEU_cased count a line without spaces as one word, so they mean little "
            "for this reference."
        )


def tensor2tensor_bleu(hypotheses, references, lowercase=False):
    """Returns tensor2tensor's BLEU-4 of a corpus, from 0 to 100.

    An n-gram order for which the hypotheses have no n-grams counts as entirely correct. The other orders are smoothed
    even if not a single word is correct. sacreBLEU's score is 0 in both cases.

    Args:
        hypotheses: list of str, detokenized text, one per sentence.
        references: list of lists of str, one per reference translation. tensor2tensor supports only one reference; with
            several references, n-grams and lengths are compared as in sacreBLEU.
        lowercase: bool, whether to ignore case.
    """
    hypotheses, *references = (
        [" ".join(tokens(text.lower() if lowercase else text)) for text in texts] for texts in (hypotheses, *references)
    )
    bleu = sacrebleu.metrics.BLEU(tokenize="none", force=True).corpus_score(hypotheses, references)
    logarithms, smooth = [], 1
    for correct, total in zip(bleu.counts, bleu.totals, strict=True):
        if total:
            smooth *= 1 if correct else 2
            logarithms.append(math.log(correct / total if correct else 1 / (smooth * total)))
    return 100 * bleu.bp * math.exp(sum(logarithms) / len(bleu.totals)) if logarithms else 0.0


def tokens(text):
    """Splits a text into words, punctuation marks and symbols; a mark next to a digit may be part of the number."""
    for pattern, parts in _rules():
        text = pattern.sub(parts, text)
    return text.split()


@functools.cache
def _rules():
    """Returns the pairs (regular expression, replacement) that tokenize a text for tensor2tensor's BLEU.

    As in tensor2tensor, the backslash does not count as punctuation.
    """
    characters = [chr(code) for code in range(_LAST_CODE_POINT) if code != ord("\\")]
    marks, symbols = (
        "".join(re.escape(c) for c in characters if unicodedata.category(c).startswith(kind)) for kind in "PS"
    )
    rules = (rf"([^\d])([{marks}])", r"\1 \2 "), (rf"([{marks}])([^\d])", r" \1 \2"), (f"([{symbols}])", r" \1 ")
    return [(re.compile(pattern), parts) for pattern, parts in rules]
