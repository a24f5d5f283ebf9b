"""What a `tokenizer.json` of Transformers says beside its pieces: how a text becomes words.

Our encoders do that in one way for each kind of vocabulary, so that any other way would give other ids: it is refused.
"""

from t2t_lite.errors import UserError, shown
from t2t_lite.text.published.bpe_files import WORD_END
from t2t_lite.text.published.wordpiece import LONGEST_WORD

# {part: {setting: value}}; one that is left out has that value, but for the part's type. None: off, or no such part.
_OF_BERT = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}
_WORD_PIECE = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": LONGEST_WORD}
_BPE = dict.fromkeys(("dropout", "continuing_subword_prefix", "byte_fallback", "ignore_merges"))
_OF_GPT2 = {
    "normalizer": {"type": None},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    "model": _BPE | {"end_of_word_suffix": None},
}
_OF_GPT = {**_OF_BERT, "normalizer": _OF_BERT["normalizer"] | {"lowercase": True}, "model": _BPE}
_WAYS = {"WordPiece": _OF_BERT | {"model": _WORD_PIECE}, "BPE": _OF_GPT2, WORD_END: _OF_GPT}


def settings_of(said, path):
    """Checks that a text becomes words as for BERT (WordPiece), GPT-2 (BPE) or GPT (BPE whose tokens end in `</w>`).

    Args:
        said: dict, the contents of a `tokenizer.json`; of another kind nothing is checked.
        path: str, its name, for errors.

    Returns:
        {name: bool}, what `tokenizer_config.json` has to say of the same vocabulary.

    Raises:
        UserError: something else is done to a text, or in another way.
    """
    kind = said["model"]["type"]
    way = _WAYS[WORD_END] if said["model"].get("end_of_word_suffix") == WORD_END else _WAYS.get(kind, {})
    for part, settings in way.items():
        found = said.get(part) or {}
        for name, expected in settings.items():
            _check(path, f"{part}: {name}", found.get(name, None if name == "type" else expected), expected)
    if kind != "WordPiece":
        return {}
    lower, accents = (said["normalizer"].get(name) for name in ("lowercase", "strip_accents"))
    _check(path, "normalizer: strip_accents", lower if accents is None else accents, lower)
    return {"do_lower_case": bool(lower)}


def _check(path, name, value, expected):
    if (value or None) != (expected or None):  # false, 0 and "" are as good as none
        found = f"{name}={shown(value)}" if value is not None else f"no {name}"
        raise UserError(
            f"{path}: {found}. Expected {'none' if expected is None else shown(expected)}: texts become words in no "
            "other way here, and would have other ids."
        )
