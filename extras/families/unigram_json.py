"""Checks how a Unigram `tokenizer.json` of Transformers changes texts and splits them."""

from t2t_lite.files.safe_json import check_schema
from t2t_lite.interchange.tokenizer_json import check_setting


def clean_up(tokenizer, path):
    """Returns the settings of the clean-up of ALBERT's and XLNet's tokenizers, which replaces quotation marks."""
    normalizer = tokenizer.get("normalizer") or {}
    rules = normalizer.get("normalizers", [normalizer])
    check_schema(rules, [{"type?": str}], f"{path}: 'normalizer'")
    types = [rule.get("type") for rule in rules]
    if not any(rule.get("pattern") == {"String": "``"} for rule in rules):
        return {}
    return {"do_lower_case": "Lowercase" in types, "keep_accents": "StripAccents" not in types}


def check_words(tokenizer, rules, path):
    """Checks that a Unigram `tokenizer.json` splits texts at spaces, and changes them by SentencePiece's rules alone.

    Args:
        tokenizer: dict, the contents.
        rules: list of dict, its normalizers.
        path: str, its name, for errors.

    Raises:
        UserError: texts are split or changed in another way.
    """
    for rule in rules:
        is_blank = rule["type"] == "Strip" or (rule["type"] == "Replace" and rule.get("pattern") == {"Regex": " {2,}"})
        if not is_blank:
            check_setting(path, "normalizer: type", rule["type"], "Precompiled")
    whole = tokenizer.get("pre_tokenizer") or {"type": None}
    for part in whole.get("pretokenizers", [whole]):
        if part["type"] != "WhitespaceSplit":
            check_setting(path, "pre_tokenizer: type", part["type"], "Metaspace")
            check_setting(path, "pre_tokenizer: prepend_scheme", part.get("prepend_scheme", "always"), "always")
            check_setting(path, "pre_tokenizer: add_prefix_space", part.get("add_prefix_space", True), True)
