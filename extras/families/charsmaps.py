"""Reads and writes the normalization rules of SentencePiece models and of a Unigram `tokenizer.json`.

A rule replaces one text with another. If several rules match, the one with the longest text is applied. The compiled
form consists of the size of a trie in bytes, the trie (a double array of 32-bit units as in darts-clone), and the
replacements, each of which ends with a NUL.
"""

import os
import tempfile

import numpy as np

from t2t_lite.extras.hugging_face.published_vocabulary import check_setting
from t2t_lite.files.safe_json import check_schema
from t2t_lite.text.sentencepiece_model import ModelProto
from t2t_lite.text.subwords import train_bpe

_QUOTES = [{"String": text} for text in ("``", "''")]  # the patterns that the clean-up replaces
_CLEAN_UP = ("NFKD", "StripAccents", "Lowercase")

_SIZE = 4  # bytes per unit of the trie
_LABELS = np.arange(256, dtype=np.uint32)
_CHUNK = 2**12  # number of trie nodes that are processed together
_MOST_KEYS, _LONGEST_KEY = 2**22, 2**10  # limits; nmt_nfkc has 220,000 keys, of at most 16 bytes


def read_rules(charsmap):
    """Parses compiled rules, bytes, and returns {text: replacement}.

    Raises:
        ValueError: the bytes are not compiled rules.
    """
    size = int.from_bytes(charsmap[:_SIZE], "little")
    units = np.frombuffer(charsmap[_SIZE : _SIZE + size], "<u4")
    texts, rules = charsmap[_SIZE + size :], {}
    keys, nodes = ([b""], np.zeros(1, np.uint32)) if units.size else ([], None)
    while keys:  # in each round, the keys are one byte longer
        if len(keys) > _MOST_KEYS or len(keys[0]) > _LONGEST_KEY:
            raise ValueError("a trie with cycles")
        further, places = [], []
        for start in range(0, len(keys), _CHUNK):
            parents = nodes[start : start + _CHUNK]
            children_at = _children(units, parents)
            children = np.where(children_at < units.size, units[np.minimum(children_at, units.size - 1)], 0)
            for row in np.nonzero(children[:, 0] >> 31)[0]:  # the value of a node: the position of the replacement
                at = int(children[row, 0] & 0x7FFFFFFF)
                rules[keys[start + row].decode()] = texts[at : texts.index(b"\0", at)].decode()
            rows, labels = np.nonzero((children & 0x800000FF == _LABELS) & (_LABELS > 0))
            further += [keys[start + row] + bytes([label]) for row, label in zip(rows, labels, strict=True)]
            places.append(children_at[rows, labels])
        keys, nodes = further, np.concatenate(places)
    return rules


def _children(units, nodes):
    """Returns the index where the child of each trie node would be for each byte, uint32 [nodes, 256]."""
    values = units[nodes]
    return (nodes ^ ((values >> 10) << ((values & 0x200) >> 6)))[:, None] ^ _LABELS


def compiled(rules):
    """Compiles {text: replacement} for SentencePiece models, by running SentencePiece's trainer."""

    def hexadecimal(text):
        return " ".join(f"{ord(character):X}" for character in text)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rules.tsv")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{hexadecimal(text)}\t{hexadecimal(became)}\n" for text, became in sorted(rules.items()))
        model = train_bpe({"ab": 2}, vocab_size=6, hard_vocab_limit=False, normalization_rule_tsv=path)
    return ModelProto.FromString(model).normalizer_spec.precompiled_charsmap


def clean_up(tokenizer, path):
    """Returns the settings in `tokenizer.json` for the clean-up of ALBERT and XLNet, or {} for other tokenizers."""
    normalizer = tokenizer.get("normalizer") or {}
    rules = normalizer.get("normalizers", [normalizer])
    check_schema(rules, [{"type?": str}], f"{path}: 'normalizer'")
    types = [rule.get("type") for rule in rules]
    if not _is_clean_up(rules):
        return {}
    return {"do_lower_case": "Lowercase" in types, "keep_accents": "StripAccents" not in types}


def _is_clean_up(rules):
    return any(rule.get("pattern") == _QUOTES[0] for rule in rules)


def check_words(tokenizer, rules, path, is_cleaned=False):
    """Checks that a Unigram `tokenizer.json` only splits texts at spaces and applies SentencePiece's rules.

    Args:
        tokenizer: dict, the contents of the file.
        rules: list of dict, the normalizers in the `tokenizer.json`.
        path: str, the file's path, for error messages.
        is_cleaned: bool, whether the rules must include the clean-up of ALBERT and XLNet; if not, they must not.

    Raises:
        UserError: texts are split or changed in an unsupported way.
    """
    if is_cleaned and not _is_clean_up(rules):
        check_setting(path, "normalizer: pattern", None, _QUOTES[0])
    for rule in rules:
        is_blank = rule["type"] == "Strip" or (rule["type"] == "Replace" and rule.get("pattern") == {"Regex": " {2,}"})
        is_clean = is_cleaned and (rule["type"] in _CLEAN_UP or rule.get("pattern") in _QUOTES)
        if not is_blank and not is_clean:
            check_setting(path, "normalizer: type", rule["type"], "Precompiled")
    whole = tokenizer.get("pre_tokenizer") or {"type": None}
    parts = whole.get("pretokenizers", [whole])
    check_schema(parts, [{"type": str | None}], f"{path}: 'pre_tokenizer'")
    for part in parts:
        if part["type"] != "WhitespaceSplit":
            check_setting(path, "pre_tokenizer: type", part["type"], "Metaspace")
            check_setting(path, "pre_tokenizer: prepend_scheme", part.get("prepend_scheme", "always"), "always")
            check_setting(path, "pre_tokenizer: add_prefix_space", part.get("add_prefix_space", True), True)
