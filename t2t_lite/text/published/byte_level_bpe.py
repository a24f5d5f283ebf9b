"""Byte-level BPE, the vocabularies of GPT-2, RoBERTa and BART (Radford et al. 2019): any text is spelled by its bytes.

A text is split into words, each with the space before it. The bytes of a word are written as 256 visible characters,
which merges join in the order in which they were learned.
"""

import functools

from t2t_lite.text.published.bpe_files import BPEEncoder
from t2t_lite.text.published.pre_tokenization import CHARACTERS, spelled, split
from t2t_lite.text.vocabulary import tf_joined

_BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}


class ByteLevelBPEEncoder(BPEEncoder):
    r"""Ids of a byte-level BPE vocabulary; any text comes back unchanged.

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
        """In a graph: int32 [batch, length] -> string [batch]; invalid UTF-8 becomes U+FFFD."""
        import tensorflow as tf

        return tf.strings.unicode_transcode(tf_joined(ids, self.piece_bytes), "UTF-8", "UTF-8")

    def _split(self, text):
        return split(text)

    def _spelled(self, word):
        return spelled(word)

    def _spelled_tokens(self):
        return [None if self._is_special(i) or self._is_added(i) else token for i, token in enumerate(self.tokens)]

    def _join(self, ids):
        return b"".join(map(self.piece_bytes.__getitem__, ids)).decode("utf-8", errors="replace")

    @functools.cached_property
    def piece_bytes(self):
        """See `TextEncoder.piece_bytes`; special tokens have none."""
        return [
            b""
            if self._is_special(i)
            else token.encode()
            if self._is_added(i)
            else bytes(map(_BYTES.__getitem__, token))
            for i, token in enumerate(self.tokens)
        ]
