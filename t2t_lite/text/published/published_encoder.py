"""The base class for published vocabularies: ids in this package's order, special tokens and added tokens."""

import functools
import hashlib
import re
import types
from typing import NamedTuple

from t2t_lite import files
from t2t_lite.errors import UserError, shown
from t2t_lite.text.vocabulary import UNK_ID, TextEncoder

CONFIG = "tokenizer_config.json"  # name of a file next to a vocabulary's main file
KEY = "added_tokens_decoder"
_OLDER, _SPECIAL = "added_tokens.json", "special_tokens_map.json"
_SIDES = ("lstrip", "rstrip", "single_word")
_SCHEMA = {
    "content": str, **dict.fromkeys((f"{name}?" for name in ("special", "normalized", *_SIDES)), bool),
}  # fmt: skip
_NAMES = [name.removesuffix("?") for name in _SCHEMA]
_LISTS = ("additional_special_tokens", "extra_special_tokens")
# The mark that surrounds added tokens inside a graph. Its code points are not characters; if the mark occurs in a text,
# U+FFFD replaces it.
_MARK, _INSTEAD = "\ufdd0\ufdd1\ufdd2", "\ufffd" * 3


class PublishedEncoder(TextEncoder):
    """Base class of encoders for vocabularies whose publishers have numbered the tokens.

    In this package, padding has the id 0, the end 1 and unknown 2. The other tokens follow in the publisher's order.

    Args:
        path: the vocabulary's file.
        contents: {name of the file in other packages: bytes}, from which an export writes the vocabulary again.
        published: list of str, the tokens in the publisher's order.
        reserved: the publisher's tokens for padding, end and unknown; if one is None, a token is added.
        special: set of special tokens, which are not recognized in text unless they are allowed.
        added: list of AddedToken, which are recognized wherever they occur in text. The ids of added tokens that are
            not in `published` follow the ids of `published`.
        lower: whether text is lowercased.

    Attributes:
        path, contents: the arguments of the same names.
        tokens: list of str by id.
        published_ids: list of int, which gives the publisher's id for each id, or -1 for an added token.
        special_ids: {name: id} of the publisher's special tokens.
        added: AddedTokens, or None if there are no added tokens.
        tokenizer: {name: value}, the entries that a `tokenizer_config.json` for this kind of vocabulary needs; {} for
            the defaults.
    """

    num_reserved_ids = 3
    unknown_id = UNK_ID
    tokenizer = types.MappingProxyType({})

    def __init__(self, path, contents, published, reserved, special, added=(), lower=False):
        self.path = path
        self.contents = contents
        published = list(dict.fromkeys([*published, *(token.content for token in added)]))
        special = {*special, *filter(None, reserved), *(token.content for token in added if token.special)}
        theirs = {token: i for i, token in enumerate(published)}
        order = [*reserved, *(token for token in published if token not in reserved)]
        self.published_ids = [theirs.get(token, -1) for token in order]
        self.tokens = [token or name for token, name in zip(order, ("<pad>", "", "<unk>"), strict=False)] + order[3:]
        self.special_ids = {token: i for i, token in enumerate(order) if token in special}
        added = [token for token in added if token.content not in reserved]
        ids = {token: i for i, token in enumerate(self.tokens)}
        self.added_ids = {ids[token.content] for token in added}
        self.added = AddedTokens(added, ids, lower) if added else None
        super().__init__(len(self.tokens))

    @functools.cached_property
    def fingerprint(self):
        """The SHA-256 (hex) of all files of the vocabulary, concatenated."""
        return hashlib.sha256(b"".join(self.contents.values())).hexdigest()

    def special_id(self, token):
        """Returns the id of a special token. Raises `UserError` if the vocabulary does not have this token."""
        if token not in self.special_ids:
            raise UserError(
                f"{self.path}: the vocabulary has no special token {token}. Its special tokens are "
                f"{', '.join(self.special_ids)}. Use the vocabulary of a model that was trained with {token}."
            )
        return self.special_ids[token]

    def encode(self, text, allowed_special=()):
        """Returns the ids of a string, without EOS.

        Args:
            text: str. A special token in the string is ordinary text unless it is allowed.
            allowed_special: special tokens that are encoded as their own ids, or "all" (as in tiktoken).

        Raises:
            UserError: the vocabulary does not have an allowed token.
        """
        if not allowed_special:
            if not self.added:
                return self.encode_part(text)
            parts = self.added.split(text)
            return [i for part, added in parts for i in (self.encode_part(part) if added is None else [added])]
        names = self.special_ids if allowed_special == "all" else allowed_special
        allowed = {name: self.special_id(name) for name in sorted(names, key=len, reverse=True)}
        parts = re.split(f"({'|'.join(map(re.escape, allowed))})", text)
        return [i for part in parts for i in ([allowed[part]] if part in allowed else self.encode(part))]

    def tf_encode(self, strings):
        """Encodes string [batch] in a graph as int32 ragged [batch, (length)], like `encode`, without EOS."""
        return self.added.tf_encode(strings, self.tf_encode_part) if self.added else self.tf_encode_part(strings)

    def pieces(self, ids):
        """Returns the token of every id, including special tokens."""
        return [self.tokens[i] for i in map(int, ids)]

    def encode_part(self, text):
        """Returns the ids of a text in which added tokens are ordinary text."""
        raise NotImplementedError

    def tf_encode_part(self, strings):
        """Encodes string [batch] in a graph like `tf_encode`, but treats added tokens as ordinary text."""
        raise NotImplementedError


class AddedToken(NamedTuple):
    """An added token with the id that the publisher gave it.

    Attributes:
        content: str.
        id: int.
        special: bool, whether decoding drops the token.
        normalized: bool, whether the token is matched in the normalized text.
    """

    content: str
    id: int
    special: bool
    normalized: bool


def read_settings(beginning):
    """Returns {id: properties} of the added tokens in the files next to a vocabulary, like `added_tokens_decoder`.

    Args:
        beginning: str, the path of a vocabulary without its last part such as `vocab.txt` or `vocab.json`.

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
    """Returns the set of special tokens in a settings file. The file gives a token as a string or inside an object."""
    lists = (settings[name] for name in _LISTS if isinstance(settings.get(name), list))
    tokens = [value for values in (*lists, settings.values()) for value in values]
    return {value["content"] if isinstance(value, dict) and "content" in value else str(value) for value in tokens}


def of_tokenizer_json(added, path):
    """Returns {id: properties} of the added tokens in a `tokenizer.json`. Raises `UserError` if the list is damaged."""
    settings = {}
    for facts in added:
        i = facts.get("id") if isinstance(facts, dict) else None
        if not isinstance(i, int) or not isinstance(facts.get("content"), str):
            raise UserError(f"{path}: 'added_tokens': {shown(facts)}. Expected an object with id and content.")
        settings[str(i)] = {name: facts[name] for name in _NAMES if name in facts}
    return settings


def beyond(settings, published, excluded, path):
    """Converts {id: properties} to a list of AddedToken in the order of their ids, without the `excluded` tokens.

    Args:
        settings: the result of `read_settings`.
        published: list of str, the vocabulary's own tokens by id.
        excluded: set of str, tokens that the vocabulary already treats as special.
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
                f"{path}: the added token {shown(token)} is invalid. Expected printable text without outer spaces."
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
    """Converts a list of AddedToken to {"added_tokens_decoder": {id: properties}}, or to {} if the list is empty."""
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
        ids: {content of an added token: its id in this package}.
        lower: bool, whether normalized texts are lowercased.
    """

    def __init__(self, added, ids, lower):
        self._ids = {token.content: ids[token.content] for token in added}
        self._folded = {token.content.lower(): ids[token.content] for token in added if token.normalized and lower}
        longest_first = sorted(added, key=lambda token: -len(token.content))
        parts = (f"(?{'i' * (lower and one.normalized)}:{re.escape(one.content)})" for one in longest_first)
        self._pattern = f"({'|'.join(parts)})"

    def split(self, text):
        """Splits a text; yields (part, id of an added token or None) and skips empty parts."""
        for number, part in enumerate(re.split(self._pattern, text.replace(_MARK, _INSTEAD))):
            if number % 2:
                yield part, self._ids.get(part, self._folded.get(part.lower()))
            elif part:
                yield part, None

    def tf_split(self, strings):
        """Splits string [batch] in a graph; returns (string ragged [batch, (parts)], int32 [all parts]: ids or -1).

        The joined parts are the texts, except that `_MARK` is replaced. Parts between added tokens can be empty.
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
        """Encodes string [batch] as int32 ragged [batch, (length)]; `encode` is applied to the text between tokens."""
        import tensorflow as tf

        parts, added = self.tf_split(strings)
        is_added = added >= 0
        ids = encode(tf.where(is_added, "", parts.flat_values))
        added = tf.RaggedTensor.from_row_lengths(tf.boolean_mask(added, is_added), tf.cast(is_added, tf.int64))
        return parts.with_flat_values(tf.concat([ids, added], axis=1)).merge_dims(1, 2)
