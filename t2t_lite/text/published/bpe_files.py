"""Reads the two files of a BPE vocabulary: its tokens with their ids (JSON), and its merges in order.

Tokens are spelled by the characters that stand for bytes (GPT-2's), or by the characters of lower-case words, whose
last ones carry `</w>` (the original GPT's).
"""

import re

from t2t_lite import files
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import parse_json
from t2t_lite.text.encoder_parts import lines_of, read_content
from t2t_lite.text.published.pre_tokenization import CHARACTERS

WORD_END = "</w>"
NEWLINE = "\n</w>"  # of GPT's vocabulary; neither Transformers' tokenizer nor ours uses it for text
ENDINGS = {"vocab.json": "merges.txt", "encoder.json": "vocab.bpe"}  # Hugging Face's names, OpenAI's
# Names of tokens that no merge builds. fairseq pads its vocabularies with madeupword0000 and so on.
_SPECIAL = re.compile(rf"<.+>|\[.+\]|madeupword[0-9]{{4}}|{NEWLINE}", re.DOTALL)


def files_of(path):
    """Returns {Hugging Face's name: path} of both files. Raises `UserError` unless `path` ends in a known name."""
    for ending, other in ENDINGS.items():
        if path.endswith(ending):
            return dict(zip(("vocab.json", "merges.txt"), (path, path.removesuffix(ending) + other), strict=True))
    raise UserError(f"{path}: not the name of a BPE vocabulary. Expected one that ends in {' or '.join(ENDINGS)}.")


def marks_word_ends(path):
    """Returns whether the tokens of a vocabulary mark the ends of words instead of spelling bytes.

    Raises:
        UserError: the file is missing or damaged.
    """
    ids = _read_ids(read_content(path), path)
    return any(token.endswith(WORD_END) for token in ids) and any(character not in ids for character in CHARACTERS)


def read_vocabulary(contents, paths, symbols=None):
    """Returns (tokens by id, {token: rank of the merge that builds it}, set of special tokens).

    Args:
        contents: {"vocab.json": bytes, "merges.txt": bytes}.
        paths: the same names with the files' paths, for errors.
        symbols: list of the tokens that merges begin with, whose rank is -1; None: a word's characters.

    Raises:
        UserError: the files are not such a vocabulary, or do not match.
    """
    vocab_path, merges_path = paths["vocab.json"], paths["merges.txt"]
    ids = _read_ids(contents["vocab.json"], vocab_path)
    tokens = sorted(ids, key=ids.get)
    for i, token in enumerate(tokens):
        if ids[token] != i:
            raise UserError(
                f"{vocab_path}: the id of {shown(token)} is {ids[token]}, expected {i}: the ids are 0 to "
                f"{len(tokens) - 1}, each once."
            )
    if symbols is None:
        symbols = [token for token in tokens if len(token.removesuffix(WORD_END)) == 1 and token != NEWLINE]
    lacking = [symbol for symbol in symbols if symbol not in ids]
    if lacking:
        raise UserError(f"{vocab_path}: no token {lacking[0]!r}. Expected one for each of the 256 bytes.")
    merges = Merges(symbols)
    for number, line in enumerate(lines_of(contents["merges.txt"], merges_path, "one merge per line"), 1):
        if number == 1 and line.startswith("#version"):
            continue
        left, _, right = line.partition(" ")
        problem = merges.add(left, right) if left and right and " " not in right else "expected two tokens and a blank"
        if not problem and left + right not in ids:
            problem = f"{vocab_path} has no token {shown(left + right)}"
        if problem:
            raise UserError(f"{merges_path}: line {number}: {shown(line)}: {problem}. Copy both files again.")
    special = {token for token in tokens if token not in merges.ranks}
    odd = next((token for token in tokens if token in special and not _SPECIAL.fullmatch(token)), None)
    if odd is not None:
        raise UserError(
            f"{merges_path}: no merge builds the token {shown(odd)} of {vocab_path}: it is cut off, or belongs to "
            "another vocabulary. Copy both files again."
        )
    return tokens, merges.ranks, special


def _read_ids(content, path):
    return parse_json(content, path, files.MOST_BYTES_OF_A_VOCABULARY, {str: int})


class Merges:
    """Merges in the order in which they apply, each of which builds a token of its own.

    Args:
        symbols: iterable of the tokens that merges begin with.

    Attributes:
        ranks: {token: number of its merge}, and -1 for a symbol.
    """

    def __init__(self, symbols):
        self.ranks = dict.fromkeys(symbols, -1)
        self._halves = {}
        self._rank_of_pair = {}

    def add(self, left, right):
        """Adds the last merge. Returns an error message, or None."""
        token, rank = left + right, len(self._halves)
        for half in (left, right):
            if half not in self.ranks:
                return f"no earlier merge builds {shown(half)}"
        if token in self.ranks:
            return f"an earlier merge builds {shown(token)}"
        if not self._stay_apart(left, right):
            return "earlier merges never leave these two side by side"
        self.ranks[token], self._halves[token], self._rank_of_pair[left, right] = rank, (left, right), rank
        return None

    def _stay_apart(self, left, right):
        """Returns whether the merges so far leave two adjacent tokens as they are."""
        # It undoes the later of the merges of the left and the right token until both are symbols. Before that merge,
        # no other may have joined the halves that met there.
        limit = len(self._halves)
        while True:
            if self._rank_of_pair.get((left, right), limit) < limit:
                return False
            of_left, of_right = self.ranks[left], self.ranks[right]
            if of_left == of_right == -1:
                return True
            if of_left > of_right:
                limit, left = of_left, self._halves[left][1]
            else:  # the same merge would have been applied earlier, from left to right
                limit, right = of_right + 1, self._halves[right][0]
