"""Tokens that were added to a published vocabulary, as by Transformers' `add_tokens`.

They are matched before anything else is done to a text, and the parts between them are encoded separately. Those that
are "normalized" are matched in the normalized text, so that their case does not matter if texts are lowercased.
"""

import re
from typing import NamedTuple

from t2t_lite import files
from t2t_lite.errors import UserError, shown

CONFIG = "tokenizer_config.json"  # its name beside a vocabulary's main file, after the same beginning
KEY = "added_tokens_decoder"
_OLDER, _SPECIAL = "added_tokens.json", "special_tokens_map.json"
_SIDES = ("lstrip", "rstrip", "single_word")
_SCHEMA = {
    "content": str, **dict.fromkeys((f"{name}?" for name in ("special", "normalized", *_SIDES)), bool),
}  # fmt: skip
_NAMES = [name.removesuffix("?") for name in _SCHEMA]
_LISTS = ("additional_special_tokens", "extra_special_tokens")
# Surrounds added tokens inside a graph: code points that are not characters. In a text, it is replaced by U+FFFD.
_MARK, _INSTEAD = "\ufdd0\ufdd1\ufdd2", "\ufffd" * 3


class AddedToken(NamedTuple):
    """A token with the publisher's id.

    Attributes:
        content: str.
        id: int.
        special: bool, whether it is left out of decoded texts.
        normalized: bool, whether it is matched in the normalized text.
    """

    content: str
    id: int
    special: bool
    normalized: bool


def read_settings(beginning):
    """Returns {id: facts}, Transformers' `added_tokens_decoder`, of the files beside a vocabulary, or {} without any.

    Args:
        beginning: str, a path without `vocab.txt`, `vocab.json` or the like.

    Raises:
        UserError: a file is damaged.
    """
    path = beginning + CONFIG
    config = files.read_json(path, {f"{KEY}?": {str: _SCHEMA}}) if files.exists(path) else {}
    if KEY in config:
        return config[KEY]
    older, path = beginning + _OLDER, beginning + _SPECIAL
    if not files.exists(older):
        return {}
    special = _contents(config) | _contents(files.read_json(path) if files.exists(path) else {})
    return {
        str(i): {"content": token, "special": token in special, "normalized": token not in special}
        for token, i in files.read_json(older, {str: int}).items()
    }


def _contents(settings):
    """Returns the set of special tokens in a settings file, where each is a string or an object that contains one."""
    lists = (settings[name] for name in _LISTS if isinstance(settings.get(name), list))
    tokens = [value for values in (*lists, settings.values()) for value in values]
    return {value["content"] if isinstance(value, dict) and "content" in value else str(value) for value in tokens}


def of_tokenizer_json(added, path):
    """Returns {id: facts} of the list in a `tokenizer.json`. Raises `UserError` if it is damaged."""
    settings = {}
    for facts in added:
        i = facts.get("id") if isinstance(facts, dict) else None
        if not isinstance(i, int) or not isinstance(facts.get("content"), str):
            raise UserError(f"{path}: 'added_tokens': {shown(facts)}. Expected an object with id and content.")
        settings[str(i)] = {name: facts[name] for name in _NAMES if name in facts}
    return settings


def beyond(settings, published, excluded, path):
    """Returns the AddedTokens in {id: facts} that are not `excluded`, in the order of their ids.

    Args:
        settings: as returned by `read_settings`.
        published: list of str, the vocabulary's own tokens by id.
        excluded: set of str, the tokens that the vocabulary treats as special anyway.
        path: str, the vocabulary's file, for errors.

    Raises:
        UserError: a token has unsupported matching rules or an unexpected id.
    """
    ids = {token: i for i, token in enumerate(published)}
    added = []
    for number, facts in sorted(settings.items(), key=lambda item: (len(item[0]), item[0])):
        token = facts["content"]
        if token in excluded:
            continue
        if not token or not token.isprintable() or token != token.strip():
            raise UserError(
                f"{path}: the added token {shown(token)}. Expected printable text without blanks around it."
            )
        if wrong := [name for name in _SIDES if facts.get(name)]:
            raise UserError(f"{path}: the added token {shown(token)} has {wrong[0]}=true. Expected false.")
        expected = ids.setdefault(token, len(ids))
        if number != str(expected):
            raise UserError(
                f"{path}: the added token {shown(token)} has the id {shown(number)[1:-1]}. Expected {expected:,}."
            )
        special = facts.get("special", False)
        added.append(AddedToken(token, expected, special, facts.get("normalized", not special)))
    return added


def as_settings(added):
    """Returns AddedTokens as {"added_tokens_decoder": {id: facts}}; {} if there are none."""
    off = dict.fromkeys(_SIDES, False)
    settings = {
        str(one.id): {"content": one.content, **off, "normalized": one.normalized, "special": one.special}
        for one in added
    }
    return {KEY: settings} if added else {}


class AddedTokens:
    """Finds added tokens in texts.

    Args:
        added: list of AddedToken.
        ids: {content: our id}.
        lower: bool, whether normalized texts are lowercased.
    """

    def __init__(self, added, ids, lower):
        self._ids = {token.content: ids[token.content] for token in added}
        self._folded = {token.content.lower(): ids[token.content] for token in added if token.normalized and lower}
        longest_first = sorted(added, key=lambda token: -len(token.content))
        parts = (f"(?{'i' * (lower and one.normalized)}:{re.escape(one.content)})" for one in longest_first)
        self._pattern = f"({'|'.join(parts)})"

    def split(self, text):
        """Yields (part of a text, its id if it is an added token, or None); empty parts are skipped."""
        for number, part in enumerate(re.split(self._pattern, text.replace(_MARK, _INSTEAD))):
            if number % 2:
                yield part, self._ids.get(part, self._folded.get(part.lower()))
            elif part:
                yield part, None

    def tf_split(self, strings):
        """In a graph: string [batch] -> (parts, string ragged [batch, (parts)]; int32 [all parts], ids, or -1).

        Joined, the parts are the texts, except for `_MARK` in these. Parts between added tokens can be empty.
        """
        import tensorflow as tf

        marked = tf.strings.regex_replace(
            tf.strings.regex_replace(strings, _MARK, _INSTEAD), self._pattern, rf"{_MARK}\1{_MARK}"
        )
        parts = tf.strings.split(marked, _MARK)
        is_added = tf.ragged.range(parts.row_lengths()).flat_values % 2 == 1
        ids = tf.fill(tf.shape(parts.flat_values), -1)
        folded = tf.strings.lower(parts.flat_values, encoding="utf-8")
        for texts, table in ((folded, self._folded), (parts.flat_values, self._ids)):
            if table:
                is_it = texts[:, None] == tf.constant([*table])[None]
                id_of_it = tf.gather(tf.constant([*table.values()]), tf.argmax(is_it, 1))
                ids = tf.where(tf.reduce_any(is_it, 1), id_of_it, ids)
        return parts, tf.where(is_added, ids, -1)

    def tf_encode(self, strings, encode):
        """In a graph: string [batch] -> int32 ragged [batch, (length)]; `encode` does the same without added tokens."""
        import tensorflow as tf

        parts, added = self.tf_split(strings)
        is_added = added >= 0
        ids = encode(tf.where(is_added, "", parts.flat_values))
        added = tf.RaggedTensor.from_row_lengths(tf.boolean_mask(added, is_added), tf.cast(is_added, tf.int64))
        return parts.with_flat_values(tf.concat([ids, added], axis=1)).merge_dims(1, 2)
