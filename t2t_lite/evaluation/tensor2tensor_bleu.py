"""tensor2tensor's own BLEU (utils/bleu_hook.py), which differs slightly from sacreBLEU's with tokenization "intl"."""

import functools
import math
import re
import unicodedata

import sacrebleu.metrics

_LAST = 0x20000  # the planes beyond have no punctuation or symbols


def tensor2tensor_bleu(hypotheses, references, lowercase=False):
    """Returns BLEU-4 of a corpus, from 0 to 100.

    An order for which the hypotheses have no n-grams counts as entirely correct, and the others are smoothed even if
    not a single word is correct. sacreBLEU's score is 0 in both cases.

    Args:
        hypotheses: list of str, detokenized text, one per sentence.
        references: list of lists of str, one per reference translation. tensor2tensor has only one; with several,
            n-grams and lengths are compared as in sacreBLEU.
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
    """Returns the words, punctuation marks and symbols of a text; a mark next to a digit may be part of the number."""
    for pattern, parts in _rules():
        text = pattern.sub(parts, text)
    return text.split()


@functools.cache
def _rules():
    """Returns pairs of an expression and its replacement. The backslash does not count as punctuation there."""
    characters = [chr(code) for code in range(_LAST) if code != ord("\\")]
    marks, symbols = (
        "".join(re.escape(c) for c in characters if unicodedata.category(c).startswith(kind)) for kind in "PS"
    )
    rules = (rf"([^\d])([{marks}])", r"\1 \2 "), (rf"([{marks}])([^\d])", r" \1 \2"), (f"([{symbols}])", r" \1 ")
    return [(re.compile(pattern), parts) for pattern, parts in rules]
