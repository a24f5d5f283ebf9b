"""Reads and learns byte-level BPE, the vocabularies of GPT-2, RoBERTa and BART (Radford et al. 2019).

A text is split into words, each with its preceding space. The 256 bytes are represented by visible characters. In each
word, merges join these characters in the order in which the merges were learned.
"""

import functools
import itertools
import json

from t2t_lite import files
from t2t_lite.text import subwords
from t2t_lite.text.published.bpe_files import BPEEncoder, files_of
from t2t_lite.text.published.pre_tokenization import BYTE_ORDER, CHARACTERS, spelled, split
from t2t_lite.text.published.published_encoder import CONFIG
from t2t_lite.text.sentencepiece_model import choose_size, count_words, sensible_size
from t2t_lite.text.vocabulary import tf_joined

_BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}
END_TOKEN = "<|endoftext|>"
_LONGEST_TOKEN = 64  # bytes


class ByteLevelBPEEncoder(BPEEncoder):
    r"""Encodes text with a byte-level BPE vocabulary; decoding restores any text exactly.

    Args:
        path: see `BPEEncoder`, which also lists the errors.

    Example:
        >>> encoder = ByteLevelBPEEncoder("gpt2/vocab.json")                                     # doctest: +SKIP
        >>> encoder.pieces(encoder.encode("It's a\n test"))                                      # doctest: +SKIP
        ['It', "'s", 'Ġa', 'Ċ', 'Ġtest']
    """

    def __init__(self, path):
        super().__init__(path, CHARACTERS)

    def tf_encode_part(self, strings):
        """See `PublishedEncoder.tf_encode_part`."""
        from t2t_lite.text.published import byte_level_graph

        return byte_level_graph.encode(strings, self._tokenizer)

    def tf_decode(self, ids):
        """Decodes int32 [batch, length] to string [batch] in a graph; invalid UTF-8 becomes U+FFFD."""
        import tensorflow as tf

        return tf.strings.unicode_transcode(tf_joined(ids, self.piece_bytes), "UTF-8", "UTF-8")

    _split = staticmethod(split)
    _spelled = staticmethod(spelled)

    def _spelled_tokens(self):
        return [None if self._is_special(i) or self._is_added(i) else token for i, token in enumerate(self.tokens)]

    def _join(self, ids):
        return b"".join(map(self.piece_bytes.__getitem__, ids)).decode("utf-8", errors="replace")

    @functools.cached_property
    def piece_bytes(self):
        """The bytes of each piece, see `TextEncoder.piece_bytes`; b"" for special tokens."""
        return [
            b""
            if self._is_special(i)
            else token.encode()
            if self._is_added(i)
            else bytes(map(_BYTES.__getitem__, token))
            for i, token in enumerate(self.tokens)
        ]


def learn_byte_level_bpe(lines, path, vocab_size, *, at_most=False):
    """Learns a byte-level BPE vocabulary; writes its tokens to `path` and its merges to a file in the same folder.

    The same lines give the same files on every machine. See `sentencepiece_model.count_words` for the required memory
    and the limits for huge texts.

    Args:
        lines: iterable of strings.
        path: path of the file of tokens, which ends in `vocab.json`.
        vocab_size: number of ids, including padding, end and unknown, although the file contains neither padding nor
            unknown.
        at_most: whether `vocab_size` is an upper limit and the text determines the size; see `choose_size`.

    Raises:
        UserError: `vocab_size` is too large or too small for the text, or the text is empty.
    """
    counts = count_words((" ".join(map(spelled, split(line))) for line in lines), {})
    # adds the bytes that do not occur in the text
    added = len(CHARACTERS) - len({character for word in counts for character in word})
    if at_most:
        vocab_size = choose_size(vocab_size, len(counts))
    with subwords.trainer_errors(vocab_size, path, sensible_size(len(counts)), added):
        model = subwords.train_bpe(
            counts, vocab_size=max(4, vocab_size - added), character_coverage=1.0,
            max_sentencepiece_length=_LONGEST_TOKEN, normalization_rule_name="identity", add_dummy_prefix=False,
            remove_extra_whitespaces=False, split_by_unicode_script=False, split_by_number=False,
        )  # fmt: skip
    proto = subwords.parse_sentencepiece(model, path)
    joined = [piece.piece for piece in proto.pieces if piece.type == piece.NORMAL and len(piece.piece) > 1]
    tokens = [*(CHARACTERS[byte] for byte in BYTE_ORDER), *joined, END_TOKEN]
    merges = "".join(f"{left} {right}\n" for left, right in _merges(joined))
    paths = files_of(path)
    files.remove_if_there(path.removesuffix("vocab.json") + CONFIG)  # settings that are left from another vocabulary
    files.write_bytes(paths["merges.txt"], f"#version: 0.2\n{merges}".encode())
    # The file of tokens is written last, because its existence means that the vocabulary is complete.
    ids = {token: i for i, token in enumerate(tokens)}
    files.write_bytes(path, json.dumps(ids, ensure_ascii=False, separators=(",", ":")).encode())


def _merges(tokens):
    """Yields the merge (left, right) of each token: the two parts that remain after the merges of earlier tokens."""
    ranks = {}
    for token in tokens:
        symbols = list(token)
        while len(symbols) > 2:
            pairs = enumerate(itertools.pairwise(symbols))
            _, at = min((ranks[pair], at) for at, pair in pairs if pair in ranks)
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        ranks[tuple(symbols)] = len(ranks)
        yield symbols
