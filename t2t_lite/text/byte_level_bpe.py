"""Byte-level BPE, the vocabularies of GPT-2, RoBERTa and BART (Radford et al. 2019): any text is spelled by its bytes.

A text is split into words, each with the space before it. The bytes of a word are written as 256 visible characters,
which merges join in the order in which they were learned.

SentencePiece does the merging. It knows one rank per token instead of one per merge, which gives the same tokens for
all merges that BPE can learn; `byte_level_files` refuses others.
"""

import functools
import hashlib
import itertools

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.text.byte_level_files import files_of, read_vocabulary
from t2t_lite.text.byte_level_words import CHARACTERS, spelled, split
from t2t_lite.text.published_encoder import PublishedEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID, tf_visible
from t2t_lite.text.word_cache import WordCache

_BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}
END_TOKENS = ("</s>", "<|endoftext|>")


class ByteLevelBPEEncoder(PublishedEncoder):
    r"""Ids of a byte-level BPE vocabulary; any text comes back unchanged.

    Args:
        path: path of `vocab.json` or `encoder.json`, or of a file whose name ends so (`gpt2-vocab.json`). Its merges
            are in `merges.txt` or `vocab.bpe` beside it.

    Raises:
        UserError: a file is missing or cut off, or merges and tokens do not fit each other.

    Example:
        >>> encoder = ByteLevelBPEEncoder("gpt2/vocab.json")                                     # doctest: +SKIP
        >>> encoder.pieces(encoder.encode("It's a\n test"))                                      # doctest: +SKIP
        ['It', "'s", 'Ġa', 'Ċ', 'Ġtest']
    """

    def __init__(self, path):
        import sentencepiece

        paths = files_of(path)
        contents = {name: files.read_bytes(file, files.MOST_BYTES_OF_A_VOCABULARY) for name, file in paths.items()}
        published, merges, special = read_vocabulary(contents, paths)
        end = next((token for token in END_TOKENS if token in special), None)
        if end is None:
            raise UserError(f"{path}: no token for the end of a text. Expected {' or '.join(END_TOKENS)}.")
        reserved = [token if token in special else None for token in ("<pad>", end, "<unk>")]
        super().__init__(path, contents, published, reserved, special)
        self._model = self._sentencepiece_model(merges)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self._model)
        self._words = WordCache(self._encode_word)

    @functools.cached_property
    def fingerprint(self):
        """SHA-256 (hex) of both files, one after the other."""
        return hashlib.sha256(b"".join(self.contents.values())).hexdigest()

    def tf_encode(self, strings):
        """In a graph: string [batch] -> int32 ragged [batch, (length)], without an end; the same ids as `encode`."""
        import tensorflow as tf
        import tensorflow_text

        from t2t_lite.text import byte_level_graph

        # Named as in SentencePieceEncoder, and not cached for the same reason.
        name = f"vocabulary_{self.fingerprint[:16]}"
        tokenizer = tensorflow_text.SentencepieceTokenizer(model=self._model, out_type=tf.int32, name=name)
        return byte_level_graph.encode(strings, tokenizer)

    def tf_decode(self, ids):
        """In a graph: int32 [batch, length] -> string [batch]; invalid UTF-8 becomes U+FFFD."""
        import tensorflow as tf

        ids = tf_visible(ids)
        ids = tf.ragged.boolean_mask(ids, (ids > 0) & (ids < self.vocab_size))
        joined = tf.strings.reduce_join(tf.gather(tf.constant(self.piece_bytes), ids), axis=-1)
        return tf.strings.unicode_transcode(joined, "UTF-8", "UTF-8")

    def _encode(self, text):
        return list(itertools.chain.from_iterable(map(self._words.__getitem__, split(text))))

    def _encode_word(self, word):
        return self._processor.EncodeAsIds(spelled(word))

    def _join(self, ids):
        return b"".join(map(self.piece_bytes.__getitem__, ids)).decode("utf-8", errors="replace")

    @functools.cached_property
    def piece_bytes(self):
        """See `TextEncoder.piece_bytes`; special tokens have none."""
        return [
            b"" if self._is_special(i) else bytes(map(_BYTES.__getitem__, token)) for i, token in enumerate(self.tokens)
        ]

    def _is_special(self, i):
        return i <= UNK_ID or self.tokens[i] in self.special_ids

    def _sentencepiece_model(self, merges):
        """Returns the bytes of a SentencePiece BPE model with the same ids; `merges`: {token: its rank}."""
        from t2t_lite.text.sentencepiece_proto import ModelProto

        model = ModelProto()
        kind, spec, rule = ModelProto.SentencePiece, model.trainer_spec, model.normalizer_spec
        for i, token in enumerate(self.tokens):
            if self._is_special(i):  # the blank keeps its name apart from all words
                model.pieces.add(piece=f" {i}", type=kind.UNKNOWN if i == UNK_ID else kind.CONTROL)
            else:
                model.pieces.add(piece=token, score=-float(merges.get(token, 0)), type=kind.NORMAL)
        spec.model_type, spec.vocab_size = spec.BPE, len(self.tokens)
        spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id = PAD_ID, EOS_ID, UNK_ID, -1
        spec.pad_piece, spec.eos_piece, spec.unk_piece = (f" {i}" for i in (PAD_ID, EOS_ID, UNK_ID))
        rule.add_dummy_prefix = rule.remove_extra_whitespaces = rule.escape_whitespaces = False
        return model.SerializeToString(deterministic=True)
