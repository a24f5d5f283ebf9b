"""sacreBLEU's tokenizations for BLEU, and what must be installed for some of them."""

import os

import sacrebleu.metrics
import sacrebleu.tokenizers.tokenizer_spm as sentencepiece_models

from t2t_lite.errors import UserError, nearest

TOKENIZATIONS = tuple(sacrebleu.metrics.BLEU.TOKENIZERS)
_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}


def check_tokenization(name, where="tokenize"):
    """Raises `UserError` unless this tokenization works here without a download.

    Args:
        name: str, one of `TOKENIZATIONS`.
        where: str, name of the setting in the message.
    """
    if name not in TOKENIZATIONS:
        same = [known for known in TOKENIZATIONS if known.lower() == name.lower()]
        close = f"Nearest: {same[0]}." if same else nearest(name, TOKENIZATIONS)
        raise UserError(
            f"{where}={name}: unknown tokenization. {close} All: {', '.join(TOKENIZATIONS)}.".replace("  ", " ")
        )
    if name in sentencepiece_models.SPM_MODELS:
        _check_model(name, where)
    if name in _EXTRAS:
        try:
            sacrebleu.metrics.BLEU(tokenize=name)
        except (RuntimeError, ImportError):
            raise UserError(
                f"{where}={name}: needs packages that are not installed. Install them: "
                f"pip install 'sacrebleu[{_EXTRAS[name]}]'"
            ) from None


def _check_model(name, where):
    """Raises `UserError` if a model is missing, because sacreBLEU would download it without checking a checksum."""
    url = sentencepiece_models.SPM_MODELS[name]["url"]
    path = os.path.join(sentencepiece_models.SACREBLEU_DIR, "models", os.path.basename(url))
    if not os.path.exists(path) or not os.path.getsize(path):
        raise UserError(
            f"{where}={name}: needs sacreBLEU's SentencePiece model, which is not there. Get it: "
            f"curl -L --create-dirs -o {path} {url}"
        )
    try:
        sacrebleu.metrics.BLEU(tokenize=name)
    except RuntimeError:
        raise UserError(f"{where}={name}: {path} is damaged. Delete it and get it again from {url}") from None
