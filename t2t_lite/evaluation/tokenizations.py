"""Chooses sacreBLEU's tokenization for a language, and checks that its package or model is installed."""

import collections
import os

import sacrebleu.metrics
import sacrebleu.tokenizers.tokenizer_spm as sentencepiece_models

from t2t_lite.corpora import plain_text, wmt_files
from t2t_lite.corpora.scripts import WITHOUT_SPACES, lacks_spaces, script_of, scripts_without_spaces
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import Choices, typed_value

TOKENIZATIONS = tuple(sacrebleu.metrics.BLEU.TOKENIZERS)
DEFAULT = "13a"  # sacreBLEU's default, for languages with spaces
_CHINESE, _JAPANESE = {"CJK", "BOPOMOFO"}, {"HIRAGANA", "KATAKANA"}


def tokenization_of(language):
    """Returns the BLEU tokenization for a language: if the language has no spaces, one that does not rely on spaces.

    Args:
        language: a code such as "de", "zh-Hant-TW", "cmn" or "jpn_Jpan", or None.

    Returns:
        "zh" for Chinese; "ja-mecab" for Japanese if its package is installed; "char" for other languages without
        spaces, such as Thai, Khmer, Lao and Burmese; otherwise "13a".
    """
    return _tokenization_of_scripts(scripts_without_spaces(language))


def tokenization_of_file(path, lines):
    """Returns the tokenization for the language in a file's extension, such as `ref.zh` or `ref.zho_Hant.gz`.

    Args:
        path: str.
        lines: list of str, the lines of the file. If the lines have spaces, an extension as in `out.my` is not
            understood as Burmese.
    """
    if not lacks_spaces(lines):
        return DEFAULT
    if wmt_files.is_test_set(path):
        return tokenization_of(wmt_files.language_of(path, wmt_files.REFERENCE))
    return tokenization_of(os.path.splitext(plain_text.without_packing(path))[1][1:])


def tokenization_of_problem(problem, hparams):
    """Returns the BLEU tokenization of a run: `eval_tokenization` if set, or else that of the target language.

    Args:
        problem: Problem or None.
        hparams: HParams.

    Raises:
        UserError: the hyperparameter is not a tokenization, or its package is not installed.
    """
    if hparams.eval_tokenization:
        check_tokenization(hparams.eval_tokenization, "eval_tokenization")
        return hparams.eval_tokenization
    return tokenization_of(target_language(problem))


def target_language(problem):
    """Returns the language of a problem's targets, a code such as "de", or None if it is unknown."""
    return problem.languages[1] if problem and problem.languages else None


def suggested_tokenization(lines, tokenized):
    """Returns the tokenization for lines without spaces, according to the script of most of their letters.

    Args:
        lines: list of str.
        tokenized: list of str, the same lines after another tokenization. If this tokenization splits the lines into
            words, the result is "".
    """
    if not lacks_spaces(tokenized):
        return ""
    letters = (letter for line in lines[:1000] for letter in WITHOUT_SPACES.findall(line))
    counts = collections.Counter(script_of(letter) for letter in letters)
    del counts[""], counts["LATIN"]  # the counts of full-width characters
    scripts = {script for script, count in counts.items() if count > 0.05 * counts.total()}
    return _tokenization_of_scripts(scripts or {"THAI"})


def ter_options_of(language):
    """Returns the `ter_options` for a language; for Chinese and Japanese, TER counts characters."""
    is_asian = scripts_without_spaces(language) & (_CHINESE | _JAPANESE)
    return {"normalized": True, "asian_support": True} if is_asian else {}


def _tokenization_of_scripts(scripts):
    if not scripts:
        return DEFAULT
    if scripts <= _CHINESE:
        return "zh"
    return "ja-mecab" if scripts & _JAPANESE and _is_installed("ja-mecab") else "char"


def _is_installed(name):
    try:
        sacrebleu.metrics.BLEU(tokenize=name)
    # sacreBLEU raises an AssertionError if the dictionary is not the expected one
    except (RuntimeError, ImportError, AssertionError):
        return False
    return True


def check_tokenization(name, where="tokenize"):
    """Raises `UserError` unless a tokenization is available without a download.

    Args:
        name: str, one of `TOKENIZATIONS`.
        where: str, the name of the setting, used as the beginning of the error message.
    """
    typed_value(where, name, str, Choices(TOKENIZATIONS))
    if name in sentencepiece_models.SPM_MODELS:
        _check_model(name, where)
    if name in ("ja-mecab", "ko-mecab") and not _is_installed(name):
        raise UserError(
            f"{where}={name} needs packages that are not installed. Install them: pip install 'sacrebleu[{name[:2]}]'"
        )


def _check_model(name, where):
    """Raises `UserError` if a model is missing, because sacreBLEU would download it without a checksum."""
    url = sentencepiece_models.SPM_MODELS[name]["url"]
    path = os.path.join(sentencepiece_models.SACREBLEU_DIR, "models", os.path.basename(url))
    if not os.path.exists(path) or not os.path.getsize(path):
        raise UserError(
            f"{where}={name} needs sacreBLEU's SentencePiece model, which is missing. Download it: curl -L "
            f"--create-dirs -o {path} {url}"
        )
    if not _is_installed(name):
        raise UserError(f"{where}={name}: {path} is damaged. Delete it and download it again from {url}")
