"""The base class of encoders of published vocabularies: ids in this package's order, and special tokens."""

import functools
import hashlib
import re
import types

from t2t_lite.errors import UserError
from t2t_lite.text.published.added_tokens import AddedTokens
from t2t_lite.text.vocabulary import UNK_ID, TextEncoder


class PublishedEncoder(TextEncoder):
    """Ids of a vocabulary whose publisher has numbered the tokens.

    Here padding is 0, the end 1 and unknown 2; the other tokens follow in the publisher's order.

    Args:
        path: the vocabulary's file.
        contents: {name of the file in other packages: bytes}, to write the vocabulary again in an export.
        published: list of str, the tokens in the publisher's order.
        reserved: the publisher's tokens for padding, end and unknown; None: there is no such token, and one is added.
        special: set of the names of special tokens, which text never yields unless they are allowed.
        added: list of AddedToken, which text yields wherever they occur; those not in `published` follow it.
        lower: whether text is lowercased.

    Attributes:
        path, contents: as passed.
        tokens: list of str by id.
        published_ids: list of int by id: the publisher's id, or -1 for an added token.
        special_ids: {name: id} of the publisher's special tokens.
        added: AddedTokens, or None if there are none.
        tokenizer: {name: value}, what a `tokenizer_config.json` has of this kind; {}: what it has usually.
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
        """SHA-256 (hex) of all files, one after the other."""
        return hashlib.sha256(b"".join(self.contents.values())).hexdigest()

    def special_id(self, token):
        """Returns the id of a special token. Raises `UserError` if the vocabulary does not have it."""
        if token not in self.special_ids:
            raise UserError(
                f"{self.path}: the vocabulary has no special token {token}. Its special tokens are "
                f"{', '.join(self.special_ids)}: use the vocabulary of a model that was trained with {token}."
            )
        return self.special_ids[token]

    def encode(self, text, allowed_special=()):
        """Returns the ids of a string, without an end.

        Args:
            text: str. A special token in it is text like any other, unless it is allowed.
            allowed_special: names of special tokens that become their own ids, or "all" (tiktoken's option).

        Raises:
            UserError: the vocabulary lacks an allowed token.
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
        """In a graph: string [batch] -> int32 ragged [batch, (length)], without an end; the same ids as `encode`."""
        return self.added.tf_encode(strings, self.tf_encode_part) if self.added else self.tf_encode_part(strings)

    def pieces(self, ids):
        """Returns the token of every id, special ones included."""
        return [self.tokens[i] for i in map(int, ids)]

    def encode_part(self, text):
        """Returns the ids of a text in which added tokens are ordinary text."""
        raise NotImplementedError

    def tf_encode_part(self, strings):
        """As `tf_encode`, but added tokens are ordinary text."""
        raise NotImplementedError
