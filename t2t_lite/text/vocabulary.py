"""Converts text to ids and back, in Python and inside a TensorFlow graph (mirrors tensor2tensor's text_encoder.py).

In every encoder, id 0 is padding and id 1 is the end of sentence (EOS). Encoders return ids without EOS; records add
EOS. TensorFlow and tensorflow-text are imported at the first use in a graph.
"""

import functools
import hashlib
import itertools
import re
import shlex

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.text.encoder_parts import BLANK, WordCache, lines_of, open_sentencepiece, split_words

PAD_ID, EOS_ID, UNK_ID = 0, 1, 2


class TextEncoder:
    """The base class of encoders; it encodes numbers separated by spaces: "1 2 3" <-> [3, 4, 5].

    Args:
        vocab_size: number of ids, including the reserved ids (padding and EOS).

    Attributes:
        unknown_id: id for text outside the vocabulary, or None if there is no such id.
    """

    num_reserved_ids = 2
    unknown_id = None
    _file = b""

    def __init__(self, vocab_size):
        self.vocab_size = vocab_size

    def __init_subclass__(cls, **kwargs):
        """Replaces an inherited `tf_encode` or `tf_decode` that does not match the subclass's `encode` or `decode`."""
        super().__init_subclass__(**kwargs)
        for name in ("encode", "decode"):
            if name in vars(cls) and f"tf_{name}" not in vars(cls):
                setattr(cls, f"tf_{name}", functools.partialmethod(_not_in_graph, name))

    @functools.cached_property
    def fingerprint(self):
        """The SHA-256 (hex) of the vocabulary file, or of the encoder's definition if there is no file."""
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
            ValueError: an id is outside the vocabulary.
        """
        return self._join(self._visible(ids))

    def decode_list(self, ids):
        """Returns the `pieces` of ids, including padding and EOS (under tensor2tensor's method name)."""
        return self.pieces(ids)

    def pieces(self, ids):
        """Returns the vocabulary's entry for every id, including padding and EOS."""
        names = {PAD_ID: "<pad>", EOS_ID: "</s>"}
        return [names[i] if i in names else self._piece(i) for i in map(int, ids)]

    def tf_encode(self, strings):
        """Encodes string [batch] in a graph as int32 ragged [batch, (length)]; words without an id are dropped."""
        import tensorflow as tf

        words = split_words(strings)
        # Numbers have at most nine digits, because `to_number` raises an error beyond int32, and an exported graph must
        # not fail.
        words = tf.ragged.boolean_mask(words, tf.strings.regex_full_match(words, "[0-9]{1,9}"))
        ids = tf.ragged.map_flat_values(tf.strings.to_number, words, tf.int32) + self.num_reserved_ids
        return tf.ragged.boolean_mask(ids, ids < self.vocab_size)

    def tf_decode(self, ids):
        """Decodes int32 [batch, length] to string [batch] in a graph, up to the first EOS and without padding."""
        import tensorflow as tf

        ids = tf_visible(ids, self.num_reserved_ids, self.vocab_size)
        return tf.strings.reduce_join(tf.strings.as_string(ids - self.num_reserved_ids), axis=-1, separator=" ")

    @property
    def tf_resources(self):
        """The TensorFlow resources that `tf_encode` and `tf_decode` use, which an export must track; usually []."""
        return []

    @property
    def piece_bytes(self):
        """The text of every id as UTF-8, a list of bytes; b"" for ids without text.

        Joined, the bytes of several ids are the text of these ids, except that `decode` may drop a space at the
        beginning. The value is None if the text of an id depends on the ids around it.
        """
        return None

    def num_settled(self, ids):
        """Returns the number of ids at the beginning whose decoded text cannot be changed by later ids."""
        return len(ids)

    def _visible(self, ids):
        """Returns the ids before the first EOS, without padding. Raises an error for an id outside the vocabulary."""
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


def _not_in_graph(encoder, name, _):
    raise UserError(
        f"{type(encoder).__name__} cannot be used in a graph, such as an export: it defines {name}, but not tf_{name}. "
        f"Define tf_{name}, see t2t_lite.text.vocabulary.TextEncoder."
    )


class ByteTextEncoder(TextEncoder):
    """Encodes UTF-8 bytes as byte + 2 (`VocabType.CHARACTER`). It needs no file and can encode any text."""

    def __init__(self):
        super().__init__(256 + self.num_reserved_ids)

    def encode(self, text):
        """Returns the ids of a string's UTF-8 bytes, without EOS."""
        return [byte + self.num_reserved_ids for byte in text.encode("utf-8")]

    def tf_encode(self, strings):
        """Encodes string [batch] in a graph as int32 ragged [batch, (length)], without EOS."""
        import tensorflow as tf

        characters = tf.strings.bytes_split(strings)
        numbers = tf.reshape(tf.io.decode_raw(characters.values, tf.uint8), [-1])
        return characters.with_values(tf.cast(numbers, tf.int32) + self.num_reserved_ids)

    def tf_decode(self, ids):
        """Decodes int32 [batch, length] to string [batch] in a graph; invalid UTF-8 becomes U+FFFD."""
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
    """Encodes whole words; a file lists the known words, one per line (`VocabType.TOKEN`).

    The file's first two lines are the entries of padding and EOS (`<pad>`, `<EOS>`), as in tensor2tensor. In a text,
    `<EOS>` is encoded as EOS, and `<pad>` is an unknown word.

    Args:
        path: path of the file, on any file system that `tf.io.gfile` supports.
        replace_oov: entry that replaces words outside the vocabulary; if None, such a word raises an error.
    """

    def __init__(self, path, replace_oov=None):
        self.path = path
        self._file = files.read_bytes(path, files.MOST_BYTES_OF_A_VOCABULARY)
        self._words = lines_of(self._file, path, "one word per line")
        beginning = " ".join(self._words[:2])[:40]
        if not re.fullmatch(r"(?i)\S*pad\S* \S*eos\S*", beginning):
            raise UserError(
                f"{path}: begins with {beginning!r}. Expected the lines <pad> and <EOS>, then one word per line."
            )
        self._ids = {word: i for i, word in enumerate(self._words) if i != PAD_ID}
        self.unknown_id = None if replace_oov is None else self._ids.get(replace_oov)
        if len({*self._words}) != len(self._words) or len(self._words) <= self.num_reserved_ids:
            raise UserError(f"{path}: an entry occurs twice, or no words follow <EOS>. Expected one word per line.")
        if replace_oov is not None and self.unknown_id is None:
            raise UserError(
                f"{path}: has no entry {replace_oov!r}, the token for unknown words. Add it on a line of its own."
            )
        super().__init__(len(self._words))

    def encode(self, text):
        """Returns the ids of space-separated words. Raises `UserError` for unknown words if `replace_oov` is None."""
        ids = [self._ids.get(word, self.unknown_id) for word in text.split()]
        if None in ids:
            raise UserError(
                f"{text.split()[ids.index(None)]!r} is not in the vocabulary {self.path}. Add it as a line."
            )
        return ids

    def tf_encode(self, strings):
        """Encodes string [batch] in a graph as int32 ragged [batch, (length)]; words without an id are dropped."""
        import tensorflow as tf

        ids = tf.ragged.map_flat_values(self._table.lookup, split_words(strings))
        return tf.ragged.boolean_mask(ids, ids >= 0)

    def tf_decode(self, ids):
        """Decodes int32 [batch, length] to string [batch] in a graph."""
        return tf_joined(ids, self._words, separator=" ")

    @property
    def tf_resources(self):
        """The lookup table from words to ids, for graphs."""
        return [self._table]

    @functools.cached_property
    def _table(self):
        import tensorflow as tf

        default = -1 if self.unknown_id is None else self.unknown_id
        # The table is created outside of any function that is being traced, so that an export can track it.
        with tf.init_scope():
            ids = tf.lookup.KeyValueTensorInitializer([*self._ids], [*self._ids.values()], value_dtype=tf.int32)
            return tf.lookup.StaticHashTable(ids, default)

    @property
    def piece_bytes(self):
        """See `TextEncoder.piece_bytes`."""
        return [b""] * self.num_reserved_ids + [f" {word}".encode() for word in self._words[self.num_reserved_ids :]]

    def _piece(self, i):
        return self._words[i]


class SentencePieceEncoder(TextEncoder):
    """Encodes text with a SentencePiece model file in which padding is 0, EOS 1 and unknown 2.

    Args:
        path: path of the `.model` file, on any file system that `tf.io.gfile` supports.

    Attributes:
        model: bytes, the SentencePiece model that encodes texts: the file, but for its rule with `reading_plain`.

    Raises:
        UserError: the file does not exist, is not a SentencePiece model, or has different special ids.
    """

    num_reserved_ids = 3
    unknown_id = UNK_ID

    def __init__(self, path):
        self.path = path
        self._file = self.model = files.read_bytes(path, files.MOST_BYTES_OF_A_VOCABULARY)
        self._processor = p = open_sentencepiece(self.model, path)
        special_ids = (p.pad_id(), p.eos_id(), p.unk_id())
        if special_ids != (PAD_ID, EOS_ID, UNK_ID):
            raise UserError(
                f"{path}: the ids of padding, end of sentence and unknown are {special_ids}. Expected "
                f"{(PAD_ID, EOS_ID, UNK_ID)}: convert it with t2t-datagen --vocab_from={shlex.quote(path)} in another "
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
        """Whether words can be encoded one by one; see `sentencepiece_model.is_by_word`."""
        from t2t_lite.text import sentencepiece_model

        return sentencepiece_model.is_by_word(self.model)

    def encode_with_sizes(self, text):
        """Returns (ids, number of UTF-8 bytes of each id, normalized text that they spell, origins of its characters).

        The origins are a list of int: for each character of the normalized text, and for its end, the index in `text`.
        """
        ids, pieces = self._processor.encode(text), self._processor.encode(text, out_type=str)
        sizes = [1 if self._processor.is_byte(i) else len(piece.encode()) for i, piece in zip(ids, pieces, strict=True)]
        return ids, sizes, *self._processor.normalize(text, with_offsets=True)

    def tf_encode(self, strings):
        """Encodes string [batch] in a graph as int32 ragged [batch, (length)], like `encode`, without EOS."""
        return self._tokenizer.tokenize(strings)

    def tf_encode_with_offsets(self, strings):
        """Like `tf_encode`, but also returns each piece's start and end in bytes, int64 ragged like the ids."""
        return self._tokenizer.tokenize_with_offsets(strings)

    def tf_decode(self, ids):
        """Decodes int32 [batch, length] to string [batch] in a graph, up to the first EOS and without padding."""
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
        # The tokenizer is not cached, because it holds a resource of the graph or eager context in which it was
        # created.
        import tensorflow as tf
        import tensorflow_text

        # A loaded SavedModel shares resources with the same node name. If two SentencePiece models had the same name,
        # the first of them would be used for both inputs and outputs.
        name = f"vocabulary_{hashlib.sha256(self.model).hexdigest()[:16]}"
        return tensorflow_text.SentencepieceTokenizer(model=self.model, out_type=tf.int32, name=name)


def vocabulary_sizes(encoders):
    """Returns the sizes of (the inputs' vocabulary, the targets' vocabulary); the second is None if both share one.

    Args:
        encoders: {feature: encoder} with "targets", and with "inputs" unless the problem has no inputs.
    """
    targets = encoders["targets"]
    inputs = encoders.get("inputs", targets)
    return inputs.vocab_size, None if inputs.fingerprint == targets.fingerprint else targets.vocab_size


def tf_visible(ids, least=1, size=2**31 - 1):
    """Returns int32 [batch, length] as ragged rows that end before EOS and keep only ids from `least` to `size` - 1."""
    import tensorflow as tf

    is_end = tf.cast(ids == EOS_ID, tf.int32)
    return tf.ragged.boolean_mask(ids, (tf.cumsum(is_end, axis=1) == 0) & (ids >= least) & (ids < size))


def tf_joined(ids, pieces, separator=""):
    """Joins, in a graph, the pieces of int32 [batch, length], except special ids, into string [batch]."""
    import tensorflow as tf

    ids = tf_visible(ids, 1, len(pieces))
    return tf.strings.reduce_join(tf.gather(tf.constant(pieces), ids), axis=-1, separator=separator)
