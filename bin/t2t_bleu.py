"""BLEU of a translation against its reference.

Prints three lines: tensor2tensor's BLEU_uncased and BLEU_cased (mteval-v14's international tokenisation), and
sacreBLEU (cased) with its signature, the figure to publish. Both files are UTF-8 text, one sentence a line, plain or
packed (.gz, .bz2, .xz).
"""

import sys

from t2t_lite.bin import _app
from t2t_lite.errors import UserError


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("translation", None, "File of translations.")
    flags.DEFINE_path("reference", None, "File of references, line by line.")
    flags.DEFINE_enum("bleu_variant", "both", ["cased", "uncased", "both"], "Which of tensor2tensor's lines to print.")
    flags.DEFINE_string("tokenization", "13a", "Tokenisation of the sacreBLEU line: 13a, intl, zh, char or none.")
    whole_folder = "Score the files one by one with --translation."
    flags.not_yet("translations_dir", None, whole_folder)
    flags.not_yet("event_dir", None, whole_folder)
    flags.not_yet("tag_suffix", "", whole_folder)
    flags.not_yet("min_steps", -1, whole_folder)
    flags.not_yet("wait_minutes", 0, whole_folder)
    flags.not_yet("report_zero", False, whole_folder)
    flags.no_effect("source", "BLEU does not look at the source")


def check(flags):
    """Raises `UserError` for flags that are missing."""
    _app.require(flags, "translation", "reference")


def run(flags):
    """Prints the scores."""
    from t2t_lite.data import corpora
    from t2t_lite.evaluation import scores

    if flags.tokenization not in scores.TOKENIZATIONS:
        raise UserError(f"--tokenization={flags.tokenization}: expected one of {', '.join(scores.TOKENIZATIONS)}.")
    translations = list(corpora.read_lines(flags.translation))
    references = list(corpora.read_lines(flags.reference))
    if len(translations) != len(references):
        raise UserError(
            f"{flags.translation} has {len(translations)} lines, {flags.reference} has {len(references)}: "
            "expected one translation for each reference."
        )
    published = scores.corpus_bleu(translations, references, tokenize=flags.tokenization)
    for variant in ("uncased", "cased"):
        if flags.bleu_variant in (variant, "both"):
            lowercase = variant == "uncased"
            bleu = scores.corpus_bleu(translations, references, lowercase=lowercase, tokenize="intl")
            print(f"BLEU_{variant} = {bleu.score:6.2f}")
    print(f"sacreBLEU = {published}")


def main(argv=None):
    """Runs the command; returns its exit status."""
    return _app.main("t2t-bleu", define_flags, run, argv, check=check)


if __name__ == "__main__":
    sys.exit(main())
