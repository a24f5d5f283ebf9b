"""Learns a SentencePiece vocabulary from text, or adopts a vocabulary that another tool has learned."""

import contextlib
import io
import os
import re
import tempfile
import unicodedata

from t2t_lite import files
from t2t_lite.errors import LOGGER, Failure, UserError, first_line
from t2t_lite.settings.ranges import NORMALIZATIONS
from t2t_lite.text.encoder_parts import open_sentencepiece
from t2t_lite.text.sentencepiece_model import ModelProto, choose_size, count_words, sensible_size
from t2t_lite.text.vocabulary import BLANK, EOS_ID, PAD_ID, UNK_ID

RESERVED = re.compile("<pad>|</s>|<unk>|<0x[0-9A-F]{2}>")  # pieces that are in every vocabulary learned here
LONGEST_SYMBOL = 100
IDENTITY = NORMALIZATIONS[0]
CHARACTER_COVERAGE = 0.9999
# maximum sentence length in bytes, set to the largest value allowed (SentencePiece's default is 4,192)
_LONGEST_SENTENCE = 2**30
# The characters that the normalization "identity" turns into spaces. NUL is omitted, because a rule of SentencePiece
# cannot contain it.
BLANKS = [*range(0x01, 0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
_SPACES = dict.fromkeys([*BLANKS, ord(BLANK)], " ")


def is_blank(text):
    """Returns whether a text consists only of white space, `BLANKS` and U+2581, SentencePiece's symbol for a space.

    A vocabulary that is learned here encodes `BLANKS` and U+2581 as spaces.
    """
    return not text.strip() or ((BLANK in text or not text.isprintable()) and not text.translate(_SPACES).strip())


def is_symbol(symbol):
    """Returns whether a string is short and without spaces or control characters, as a user-defined symbol must be."""
    is_odd = re.search(r"[\s\u2581]", symbol) or any(unicodedata.category(c) in ("Cc", "Cs") for c in symbol)
    return 0 < len(symbol) <= LONGEST_SYMBOL and not is_odd


class ImpossibleSize(UserError):
    """Error raised if no vocabulary of the requested size can be learned from the text.

    Attributes:
        reason: str, a sentence about the cause.
        possible: int, a vocabulary size that is possible.
    """

    def __init__(self, reason, possible, advice):
        super().__init__(f"{reason} {advice.format(setting='vocab_size')}")
        self.reason, self.possible, self._advice = reason, possible, advice

    def naming(self, setting):
        """Returns this error with advice that names the flag or attribute that sets the size."""
        return UserError(f"{self.reason} {self._advice.format(setting=setting)}")


def train_sentencepiece(
    lines,
    model_prefix,
    vocab_size,
    *,
    at_most=False,
    character_coverage=CHARACTER_COVERAGE,
    normalization=IDENTITY,
    split_digits=False,
    user_defined_symbols=(),
):
    """Trains a BPE vocabulary with byte fallback and writes `<model_prefix>.model` and `.vocab`.

    The same lines in the same order give the same files on every machine. The characters that make up the rarest 0.01 %
    of the text do not become pieces. They are spelled with the pieces of their UTF-8 bytes, so no character is unknown.

    No piece contains a space between words. So counts of words are enough to learn the same pieces as from the lines
    themselves, and only the distinct words must fit in memory. If the distinct words have more than about 10 million
    characters in total (800,000 words), the rarest words are dropped, which is logged; see `count_words`.

    Args:
        lines: iterable of strings, of any length.
        model_prefix: path without extension, on any file system that `tf.io.gfile` supports.
        vocab_size: number of pieces, including the special pieces and 256 bytes.
        at_most: whether `vocab_size` is an upper limit and the text determines the size; see `choose_size`.
        character_coverage: fraction of the text's characters that become pieces.
        normalization: "identity", or one of SentencePiece's rules: "nfkc", "nmt_nfkc", or one of these with `_cf`
            (lower case). With "identity", control characters and line separators become spaces, and nothing else
            changes. Consecutive spaces become one space.
        split_digits: whether numbers are spelled digit by digit, so that no piece has more than one digit.
        user_defined_symbols: strings without spaces that are always one piece; their ids begin at 3.

    Raises:
        UserError: `vocab_size` is too large or too small for the text (the message gives the limit), the text is empty,
            or a symbol contains a space, is repeated or is reserved.
    """
    # A tab always ends a word, because in the input of the training, a tab separates each word from its count.
    separators = {code: " " for code in BLANKS} if normalization == IDENTITY else {9: " "}
    _check_symbols(user_defined_symbols, model_prefix, separators)
    counts = count_words(lines, separators)
    others = len({BLANK}.union(*counts)) + len(user_defined_symbols)
    if at_most:
        vocab_size = choose_size(vocab_size, len(counts), others)
    sensible = sensible_size(len(counts), others)  # computed here, because `train_bpe` empties the counts
    with tempfile.TemporaryDirectory() as folder, trainer_errors(vocab_size, model_prefix, sensible):
        model = train_bpe(
            counts,
            vocab_size=vocab_size,
            character_coverage=character_coverage,
            byte_fallback=True,
            user_defined_symbols=list(user_defined_symbols),
            # An option is passed only if it is set, because the model file records every option that is passed.
            **({"split_digits": True} if split_digits else {}),
            **normalization_options(normalization, folder),
        )
    _write(_without_traces(model), model_prefix)


def train_bpe(counts, **options):
    """Trains a BPE model with SentencePiece; returns the bytes of the model file.

    Args:
        counts: dict {word: occurrences}, which is emptied during training.
        **options: options of the trainer, in addition to the options that all vocabularies share.
    """
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        # Words are removed from the counts one by one, so that no word is in memory twice. Their order does not matter,
        # because SentencePiece sorts them.
        sentence_iterator=("{}\t{}".format(*counts.popitem()) for _ in range(len(counts))),
        input_format="tsv",
        max_sentence_length=_LONGEST_SENTENCE,
        model_writer=model,
        model_type="bpe",
        pad_id=PAD_ID,
        eos_id=EOS_ID,
        unk_id=UNK_ID,
        bos_id=-1,
        num_threads=4,  # the number of threads is fixed, because the result must not depend on the machine
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def adopt_sentencepiece(path, model_prefix):
    """Copies any SentencePiece model to `<model_prefix>.model` and writes its `.vocab`.

    Special ids are changed to padding 0, EOS 1 and unknown 2, as `with_usual_ids` describes. If the model has no byte
    fallback, none is added, and a log message warns of unknown characters.

    Raises:
        UserError: the file does not exist, or is not a SentencePiece model.
    """
    model = with_usual_ids(files.read_bytes(path), path)
    if not parse_sentencepiece(model, path).trainer_spec.byte_fallback:
        LOGGER.info(f"{path}: the vocabulary has no byte fallback, so characters without a piece become <unk>")
    _write(model, model_prefix)


def with_usual_ids(model, path):
    """Returns the bytes of a SentencePiece model with padding 0, EOS 1 and unknown 2.

    A model that already has these ids is returned unchanged. Otherwise the three pieces are moved to the front, or
    added if they are missing, and the other pieces follow in their order. Texts are still segmented into the same
    pieces, but the ids differ.

    Args:
        model: bytes of a `.model` file.
        path: the name of the file, for errors.

    Raises:
        UserError: `model` is not a SentencePiece model.
    """
    proto = parse_sentencepiece(model, path)
    kind, spec = proto.SentencePiece.Type, proto.trainer_spec
    control = {piece.piece for piece in proto.pieces if piece.type == kind.CONTROL}
    names = {piece.piece for piece in proto.pieces}
    special = []
    for role in ("pad", "eos"):
        name = getattr(spec, f"{role}_piece")
        if name not in control:
            while name in names:  # an ordinary piece may have the name of a special piece
                name = f"<{name}>"
            setattr(spec, f"{role}_piece", name)
        special.append(proto.SentencePiece(piece=name, score=0, type=kind.CONTROL))
    special += [piece for piece in proto.pieces if piece.type == kind.UNKNOWN]
    special_names = {piece.piece for piece in special}
    pieces = special + [piece for piece in proto.pieces if piece.piece not in special_names]
    if list(proto.pieces) == pieces:
        return model
    ids = {piece.piece: i for i, piece in enumerate(pieces)}
    bos_id = ids[spec.bos_piece] if spec.bos_piece in control else -1
    spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id = PAD_ID, EOS_ID, UNK_ID, bos_id
    spec.vocab_size = len(pieces)
    # The pieces are copied, because the originals are deleted below.
    pieces = [proto.SentencePiece.FromString(piece.SerializeToString()) for piece in pieces]
    del proto.pieces[:]
    proto.pieces.extend(pieces)
    return proto.SerializeToString(deterministic=True)


def parse_sentencepiece(model, path):
    """Parses a SentencePiece model as a ModelProto. Raises `UserError` if SentencePiece cannot load the model."""
    open_sentencepiece(model, path)
    return ModelProto.FromString(model)


def _write(model, model_prefix):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    table = "".join(f"{processor.id_to_piece(i)}\t{processor.get_score(i):g}\n" for i in range(processor.vocab_size()))
    files.write_bytes(f"{model_prefix}.vocab", table.encode())
    # The model file is written last, because its existence means that the vocabulary is complete.
    files.write_bytes(f"{model_prefix}.model", model)


def _check_symbols(symbols, model_prefix, separators):
    """Raises `UserError` if a symbol cannot be a piece or would span several words."""
    for number, symbol in enumerate(symbols):
        if not symbol or any(c in " \u2581\r\n" or ord(c) in separators for c in symbol):
            fault, expected = "contains a space or is empty", "symbols without spaces, such as <2de>"
        elif not is_symbol(symbol):
            fault, expected = "cannot be a piece", f"at most {LONGEST_SYMBOL} characters of text"
        elif symbol in symbols[:number]:
            fault, expected = "is given twice", "each symbol once"
        elif RESERVED.fullmatch(symbol):
            fault, expected = "is reserved", "a symbol that is not already in the vocabulary"
        else:
            continue
        raise UserError(
            f"vocabulary {os.path.basename(model_prefix)}: the user-defined symbol {symbol!r} {fault}. Expected "
            f"{expected}."
        )


def normalization_options(name, folder):
    """Returns SentencePiece's options for a normalization.

    The model file contains the rule, so serving also uses it.
    """
    if name != IDENTITY:
        return {"normalization_rule_name": name}
    return rule_options(folder, BLANKS)


def rule_options(folder, spaces, removed=()):
    """Returns SentencePiece's options for a rule that replaces some code points with spaces and removes others."""
    path = os.path.join(folder, "rule.tsv")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{code:X}\t20\n" for code in spaces)
        file.writelines(f"{code:X}\t\n" for code in removed)
    return {"normalization_rule_tsv": path}


def _without_traces(model):
    """Removes from a model's settings the input format and the path of the rule's temporary file."""
    proto = ModelProto.FromString(model)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    for field in ("input_format", "max_sentence_length"):
        proto.trainer_spec.ClearField(field)
    return proto.SerializeToString(deterministic=True)


@contextlib.contextmanager
def trainer_errors(vocab_size, model_prefix, sensible, added=0):
    """Context manager that turns SentencePiece's errors about the text and the vocabulary's size into `UserError`s.

    Args:
        vocab_size: the requested size.
        model_prefix: path of the vocabulary.
        sensible: the size to recommend if the requested size is too large.
        added: number of ids that the vocabulary has in addition to SentencePiece's ids.
    """
    name = os.path.basename(model_prefix)
    try:
        yield
    except RuntimeError as error:
        if match := re.search(r"too high.*<= (\d+)", str(error)):
            largest = int(match[1]) + added
            possible = min(sensible, largest)
            raise ImpossibleSize(
                f"vocabulary {name}: {vocab_size} pieces are too many for this corpus. With {largest}, every word "
                "would be one piece.",
                possible,
                f"Set {{setting}}={possible}, or use more text.",
            ) from None
        if match := re.search(r"required_chars. \d+ vs (\d+)", str(error)):
            least = int(match[1]) + added
            raise ImpossibleSize(
                f"vocabulary {name}: {vocab_size} pieces are too few. The bytes and the characters of this corpus "
                f"alone need {least}.",
                least,
                f"Set {{setting}} well above {least}.",
            ) from None
        if "sentences_.empty()" in str(error):
            raise UserError(f"vocabulary {name}: no text to learn from. Expected at least one line.") from None
        raise Failure(f"vocabulary {name}: SentencePiece failed: {first_line(error)}") from error
