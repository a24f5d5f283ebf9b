"""Reads and edits SentencePiece model files, checks how they normalize text, and prepares word counts for training.

The protocol buffers declare only the fields of sentencepiece_model.proto that are read or changed here; all other
fields are preserved. The sentencepiece package also has such a module, but its current versions require the newest
protobuf, which Apache Beam does not allow.
"""

import collections
import hashlib
import itertools
import re
import zlib

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from t2t_lite.errors import LOGGER
from t2t_lite.text.encoder_parts import BLANK

# {message: fields}. A field is written as type, name, number and default; types may be messages, enums or lists, [].
_MESSAGES = {
    "TrainerSpec": """
        ModelType model_type 3 UNIGRAM; INT32 vocab_size 4 8000; STRING input_format 7;
        INT32 max_sentence_length 18 4192; BOOL treat_whitespace_as_suffix 24 false; BOOL byte_fallback 35 false;
        INT32 unk_id 40 0; INT32 bos_id 41 1; INT32 eos_id 42 2; INT32 pad_id 43 -1;
        STRING unk_piece 45 <unk>; STRING bos_piece 46 <s>; STRING eos_piece 47 </s>; STRING pad_piece 48 <pad>
    """,
    "NormalizerSpec": """
        BYTES precompiled_charsmap 2; BOOL add_dummy_prefix 3 true; BOOL remove_extra_whitespaces 4 true;
        BOOL escape_whitespaces 5 true; STRING normalization_rule_tsv 6
    """,
    "ModelProto.SentencePiece": "STRING piece 1; FLOAT score 2; Type type 3 NORMAL",
    "ModelProto": "ModelProto.SentencePiece[] pieces 1; TrainerSpec trainer_spec 2; NormalizerSpec normalizer_spec 3",
}
_ENUMS = {
    "TrainerSpec": ("ModelType", {"UNIGRAM": 1, "BPE": 2, "WORD": 3, "CHAR": 4}),
    "ModelProto.SentencePiece": (
        "Type", {"NORMAL": 1, "UNKNOWN": 2, "CONTROL": 3, "USER_DEFINED": 4, "UNUSED": 5, "BYTE": 6}
    ),
}  # fmt: skip
# SHA-256 of compiled normalization rules: no rule ("identity"), and the rules of `subwords.normalization_options`.
_RULES_OF_CHARACTERS = {
    hashlib.sha256(b"").hexdigest(),
    "b304547e497b78efb6a74008929eddfdba6529394057bf6c41a7d4150e4dc3ab",
}
_BLOCK = 2**14  # number of lines whose words are counted in one call, unless the lines are very long
_BLOCK_CHARACTERS = 2**24
MOST_COUNTED = 40_000_000  # limit, while counting, on the total length of the distinct words; they take 600 MB
# Limit, after counting, on the total length of the distinct words in characters. SentencePiece needs about 65 bytes per
# character, and up to 120 for text without spaces.
MOST_KEPT = 10_000_000
# Longest word in characters. SentencePiece indexes the characters of a word with 16 bits, and NFKC may turn one
# character into up to 18 characters.
_LONGEST_WORD = 2**16 // 18
_LONG_WORD = re.compile(rf"[^ ]{{{_LONGEST_WORD}}}")
_RESERVED = "\u2585"  # SentencePiece's own symbol for unknown characters, which no piece can contain
_MOST_STOOD_FOR = 16
_BYTES = 256
_SPECIAL = 3  # number of special pieces: padding, end and unknown
_WORDS_PER_MERGE = 4


def _make():
    """Returns the protocol buffer classes of the two top-level messages."""
    file = descriptor_pb2.FileDescriptorProto(name="t2t_lite_sentencepiece.proto", package="t2t_lite", syntax="proto2")
    messages = {}
    for name in sorted(_MESSAGES):  # the order ensures that outer messages come before nested messages
        outer, _, inner = name.rpartition(".")
        messages[name] = messages[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=name)
    for name, message in messages.items():
        if name in _ENUMS:
            enum, values = _ENUMS[name]
            kind = message.enum_type.add(name=enum)
            for value, number in values.items():
                kind.value.add(name=value, number=number)
        for line in _MESSAGES[name].split(";"):
            type_name, field, number, *default = line.split()
            label = "LABEL_REPEATED" if type_name.endswith("[]") else "LABEL_OPTIONAL"
            type_name = type_name.removesuffix("[]")
            added = message.field.add(name=field, number=int(number), label=label)
            if type_name in _MESSAGES:
                added.type, added.type_name = added.TYPE_MESSAGE, f".t2t_lite.{type_name}"
            elif name in _ENUMS and type_name == _ENUMS[name][0]:
                added.type, added.type_name = added.TYPE_ENUM, f".t2t_lite.{name}.{type_name}"
            else:
                added.type = getattr(added, f"TYPE_{type_name}")
            if default:
                (added.default_value,) = default
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return [message_factory.GetMessageClass(find(f"t2t_lite.{name}")) for name in ("ModelProto", "TrainerSpec")]


ModelProto, TrainerSpec = _make()


def has_rule_of_characters(model):
    """Returns whether a model changes no characters or only control characters, as with `subwords.IDENTITY`."""
    rule = ModelProto.FromString(model).normalizer_spec.precompiled_charsmap
    return hashlib.sha256(rule).hexdigest() in _RULES_OF_CHARACTERS


def is_by_word(model):
    """Returns whether a model can encode words one by one, so that the ids of frequent words can be cached.

    This requires that no piece spans a space and that normalization acts on single characters, as in models of
    `train_sentencepiece` with the default normalization. Unigram models are excluded, because their scores are summed
    over the whole text, so that rounding decides between equally good segmentations.
    """
    proto = ModelProto.FromString(model)
    rule = proto.normalizer_spec
    return (
        proto.trainer_spec.model_type == proto.trainer_spec.BPE
        and has_rule_of_characters(model)
        and rule.add_dummy_prefix
        and rule.remove_extra_whitespaces
        and rule.escape_whitespaces
        and not proto.trainer_spec.treat_whitespace_as_suffix
        and not any(BLANK in piece.piece[1:] or " " in piece.piece for piece in proto.pieces)
    )


def count_words(lines, separators, *, most_counted=MOST_COUNTED, most_kept=MOST_KEPT):
    """Counts the words of a text in bounded memory; returns {word: count}.

    Every line counts, however long it is. A word of more than 3,640 characters, such as a document in a script without
    spaces, is counted in parts of that length. If the distinct words do not fit in memory, the rarest words are
    dropped, even while counting. With this lossy counting, the count of a word can be too low by the count that it had
    when it was last dropped. If only some of the words with equal counts fit, a uniform sample of them, selected by
    checksum, is kept. The counts of the words in the sample are multiplied by up to 16 to make up for the dropped
    words. The result depends only on the lines.

    Args:
        lines: iterable of strings.
        separators: {code point: " "} for characters other than the space that separate words. SentencePiece's symbol
            for unknown characters (U+2585) always separates words.
        most_counted: number of characters of distinct words, each with its preceding space, above which the rarest
            words are dropped while counting.
        most_kept: the number of characters of distinct words above which the rarest words are dropped after counting.
    """
    counts, limits = collections.Counter(), {}
    size = left_out = 0
    for text in _blocks(lines, separators):
        counts.update(text.split(" "))
        counts.pop("", None)
        size += len(text) + 1  # an upper bound; the exact size is computed only above the limit
        if size > most_counted and (size := _size(counts)) > most_counted:
            counts, dropped, _ = _most_frequent(counts, most_counted // 2, limits)
            size, left_out = _size(counts), left_out + dropped
    different = len(counts)
    counts, dropped, least = _most_frequent(counts, most_kept, limits)
    left_out += dropped
    if left_out:
        LOGGER.info(
            f"vocabulary: learned from the {len(counts):,} most frequent of "
            f"{'over ' * (left_out > dropped)}{different:,} distinct words; the rarer words do not fit in memory"
        )
        _stand_for(counts, least or min(counts.values()), left_out)
    return counts


def _blocks(lines, separators):
    """Joins lines into larger texts, in which spaces separate all words; yields these texts."""
    block, characters = [], 0
    for line in lines:
        block.append(_separated(line.rstrip("\r\n"), separators))
        characters += len(line)
        if len(block) == _BLOCK or characters >= _BLOCK_CHARACTERS:
            yield " ".join(block)
            block, characters = [], 0
    if block:
        yield " ".join(block)


def _separated(line, separators):
    """Returns a line in which all words are separated by spaces."""
    if not line.isprintable():
        line = line.translate(separators)
    if _RESERVED in line:
        line = line.replace(_RESERVED, " ")
    return line if len(line) <= _LONGEST_WORD else _LONG_WORD.sub(r"\g<0> ", line)


def _size(counts):
    return len(counts) + sum(map(len, counts))


def _most_frequent(counts, room, limits):
    """Returns (counts of the words that fit in `room`, number of dropped characters, lowest count kept)."""
    # `limits` maps a count to a checksum. Words with this count are kept if their own checksum is lower. Each call
    # updates `limits`.
    occurrences = np.fromiter(counts.values(), np.int64, len(counts))
    sizes = np.fromiter(map(len, counts), np.int64, len(counts)) + 1
    if sizes.sum() <= room:
        return counts, 0, 0
    levels, level_of = np.unique(-occurrences, return_inverse=True)  # the different counts, in descending order
    total_sizes = np.cumsum(np.bincount(level_of, sizes))
    first = np.searchsorted(total_sizes, room, side="right")  # index of the highest count whose words do not all fit
    least = -int(levels[first])
    is_tie = occurrences == least
    checksums = np.fromiter((zlib.crc32(word.encode()) for word in itertools.compress(counts, is_tie)), np.int64)
    order = np.argsort(checksums, kind="stable")
    room -= total_sizes[first - 1] if first else 0
    first_too_much = np.searchsorted(np.cumsum(sizes[is_tie][order]), room, side="right")
    # A checksum limit is never raised again, because words above the limit have already been dropped from the earlier
    # text.
    limits[least] = min(limits.get(least, 2**32), int(checksums[order[first_too_much]]))
    stays = occurrences > least
    stays[is_tie] = checksums < limits[least]
    words = collections.Counter(dict(itertools.compress(counts.items(), stays)))
    return words, int((occurrences * sizes)[~stays].sum()), least


def _stand_for(counts, least, left_out):
    """Raises the counts of the kept words that occur `least` times, so that they also represent the dropped words."""
    sample = [word for word, count in counts.items() if count == least]
    share = left_out / max(1, least * (len(sample) + sum(map(len, sample))))
    for word in sample:
        counts[word] = round(least * min(_MOST_STOOD_FOR, 1 + share))


def sensible_size(num_words, num_others=0):
    """Returns a vocabulary size at which most pieces are still parts of words.

    The vocabulary has one merge for every four distinct words, so that at most a quarter of these words are a single
    piece. The number of distinct words grows roughly with the square root of the text's length (Heaps' law), and so
    does the vocabulary's size: 3,700 pieces for 5,000 captions in two languages, and 10,200 for 29,000 captions.

    Args:
        num_words: number of distinct words in the text.
        num_others: number of characters and symbols that are pieces, in addition to bytes and merges.
    """
    return _BYTES + _SPECIAL + num_others + num_words // _WORDS_PER_MERGE


def choose_size(largest, num_words, num_others=0):
    """Returns the vocabulary size from `sensible_size`, but at most `largest`, and logs it."""
    size = min(largest, sensible_size(num_words, num_others))
    LOGGER.info(
        f"chose a vocabulary of {size:,} pieces for {num_words:,} distinct words (--vocab_size sets another size)"
    )
    return size
