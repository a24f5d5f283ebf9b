"""SentencePiece's compiled normalization rules, and those of a Unigram `tokenizer.json`, read and written.

A rule replaces a text, the longest that matches, by another one. The compiled form is the size of a trie in bytes, the
trie (a double array of 32-bit units, as darts-clone has it), and the replacements, each with a NUL at its end.
"""

import os
import tempfile

import numpy as np

from t2t_lite.extras.hugging_face.published_vocabulary import check_setting
from t2t_lite.files.safe_json import check_schema
from t2t_lite.text.sentencepiece_model import ModelProto
from t2t_lite.text.subwords import train_bpe

_SIZE = 4  # bytes of a unit
_LABELS = np.arange(256, dtype=np.uint32)
_CHUNK = 2**12  # nodes that are looked at together
_MOST_KEYS, _LONGEST_KEY = 2**22, 2**10  # of one length, in bytes; nmt_nfkc has 220,000, of at most 16 bytes


def read_rules(charsmap):
    """Returns {text: replacement} of compiled rules, bytes.

    Raises:
        ValueError: these are not compiled rules.
    """
    size = int.from_bytes(charsmap[:_SIZE], "little")
    units = np.frombuffer(charsmap[_SIZE : _SIZE + size], "<u4")
    texts, rules = charsmap[_SIZE + size :], {}
    keys, nodes = ([b""], np.zeros(1, np.uint32)) if units.size else ([], None)
    while keys:  # from one length to the next
        if len(keys) > _MOST_KEYS or len(keys[0]) > _LONGEST_KEY:
            raise ValueError("a graph with circles")
        further, places = [], []
        for start in range(0, len(keys), _CHUNK):
            parents = nodes[start : start + _CHUNK]
            found = _children(units, parents)
            children = np.where(found < units.size, units[np.minimum(found, units.size - 1)], 0)
            for row in np.nonzero(children[:, 0] >> 31)[0]:  # a value: the place of the replacement
                at = int(children[row, 0] & 0x7FFFFFFF)
                rules[keys[start + row].decode()] = texts[at : texts.index(b"\0", at)].decode()
            rows, labels = np.nonzero((children & 0x800000FF == _LABELS) & (_LABELS > 0))
            further += [keys[start + row] + bytes([label]) for row, label in zip(rows, labels, strict=True)]
            places.append(found[rows, labels])
        keys, nodes = further, np.concatenate(places)
    return rules


def _children(units, nodes):
    """Returns uint32 [nodes, 256], where the child by each byte of some nodes would be."""
    found = units[nodes]
    return (nodes ^ ((found >> 10) << ((found & 0x200) >> 6)))[:, None] ^ _LABELS


def compiled(rules):
    """Returns {text: replacement} in the form of SentencePiece's models, which only its trainer can produce."""

    def hexadecimal(text):
        return " ".join(f"{ord(character):X}" for character in text)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rules.tsv")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{hexadecimal(text)}\t{hexadecimal(became)}\n" for text, became in sorted(rules.items()))
        model = train_bpe({"ab": 2}, vocab_size=6, hard_vocab_limit=False, normalization_rule_tsv=path)
    return ModelProto.FromString(model).normalizer_spec.precompiled_charsmap


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
