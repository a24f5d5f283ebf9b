"""The tokenisations that sacreBLEU offers for BLEU, and what some of them need before they work."""

import os

import sacrebleu.metrics
import sacrebleu.tokenizers.tokenizer_spm as sentencepiece_models

from t2t_lite.errors import UserError, nearest

TOKENIZATIONS = tuple(sacrebleu.metrics.BLEU.TOKENIZERS)
_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}


def check_tokenization(name, where="tokenize"):
    """Raises `UserError` unless BLEU can be computed with this tokenisation here and now, without a download.

    Args:
        name: str, one of `TOKENIZATIONS`.
        where: str, what to call the setting in the message.
    """
    if name not in TOKENIZATIONS:
        same = [known for known in TOKENIZATIONS if known.lower() == name.lower()]
        close = f"Nearest: {same[0]}." if same else nearest(name, TOKENIZATIONS)
        raise UserError(
            f"{where}={name}: unknown tokenisation. {close} All: {', '.join(TOKENIZATIONS)}.".replace("  ", " ")
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
    """sacreBLEU would fetch a missing model by itself, without a checksum; here that is left to the user."""
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
