"""Checks how a `tokenizer.json` of Transformers splits a text into words.

Our encoders do so in one way for each kind of vocabulary. Any other way is refused, since it would give other ids.
"""

from t2t_lite.errors import UserError, shown
from t2t_lite.text.published.bpe_files import WORD_END
from t2t_lite.text.published.wordpiece import LONGEST_WORD

# {part: {setting: value}}; the values are the defaults, except for the part's type. None: off, or no such part.
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


def settings_of(tokenizer, path):
    """Checks that texts are split as by BERT (WordPiece), GPT-2 (BPE) or GPT (BPE whose tokens end in `</w>`).

    Args:
        tokenizer: dict, the contents of a `tokenizer.json`; other kinds are not checked.
        path: str, its name, for errors.

    Returns:
        {name: bool}, the corresponding settings of `tokenizer_config.json`.

    Raises:
        UserError: texts are split in another way.
    """
    kind = tokenizer["model"]["type"]
    way = _WAYS[WORD_END] if tokenizer["model"].get("end_of_word_suffix") == WORD_END else _WAYS.get(kind, {})
    for part, settings in way.items():
        actual = tokenizer.get(part) or {}
        for name, expected in settings.items():
            check_setting(path, f"{part}: {name}", actual.get(name, None if name == "type" else expected), expected)
    if kind != "WordPiece":
        return {}
    lower, accents = (tokenizer["normalizer"].get(name) for name in ("lowercase", "strip_accents"))
    check_setting(path, "normalizer: strip_accents", lower if accents is None else accents, lower)
    return {"do_lower_case": bool(lower)}


def check_setting(path, name, value, expected):
    """Raises `UserError` unless a setting has the expected value; None: off, or no such part."""
    if (value or None) != (expected or None):  # false, 0 and "" are equivalent to None
        actual = f"{name}={shown(value)}" if value is not None else f"no {name}"
        raise UserError(
            f"{path}: {actual}. Expected {'none' if expected is None else shown(expected)}: texts become words in no "
            "other way here, and would have other ids."
        )
