"""tensor2tensor's subword encoder (its data_generators/text_encoder.py), for models that were trained with it.

A text is split into tokens where letters or numbers meet other characters. Each token is escaped, gets a final `_`, and
is spelled with pieces from left to right, always with the longest piece that fits. Such vocabularies can be read but
not learned.
"""

import functools
import re
import unicodedata

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.registry import register_encoder
from t2t_lite.text.encoder_parts import WordCache, lines_of, longest_pieces
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, TextEncoder, tf_visible
from t2t_lite.text.vocabulary_files import SUBWORDS

_ESCAPES = frozenset("\\_u;0123456789")
_RESERVED = (("<pad>_", "<pad>"), ("<EOS>_", "<EOS>"))  # as spelled by newer and older versions of tensor2tensor
_UNDEFINED = "\u3013"  # replaces escaped numbers that are not code points


@register_encoder(".subwords")
class SubwordTextEncoder(TextEncoder):
    r"""Encodes texts with the pieces in a `.subwords` file.

    The file has one piece per line, usually in quotes; the first two lines are padding and EOS. `\` is escaped as `\\`,
    `_` as `\u`, and a character that does not occur in any piece as its code point (`\9731;`), so every text can be
    encoded. An empty line stands for an embedding row that has no piece; texts are never encoded with it.

    Args:
        path: path of the file, on any file system that `tf.io.gfile` supports.

    Raises:
        UserError: the file does not exist or is not a `.subwords` vocabulary.
    """

    def __init__(self, path):
        self.path = path
        self._file = files.read_bytes(path, files.MOST_BYTES_OF_A_VOCABULARY)
        self._pieces = read_pieces(self._file, path)
        self._ids = {piece: i for i, piece in enumerate(self._pieces) if piece}
        self._longest = max(map(len, self._ids))
        self.alphabet = {character for piece in self._pieces for character in piece} | _ESCAPES
        self._tokens = WordCache(self._encode_token)
        super().__init__(len(self._pieces))

    @classmethod
    def build_from_generator(cls, generator, target_size, **options):
        """Raises `UserError`, because such vocabularies can only be read."""
        raise UserError(
            "SubwordTextEncoder: tensor2tensor's subwords can be read but not learned. t2t-datagen learns another kind "
            "of vocabulary from a problem's samples; in Python, call t2t_lite.text.subwords.train_sentencepiece."
        )

    build_to_target_size = build_from_generator

    def encode(self, text):
        """Returns the ids of a string, without EOS."""
        return [i for token in tokenize(text) for i in self._tokens[token]]

    def _encode_token(self, token):
        ids = longest_pieces(escape(token, self.alphabet), self._ids, self._longest)
        if ids is None:  # tensor2tensor fails here: a character is in the alphabet, but no piece fits
            characters = {piece for piece in self._ids if len(piece) == 1}
            ids = longest_pieces(escape(token, characters), self._ids, self._longest)
        return ids

    def pieces(self, ids):
        """Returns the piece of every id, or a name such as `<unused_90>` for ids that texts are never encoded with."""
        ids = [int(i) for i in ids]
        names = super().pieces(ids)
        unused = (i not in (PAD_ID, EOS_ID) and self._ids.get(piece) != i for i, piece in zip(ids, names, strict=True))
        return [f"<unused_{i}>" if is_unused else piece for i, piece, is_unused in zip(ids, names, unused, strict=True)]

    def num_settled(self, ids):
        """Counts the ids up to the last finished token; later pieces may be part of an escape: see `TextEncoder`."""
        return max((count for count, i in enumerate(ids, 1) if self._pieces[i].endswith("_")), default=0)

    def tf_encode(self, strings):
        """Encodes like `encode`, in a graph: string [batch] -> int32 ragged [batch, (length)], without EOS."""
        return self._graph.encode(strings)

    def tf_decode(self, ids):
        """Decodes in a graph: int32 [batch, length] -> string [batch]; drops padding and everything from EOS on."""
        return self._graph.decode(tf_visible(ids, EOS_ID + 1, self.vocab_size))

    @property
    def tf_resources(self):
        """The lookup table of pieces, which exports have to track."""
        return [self._graph.table]

    @property
    def contents(self):
        """The vocabulary's file: {".subwords": its bytes}."""
        return {SUBWORDS: self._file}

    @functools.cached_property
    def _graph(self):
        from t2t_lite.extras.tensor2tensor.subword_graph import SubwordGraph

        return SubwordGraph(self._pieces, self._ids, self.alphabet)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_graph"}

    def _join(self, ids):
        tokens = [unescape(token) for token in "".join(self._pieces[i] for i in ids).split("_") if token]
        return detokenize([token for token in tokens if token])

    def _piece(self, i):
        return self._pieces[i]


def read_pieces(content, path):
    """Parses the bytes of a `.subwords` file into a list of pieces, str.

    Raises:
        UserError: the bytes are not a `.subwords` vocabulary; the message names `path`.
    """
    lines = lines_of(content, path, "tensor2tensor's .subwords file")
    pieces = [_unquoted(line.rstrip()) for line in lines]
    wrong = [i for i, names in enumerate(_RESERVED) if i >= len(pieces) or pieces[i] not in names]
    if wrong:
        actual = repr(lines[wrong[0]][:40]) if wrong[0] < len(lines) else "the end"
        raise UserError(
            f"{path}: not a .subwords file of tensor2tensor: found {actual} as line {wrong[0] + 1}, expected "
            f"'{_RESERVED[wrong[0]][0]}'."
        )
    lacking = sorted(_ESCAPES - set(pieces))
    if lacking:
        raise UserError(
            f"{path}: not a .subwords file of tensor2tensor: has no piece {lacking[0]!r}, which is needed "
            "to spell escapes. Expected a file that tensor2tensor's t2t-datagen wrote."
        )
    return pieces


def _unquoted(line):
    return line[1:-1] if line[:1] == line[-1:] and line[:1] in ("'", '"') else line


def tokenize(text):
    """Splits a string where letters or numbers meet other characters, dropping single spaces between tokens."""
    tokens, start = [], 0
    is_word = [is_alphanumeric(character) for character in text]
    for at in range(1, len(text)):
        if is_word[at] != is_word[at - 1]:
            if text[start:at] != " " or start == 0:
                tokens.append(text[start:at])
            start = at
    return [*tokens, text[start:]] if text else []


def detokenize(tokens):
    """Joins tokens from `tokenize`; puts a space between adjacent tokens if both consist of letters or numbers."""
    joined, was_alphanumeric = [], False
    for token in tokens:
        alphanumeric = is_alphanumeric(token[0])
        joined.append(" " + token if was_alphanumeric and alphanumeric else token)
        was_alphanumeric = alphanumeric
    return "".join(joined)


@functools.lru_cache(maxsize=2**16)
def is_alphanumeric(character):
    """Returns whether a character is a letter or a number, according to its Unicode category."""
    return unicodedata.category(character)[0] in "LN"


def escape(token, alphabet):
    r"""Escapes a token so that it contains only characters of the alphabet, and `_` only at its end."""
    token = token.replace("\\", "\\\\").replace("_", "\\u")
    return "".join(c if c in alphabet and c != "\n" else f"\\{ord(c)};" for c in token) + "_"


def unescape(token):
    """Reverses `escape`; `token` lacks the final `_`."""
    return re.sub(r"\\u|\\\\|\\([0-9]+);", _character, token)


def _character(match):
    if match[1] is None:
        return "_" if match[0] == "\\u" else "\\"
    digits = match[1].lstrip("0")
    number = int(digits or "0") if len(digits) <= 7 else -1
    # tensor2tensor turns surrogate code points into lone surrogates, which cannot be written to a file.
    return chr(number) if 0 <= number < 0xD800 or 0xDFFF < number <= 0x10FFFF else _UNDEFINED
