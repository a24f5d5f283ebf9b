"""Reads published BPE vocabularies: a JSON file of tokens with their ids and a file of merges in order.

Tokens are spelled with characters that represent bytes (GPT-2), or with the characters of lower-case words, where
`</w>` marks the last character (the original GPT).
"""

import itertools
import json
import re

from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import parse_json
from t2t_lite.text.encoder_parts import WordCache, lines_of, read_content
from t2t_lite.text.published import published_encoder
from t2t_lite.text.published.pre_tokenization import CHARACTERS
from t2t_lite.text.published.published_encoder import PublishedEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID

WORD_END = "</w>"
NEWLINE = "\n</w>"  # a token in GPT's vocabulary that neither Transformers' tokenizer nor this package ever produces
ENDINGS = {"vocab.json": "merges.txt", "encoder.json": "vocab.bpe"}  # named by Hugging Face, then by OpenAI
# The names of special tokens, which are in the vocabulary although they are not the result of a merge. fairseq pads its
# vocabularies with tokens named madeupword0000, madeupword0001 and so on.
_SPECIAL = re.compile(rf"<.+>|\[.+\]|madeupword[0-9]{{4}}|{NEWLINE}", re.DOTALL)
_STANDARD = {"<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>", NEWLINE}
_PADDINGS = ("<pad>", "[PAD]", "<|pad|>")  # names of padding tokens that users have added, for example to GPT-2
END_TOKENS = ("</s>", "<|endoftext|>", NEWLINE)


def files_of(path):
    """Returns {Hugging Face's file name: path} of both files. Raises `UserError` unless `path` ends in a known name."""
    for ending, other in ENDINGS.items():
        if path.endswith(ending):
            return dict(zip(("vocab.json", "merges.txt"), (path, path.removesuffix(ending) + other), strict=True))
    raise UserError(
        f"{path}: this is not the name of a BPE vocabulary. Expected a name that ends in {' or '.join(ENDINGS)}."
    )


def marks_word_ends(path):
    """Returns whether the tokens of a vocabulary mark the ends of words instead of spelling bytes.

    Raises:
        UserError: the file is missing or damaged.
    """
    ids = _read_ids(read_content(path), path)
    return any(token.endswith(WORD_END) for token in ids) and any(character not in ids for character in CHARACTERS)


def read_vocabulary(contents, paths, symbols=None):
    """Returns (tokens by id, {token: rank of the merge that forms it}, set of special tokens).

    Args:
        contents: {"vocab.json": bytes, "merges.txt": bytes}.
        paths: {name: path of the file}, for errors.
        symbols: list of the initial tokens, before any merge; their rank is -1. If None, they are the characters of
            words.

    Raises:
        UserError: the files do not contain a BPE vocabulary, or they do not match.
    """
    vocab_path, merges_path = paths["vocab.json"], paths["merges.txt"]
    ids = _read_ids(contents["vocab.json"], vocab_path)
    tokens = sorted(ids, key=ids.get)
    for i, token in enumerate(tokens):
        if ids[token] != i:
            raise UserError(
                f"{vocab_path}: the id of {shown(token)} is {ids[token]}. Expected {i}, because the ids must be 0 to "
                f"{len(tokens) - 1}, each once."
            )
    if symbols is None:
        symbols = [token for token in tokens if len(token.removesuffix(WORD_END)) == 1 and token != NEWLINE]
    lacking = [symbol for symbol in symbols if symbol not in ids]
    if lacking:
        raise UserError(
            f"{vocab_path}: the token {lacking[0]!r} is missing. Expected a token for each of the 256 bytes."
        )
    merges = Merges(symbols)
    for number, line in enumerate(lines_of(contents["merges.txt"], merges_path, "one merge per line"), 1):
        if number == 1 and line.startswith("#version"):
            continue
        left, _, right = line.partition(" ")
        problem = (
            merges.add(left, right)
            if left and right and " " not in right
            else "expected two tokens with a space between them"
        )
        if not problem and left + right not in ids:
            problem = f"{vocab_path} has no token {shown(left + right)}"
        if problem:
            raise UserError(f"{merges_path}: line {number}: {shown(line)}: {problem}. Copy both files again.")
    special = {token for token in tokens if token not in merges.ranks}
    odd = next((token for token in tokens if token in special and not _SPECIAL.fullmatch(token)), None)
    if odd is not None:
        raise UserError(
            f"{merges_path}: no merge forms the token {shown(odd)} of {vocab_path}. The file is truncated or belongs "
            "to another vocabulary: copy both files again."
        )
    return tokens, merges.ranks, special


def _read_ids(content, path):
    return parse_json(content, path, {str: int})


class Merges:
    """An ordered list of merges, each of which joins two tokens into a new token.

    Args:
        symbols: iterable of the initial tokens, before any merge.

    Attributes:
        ranks: {token: number of the merge that forms it}; -1 for a symbol.
    """

    def __init__(self, symbols):
        self.ranks = dict.fromkeys(symbols, -1)
        self._halves = {}
        self._rank_of_pair = {}

    def add(self, left, right):
        """Appends a merge. Returns an error message, or None if the merge is valid."""
        token, rank = left + right, len(self._halves)
        for half in (left, right):
            if half not in self.ranks:
                return f"no earlier merge forms {shown(half)}"
        if token in self.ranks:
            return f"an earlier merge forms {shown(token)}"
        if not self._stay_apart(left, right):
            return "earlier merges never leave these two tokens next to each other"
        self.ranks[token], self._halves[token], self._rank_of_pair[left, right] = rank, (left, right), rank
        return None

    def _stay_apart(self, left, right):
        """Returns whether the merges so far, applied to the text of two adjacent tokens, give the same two tokens."""
        # Each iteration undoes one merge: of the merges that formed the left and the right token, the later one. The
        # loop ends when both tokens are symbols. No earlier merge may have joined the two parts that are then adjacent.
        limit = len(self._halves)
        while True:
            if self._rank_of_pair.get((left, right), limit) < limit:
                return False
            left_rank, right_rank = self.ranks[left], self.ranks[right]
            if left_rank == right_rank == -1:
                return True
            if left_rank > right_rank:
                limit, left = left_rank, self._halves[left][1]
            else:  # the same merge applies from left to right, so it would already have joined these two parts
                limit, right = right_rank + 1, self._halves[right][0]


class BPEEncoder(PublishedEncoder):
    """Encodes text with a BPE vocabulary in two files: splits it into words and merges the symbols of each word.

    SentencePiece does the merging, in Python and in a graph. It has one rank per token instead of one per merge. The
    tokens are the same for all lists of merges that BPE can learn; `read_vocabulary` raises an error for other lists.

    Subclasses define `_split(text) -> words`, `_spelled(word) -> str` (one character per symbol) and
    `_spelled_tokens() -> list` (for each id, a str with the symbols of its token, or None if no text is encoded as it).

    Args:
        path: path of a file whose name is or ends in `vocab.json` or `encoder.json`, such as `gpt2-vocab.json`. The
            merges are in `merges.txt` or `vocab.bpe` in the same folder.
        symbols: see `read_vocabulary`.
        lower: whether text is lowercased.

    Raises:
        UserError: a file is missing or truncated, or merges and tokens do not match.
    """

    def __init__(self, path, symbols=None, lower=False):
        import sentencepiece

        paths = files_of(path)
        contents = {name: read_content(file) for name, file in paths.items()}
        published, ranks, special = read_vocabulary(contents, paths, symbols)
        end = next((token for token in END_TOKENS if token in special), None)
        if end is None:
            expected = " or ".join(END_TOKENS).replace("\n", r"\n")
            raise UserError(f"{path}: there is no token for the end of a text. Expected {expected}.")
        ending = next(ending for ending in ENDINGS if path.endswith(ending))
        settings = published_encoder.read_settings(path.removesuffix(ending))
        added = published_encoder.beyond(settings, published, special & _STANDARD, path)
        names = {token.content for token in added}
        padding = "<pad>" if "<pad>" in special else next((token for token in _PADDINGS if token in names), None)
        reserved = [padding, end, "<unk>" if "<unk>" in special | names else None]
        if added:
            contents[published_encoder.CONFIG] = json.dumps(published_encoder.as_settings(added)).encode()
        super().__init__(path, contents, published, reserved, special, added, lower)
        self._model = self._sentencepiece_model(ranks)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self._model)
        self._words = WordCache(self._encode_word)

    @property
    def _tokenizer(self):
        """The tensorflow-text tokenizer that merges the symbols of spelled words in a graph."""
        import tensorflow as tf
        import tensorflow_text

        # The tokenizer has a unique name and is not cached, for the same reasons as in SentencePieceEncoder.
        name = f"vocabulary_{self.fingerprint[:16]}"
        return tensorflow_text.SentencepieceTokenizer(model=self._model, out_type=tf.int32, name=name)

    def encode_part(self, text):
        """See `PublishedEncoder.encode_part`."""
        return list(itertools.chain.from_iterable(map(self._words.__getitem__, self._split(text))))

    def _encode_word(self, word):
        return self._processor.EncodeAsIds(self._spelled(word))

    def _is_special(self, i):
        return i <= UNK_ID or self.tokens[i] in self.special_ids

    def _is_added(self, i):
        return i in self.added_ids

    def _sentencepiece_model(self, ranks):
        """Returns the bytes of a SentencePiece BPE model with the same ids; `ranks` is {token: rank of its merge}."""
        from t2t_lite.text.sentencepiece_model import ModelProto

        model = ModelProto()
        kind, spec, rule = ModelProto.SentencePiece, model.trainer_spec, model.normalizer_spec
        for i, (token, symbols) in enumerate(zip(self.tokens, self._spelled_tokens(), strict=True)):
            if symbols is None:  # the space in the added piece ensures that no word contains the piece
                model.pieces.add(piece=f" {i}", type=kind.UNKNOWN if i == PAD_ID else kind.CONTROL)
            else:
                model.pieces.add(piece=symbols, score=-float(ranks.get(token, 0)), type=kind.NORMAL)
        spec.model_type, spec.vocab_size = spec.BPE, len(self.tokens)
        # SentencePiece joins adjacent unknown symbols. Words are spelled without unknown symbols, so the padding id can
        # serve as the unknown id.
        spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id = -1, EOS_ID, PAD_ID, -1
        spec.eos_piece, spec.unk_piece = (f" {i}" for i in (EOS_ID, PAD_ID))
        rule.add_dummy_prefix = rule.remove_extra_whitespaces = rule.escape_whitespaces = False
        return model.SerializeToString(deterministic=True)
