"""Encoders: text <-> ids, in Python and inside a TensorFlow graph (mirrors tensor2tensor's text_encoder.py).

Ids of every encoder: 0 padding, 1 end of sentence (EOS). Encoders return ids without EOS; records add it.
TensorFlow and tensorflow-text are imported at the first use in a graph.
"""

import functools
import hashlib
import itertools
import re
import shlex

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.text.encoder_parts import BLANK, WordCache, lines_of, split_words

PAD_ID, EOS_ID, UNK_ID = 0, 1, 2


class TextEncoder:
    """Ids of numbers separated by spaces: "1 2 3" <-> [3, 4, 5].

    Args:
        vocab_size: number of ids, including the reserved ones (padding and EOS).

    Attributes:
        unknown_id: id for text outside the vocabulary, or None.
    """

    num_reserved_ids = 2
    unknown_id = None
    _file = b""

    def __init__(self, vocab_size):
        self.vocab_size = vocab_size

    @functools.cached_property
    def fingerprint(self):
        """SHA-256 (hex) of the vocabulary file, or of the encoder's definition if it has no file."""
        return hashlib.sha256(self._file or f"{type(self).__name__} {self.vocab_size}".encode()).hexdigest()

    def encode(self, text):
        """Returns the ids of a string, without EOS. Raises `UserError` for text outside the vocabulary."""
        ids = []
        for word in text.split():
            number = int(word) + self.num_reserved_ids if re.fullmatch(r"[0-9]{1,9}", word) else -1
            if not self.num_reserved_ids <= number < self.vocab_size:
                largest = self.vocab_size - self.num_reserved_ids - 1
                raise UserError(f"{word!r} is not in the vocabulary. Expected numbers from 0 to {largest}.")
            ids.append(number)
        return ids

    def decode(self, ids, strip_extraneous=False):
        """Returns the text of ids up to the first EOS, without padding.

        Args:
            ids: ints.
            strip_extraneous: accepted for compatibility with tensor2tensor; it has no effect.

        Raises:
            ValueError: an id outside the vocabulary.
        """
        return self._join(self._visible(ids))

    def decode_list(self, ids):
        """Returns one string per id, including padding and EOS (tensor2tensor's name for `pieces`)."""
        return self.pieces(ids)

    def pieces(self, ids):
        """Returns the vocabulary's entry for every id, padding and EOS included."""
        names = {PAD_ID: "<pad>", EOS_ID: "</s>"}
        return [names[i] if i in names else self._piece(i) for i in map(int, ids)]

    def tf_encode(self, strings):
        """In a graph: string [batch] -> int32 ragged [batch, (length)], without EOS; skips all but numbers."""
        import tensorflow as tf

        words = split_words(strings)
        # At most nine digits: `to_number` raises beyond int32, and an exported graph must never raise.
        words = tf.ragged.boolean_mask(words, tf.strings.regex_full_match(words, "[0-9]{1,9}"))
        ids = tf.ragged.map_flat_values(tf.strings.to_number, words, tf.int32) + self.num_reserved_ids
        return tf.ragged.boolean_mask(ids, ids < self.vocab_size)

    def tf_decode(self, ids):
        """In a graph: int32 [batch, length] -> string [batch]; the first EOS and all behind it, and all 0, left out."""
        import tensorflow as tf

        ids = tf_visible(ids, self.num_reserved_ids, self.vocab_size)
        return tf.strings.reduce_join(tf.strings.as_string(ids - self.num_reserved_ids), axis=-1, separator=" ")

    @property
    def tf_resources(self):
        """Resources of `tf_encode` and `tf_decode` that an export must track; usually none."""
        return []

    @property
    def piece_bytes(self):
        """The text of every id as UTF-8, a list of bytes, b"" for ids without text.

        Joined, they are the text of a list of ids, except that `decode` may drop a space at its beginning. None if an
        id's text depends on the ids around it.
        """
        return None

    def num_settled(self, ids):
        """Returns how many of the first ids have a text that ids after them do not change, half characters apart."""
        return len(ids)

    def _visible(self, ids):
        """Returns the ids before the first EOS, without padding, after checking them against the vocabulary's size."""
        visible = []
        for i in map(int, ids):
            if i == EOS_ID:
                break
            if not 0 <= i < self.vocab_size:
                raise ValueError(f"id {i} is outside the vocabulary. Expected 0 to {self.vocab_size - 1}.")
            if i != PAD_ID:
                visible.append(i)
        return visible

    def _join(self, ids):
        return " ".join(self._piece(i) for i in ids)

    def _piece(self, i):
        return str(i - self.num_reserved_ids)


class ByteTextEncoder(TextEncoder):
    """Ids of UTF-8 bytes: byte + 2 (`VocabType.CHARACTER`). Needs no file and knows every text."""

    def __init__(self):
        super().__init__(256 + self.num_reserved_ids)

    def encode(self, text):
        """Returns the ids of a string's UTF-8 bytes, without EOS."""
        return [byte + self.num_reserved_ids for byte in text.encode("utf-8")]

    def tf_encode(self, strings):
        """In a graph: string [batch] -> int32 ragged [batch, (length)], without EOS."""
        import tensorflow as tf

        characters = tf.strings.bytes_split(strings)
        decode = functools.partial(tf.io.decode_raw, out_type=tf.uint8)
        numbers = tf.ragged.map_flat_values(lambda c: tf.reshape(decode(c), [-1]), characters)
        return tf.cast(numbers, tf.int32) + self.num_reserved_ids

    def tf_decode(self, ids):
        """In a graph: int32 [batch, length] -> string [batch]; invalid UTF-8 becomes U+FFFD."""
        import tensorflow as tf

        ids = tf_visible(ids, self.num_reserved_ids, self.vocab_size)
        table = tf.constant([bytes([byte]) for byte in range(256)])
        joined = tf.strings.reduce_join(tf.gather(table, ids - self.num_reserved_ids), axis=-1)
        return tf.strings.unicode_transcode(joined, "UTF-8", "UTF-8")

    @property
    def piece_bytes(self):
        """See `TextEncoder.piece_bytes`."""
        return [b""] * self.num_reserved_ids + [bytes([byte]) for byte in range(256)]

    def _join(self, ids):
        return bytes(i - self.num_reserved_ids for i in ids).decode("utf-8", errors="replace")

    def _piece(self, i):
        return f"<0x{i - self.num_reserved_ids:02X}>"


class TokenTextEncoder(TextEncoder):
    """Ids of whole words listed in a file, one per line (`VocabType.TOKEN`).

    The file's first two lines are the entries of padding and EOS (`<pad>`, `<EOS>`), as in tensor2tensor. In a text
    `<EOS>` also becomes this id, and `<pad>` is an unknown word.

    Args:
        path: path of the file, on any file system that `tf.io.gfile` supports.
        replace_oov: entry that replaces words outside the vocabulary; if None, such a word is an error.
    """

    def __init__(self, path, replace_oov=None):
        self.path = path
        self._file = files.read_bytes(path, files.MOST_BYTES_OF_A_VOCABULARY)
        self._words = lines_of(self._file, path, "one word per line")
        beginning = " ".join(self._words[:2])[:40]
        if not re.fullmatch(r"(?i)\S*pad\S* \S*eos\S*", beginning):
            raise UserError(
                f"{path}: begins with {beginning!r}. Expected the lines <pad> and <EOS>, then one word each."
            )
        self._ids = {word: i for i, word in enumerate(self._words) if i != PAD_ID}
        self.unknown_id = None if replace_oov is None else self._ids.get(replace_oov)
        if len({*self._words}) != len(self._words) or len(self._words) <= self.num_reserved_ids:
            raise UserError(f"{path}: an entry occurs twice, or no words follow <EOS>. Expected one word per line.")
        if replace_oov is not None and self.unknown_id is None:
            raise UserError(f"{path}: the entry {replace_oov!r} for unknown words is not in it. Add it as a line.")
        super().__init__(len(self._words))

    def encode(self, text):
        """Returns the ids of the space-separated words. Raises `UserError` for unknown words without `replace_oov`."""
        ids = [self._ids.get(word, self.unknown_id) for word in text.split()]
        if None in ids:
            raise UserError(
                f"{text.split()[ids.index(None)]!r} is not in the vocabulary {self.path}. Add it as a line."
            )
        return ids

    def tf_encode(self, strings):
        """In a graph: string [batch] -> int32 ragged [batch, (length)]; words without an id are dropped."""
        import tensorflow as tf

        ids = tf.ragged.map_flat_values(self._table.lookup, split_words(strings))
        return tf.ragged.boolean_mask(ids, ids >= 0)

    def tf_decode(self, ids):
        """In a graph: int32 [batch, length] -> string [batch]."""
        return tf_joined(ids, self._words, separator=" ")

    @property
    def tf_resources(self):
        """The lookup table of words."""
        return [self._table]

    @functools.cached_property
    def _table(self):
        import tensorflow as tf

        default = -1 if self.unknown_id is None else self.unknown_id
        with tf.init_scope():  # outside of any function that is being traced, so that an export can track it
            ids = tf.lookup.KeyValueTensorInitializer([*self._ids], [*self._ids.values()], value_dtype=tf.int32)
            return tf.lookup.StaticHashTable(ids, default)

    @property
    def piece_bytes(self):
        """See `TextEncoder.piece_bytes`."""
        return [b""] * self.num_reserved_ids + [f" {word}".encode() for word in self._words[self.num_reserved_ids :]]

    def _piece(self, i):
        return self._words[i]


class SentencePieceEncoder(TextEncoder):
    """Ids of a SentencePiece model file with padding 0, EOS 1 and unknown 2.

    Args:
        path: path of the `.model` file, on any file system that `tf.io.gfile` supports.

    Raises:
        UserError: the file does not exist, is not a SentencePiece model, or has other special ids.
    """

    num_reserved_ids = 3
    unknown_id = UNK_ID

    def __init__(self, path):
        import sentencepiece

        self.path = path
        self._file = self._model = files.read_bytes(path, files.MOST_BYTES_OF_A_VOCABULARY)
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(self._model)
            self._processor.id_to_piece(list(range(self._processor.vocab_size())))  # a piece may be invalid UTF-8
        except (RuntimeError, ValueError):  # ValueError: the error message is invalid UTF-8
            raise UserError(
                f"{path}: not a SentencePiece model ({len(self._model):,} bytes). "
                "Copy the file again, or delete it and run t2t-datagen."
            ) from None
        p = self._processor
        special_ids = (p.pad_id(), p.eos_id(), p.unk_id())
        if special_ids != (PAD_ID, EOS_ID, UNK_ID):
            raise UserError(
                f"{path}: ids of padding, end of sentence and unknown are {special_ids}. Expected "
                f"{(PAD_ID, EOS_ID, UNK_ID)}: convert it by t2t-datagen --vocab_from={shlex.quote(path)} in another "
                "data_dir, or use spm_train --pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1."
            )
        super().__init__(p.vocab_size())
        self._words = WordCache(self._processor.EncodeAsIds)

    def encode(self, text):
        """Returns the ids of a string, without EOS."""
        if not self.is_by_word or BLANK in text:
            return self._processor.encode(text)
        return list(itertools.chain.from_iterable(map(self._words.__getitem__, text.split(" "))))

    @functools.cached_property
    def is_by_word(self):
        """Whether words are encoded one by one; see `sentencepiece_model.is_by_word`."""
        from t2t_lite.text import sentencepiece_model

        return sentencepiece_model.is_by_word(self._model)

    def encode_with_sizes(self, text):
        """Returns (ids, number of UTF-8 bytes of each, the normalized text they spell, origins of its characters).

        The origins are a list of int, an index into `text` for each character of the normalized text and for its end.
        """
        ids, pieces = self._processor.encode(text), self._processor.encode(text, out_type=str)
        sizes = [1 if self._processor.is_byte(i) else len(piece.encode()) for i, piece in zip(ids, pieces, strict=True)]
        return ids, sizes, *self._processor.normalize(text, with_offsets=True)

    def tf_encode(self, strings):
        """In a graph: string [batch] -> int32 ragged [batch, (length)], without EOS; the same ids as `encode`."""
        return self._tokenizer.tokenize(strings)

    def tf_encode_with_offsets(self, strings):
        """As `tf_encode`, with the bytes at which each piece starts and ends, int64 ragged [batch, (length)] each."""
        return self._tokenizer.tokenize_with_offsets(strings)

    def tf_decode(self, ids):
        """In a graph: int32 [batch, length] -> string [batch]; the first EOS and all behind it, and all 0, left out."""
        return self._tokenizer.detokenize(tf_visible(ids, 1, self.vocab_size))

    @property
    def piece_bytes(self):
        """See `TextEncoder.piece_bytes`."""
        p = self._processor
        return [
            b""
            if p.is_control(i)
            else bytes([int(p.id_to_piece(i)[3:5], 16)])
            if p.is_byte(i)
            else (p.decode([i]) if p.is_unknown(i) else p.id_to_piece(i).replace(BLANK, " ")).encode()
            for i in range(self.vocab_size)
        ]

    def _join(self, ids):
        return self._processor.decode(ids)

    def _piece(self, i):
        return self._processor.id_to_piece(i)

    @property
    def _tokenizer(self):
        # Not cached: a tokenizer holds a resource of the graph or eager context in which it was created.
        import tensorflow as tf
        import tensorflow_text

        # A loaded SavedModel shares resources by node name. With one name for two models, whichever was created first
        # would be used for inputs and outputs.
        name = f"vocabulary_{hashlib.sha256(self._model).hexdigest()[:16]}"
        return tensorflow_text.SentencepieceTokenizer(model=self._model, out_type=tf.int32, name=name)


def vocabulary_sizes(encoders):
    """Returns the sizes of the inputs' and the targets' vocabularies; None for the targets if there is only one.

    Args:
        encoders: {feature: encoder} with "targets", and "inputs" if there are any.
    """
    targets = encoders["targets"]
    inputs = encoders.get("inputs", targets)
    return inputs.vocab_size, None if inputs.fingerprint == targets.fingerprint else targets.vocab_size


def tf_visible(ids, least=1, size=2**31 - 1):
    """In a graph: int32 [batch, length] -> ragged rows that end before their first EOS, of `least` <= ids < `size`."""
    import tensorflow as tf

    is_end = tf.cast(ids == EOS_ID, tf.int32)
    return tf.ragged.boolean_mask(ids, (tf.cumsum(is_end, axis=1) == 0) & (ids >= least) & (ids < size))


def tf_joined(ids, pieces, separator=""):
    """In a graph: int32 [batch, length] -> string [batch], the joined `pieces` (list of str by id) of visible ids."""
    import tensorflow as tf

    ids = tf_visible(ids, 1, len(pieces))
    return tf.strings.reduce_join(tf.gather(tf.constant(pieces), ids), axis=-1, separator=separator)
