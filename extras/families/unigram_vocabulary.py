"""Converts the SentencePiece vocabularies of ALBERT, XLNet and XLM-RoBERTa to our ids and back.

For ALBERT and XLNet, Transformers replaces quotation marks, strips accents and lowercases letters before it runs
SentencePiece. Here this clean-up is part of the SentencePiece model's rules, so that exported graphs also do the
clean-up. XLM-RoBERTa's file lacks the tokens <pad> and <mask> of the model, and its ids differ from the model's,
because fairseq puts four other tokens first.
"""

import base64
import functools
import os
import unicodedata
from typing import NamedTuple

import numpy as np

from t2t_lite import files, registry
from t2t_lite.errors import UserError, shown
from t2t_lite.extras.families.charsmaps import check_words, clean_up, compiled, read_rules
from t2t_lite.extras.hugging_face.published_vocabulary import Published
from t2t_lite.files.safe_json import check_schema
from t2t_lite.text.published import published_encoder
from t2t_lite.text.sentencepiece_model import ModelProto
from t2t_lite.text.subwords import parse_sentencepiece, with_usual_ids
from t2t_lite.text.vocabulary import EOS_ID, SentencePieceEncoder

_QUOTES = {"``": '"', "''": '"'}
_SCHEMA = {
    "model": {"vocab": [list], "unk_id": int},
    "added_tokens": [{"id": int, "special": bool}],
    "normalizer": {"normalizers?": list},
}
_RULES = [{"type": str}]
_BORDER = "\U000f0000"  # private-use character, which no rule contains
_CHUNK = 2**14


class Unigram(NamedTuple):
    """The kind of SentencePiece vocabulary that a model family uses.

    The module `published_vocabulary` describes how such a kind is registered.

    Attributes:
        name: str, the name of the family with an article, for messages.
        order: tuple of str, the first pieces, in the tokenizer's order. Pieces without a role may be missing.
        last: tuple of str, the last pieces, in the tokenizer's order.
        in_file: tuple of str, the first pieces in the file if it lacks some pieces of `order` and `last`, else ().
        file: str, the name of the vocabulary file.
        pad, unknown, first, end, mask: str, the special tokens. `first` represents a whole row, and `end` ends each
            text.
        lower: bool, whether texts are lowercased by default.
        is_cleaned: bool, whether the tokenizer cleans up texts before it runs SentencePiece.
        tokenizer: {name: value}, fields of `tokenizer_config.json` in addition to the tokens.
        ends: {role: piece} for SentencePiece's own roles "bos" and "eos".
    """

    name: str
    order: tuple
    first: str
    end: str
    mask: str
    lower: bool
    tokenizer: dict
    pad: str = "<pad>"
    unknown: str = "<unk>"
    ends: dict = {}  # noqa: RUF012
    last: tuple = ()
    in_file: tuple = ()
    file: str = "spiece.model"
    is_cleaned: bool = True

    type = "Unigram"
    settings = staticmethod(clean_up)

    @property
    def special(self):
        """The special tokens that a vocabulary must have, in the tokenizer's order."""
        roles = (self.pad, self.unknown, self.first, self.end, self.mask)
        return tuple(token for token in (*self.order, *self.last) if token in roles)

    def is_of(self, encoder):
        """Returns whether a TextEncoder is a SentencePiece vocabulary of this family."""
        is_sentencepiece = isinstance(encoder, SentencePieceEncoder)
        return is_sentencepiece and family_of(encoder.pieces(range(encoder.vocab_size))) is self

    @staticmethod
    def is_in(folder, tokenizer):
        """Returns whether a folder contains a vocabulary of any family in this module."""
        return tokenizer["model"]["type"] == Unigram.type if tokenizer else bool(_models(folder))

    @staticmethod
    def read(folder, work_dir, tokenizer, settings):
        """Writes a folder's vocabulary with our ids to `work_dir`, and returns its Published. Raises `UserError`."""
        path = next(iter(_models(folder)), os.path.join(folder, "tokenizer.json"))
        if path.endswith(".json"):
            model = of_tokenizer_json(tokenizer, path)
        else:
            model = completed(files.read_bytes(path), path)
            # of the two files, Transformers reads only tokenizer.json
            if tokenizer is not None:
                _check_same(model, path, tokenizer, os.path.join(folder, "tokenizer.json"))
        pieces = {piece.piece for piece in parse_sentencepiece(model, path).pieces}
        added = [
            facts["content"] for facts in settings[published_encoder.KEY].values() if facts["content"] not in pieces
        ]
        if added:
            raise UserError(f"{path}: the added token {shown(added[0])} is not a piece. Expected only known tokens.")
        model, ids = adopted(model, path, settings.get("do_lower_case"), settings.get("keep_accents", False))
        ours = os.path.join(work_dir, os.path.basename(path).replace(".json", ".model"))
        files.write_bytes(ours, model)
        encoder = SentencePieceEncoder(ours)
        vocabulary = family_of(encoder.pieces(range(encoder.vocab_size))).published(encoder)._replace(ids=ids)
        if vocabulary.reads_two_ends and not settings.get("add_prefix_space", True):
            raise UserError(f"{path}: add_prefix_space=false. Expected true, because texts get a leading space here.")
        return vocabulary

    def published(self, encoder):
        """Returns the Published of a SentencePieceEncoder.

        Raises `UserError` if the encoder's model was not made by `adopted`.
        """
        proto = parse_sentencepiece(files.read_bytes(encoder.path), encoder.path)
        spec, pieces = proto.trainer_spec, [piece.piece for piece in proto.pieces]
        missing = [token for token in self.special if token not in pieces]
        if missing or spec.model_type != spec.UNIGRAM or pieces[EOS_ID] != self.end:
            raise UserError(
                f"{encoder.path}: {f'lacks {missing[0]}' if missing else f'is not {self.name} vocabulary'}. Expected "
                "an imported SentencePiece vocabulary, WordPiece or byte-level BPE."
            )
        first, last = (
            [pieces.index(token) for token in tokens if token in pieces] for tokens in (self.order, self.last)
        )
        middle = [i for i in range(len(pieces)) if i not in (*first, *last)]
        order = [*first, *middle, *last]
        in_file = [*map(pieces.index, self.in_file), *middle] if self.in_file else order
        place = {pieces[i]: number for number, i in enumerate(in_file)}
        reordered = [proto.SentencePiece.FromString(proto.pieces[i].SerializeToString()) for i in in_file]
        del proto.pieces[:]
        proto.pieces.extend(reordered)
        spec.pad_id, spec.unk_id, spec.eos_id, spec.bos_id = place.get(self.pad, -1), place[self.unknown], -1, -1
        spec.vocab_size = len(in_file)
        for role, piece in self.ends.items():
            if piece in pieces:
                setattr(spec, f"{role}_piece", piece)
                setattr(spec, f"{role}_id", place[piece])
        return Published(
            encoder.path,
            ids=np.argsort(order).tolist(),
            special_ids={token: pieces.index(token) for token in self.special},
            contents={self.file: proto.SerializeToString(deterministic=True)},
            tokenizer=self.tokenizer | {"pad_token": self.pad, "sep_token": self.end, "unk_token": self.unknown},
        )


_CLEANED = {"do_lower_case": False, "keep_accents": True}  # no clean-up, because the model's rules include it
ALBERT = Unigram(
    "an ALBERT", ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"), first="[CLS]", end="[SEP]", mask="[MASK]", lower=True,
    tokenizer={"tokenizer_class": "AlbertTokenizer", **_CLEANED, "bos_token": "[CLS]", "eos_token": "[SEP]"},
)  # fmt: skip
XLNET = Unigram(
    "an XLNet", ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"),
    first="<cls>", end="<sep>", mask="<mask>", lower=False,
    tokenizer={"tokenizer_class": "XLNetTokenizer", **_CLEANED}, ends={"bos": "<s>", "eos": "</s>"},
)  # fmt: skip
XLM_ROBERTA = Unigram(
    "an XLM-RoBERTa", ("<s>", "<pad>", "</s>", "<unk>"), first="<s>", end="</s>", mask="<mask>", lower=False,
    tokenizer={"tokenizer_class": "XLMRobertaTokenizer", "bos_token": "<s>", "eos_token": "</s>"},
    ends={"bos": "<s>", "eos": "</s>"}, last=("<mask>",), in_file=("<unk>", "<s>", "</s>"),
    file="sentencepiece.bpe.model", is_cleaned=False,
)  # fmt: skip
FILES = tuple(dict.fromkeys(family.file for family in (ALBERT, XLNET, XLM_ROBERTA)))


@registry.register_vocabulary("albert")
def albert():
    """Returns the Unigram of ALBERT."""
    return ALBERT


@registry.register_vocabulary("xlnet")
def xlnet():
    """Returns the Unigram of XLNet."""
    return XLNET


@registry.register_vocabulary("xlm-roberta")
def xlm_roberta():
    """Returns the Unigram of XLM-RoBERTa."""
    return XLM_ROBERTA


def _models(folder):
    return [path for name in FILES if files.exists(path := os.path.join(folder, name))]


def family_of(pieces):
    """Returns the Unigram whose first token is among the pieces, or ALBERT's if there is none."""
    families = (XLNET, ALBERT, XLM_ROBERTA)  # in this order, because each of these vocabularies may contain <s>
    return next((family for family in families if family.first in pieces), ALBERT)


def completed(model, path):
    """Adds the pieces of the tokenizer that a published SentencePiece model lacks. Returns the model's bytes.

    Args:
        model: bytes of the file.
        path: str, the file's path, whose name determines the family.

    Raises:
        UserError: the file is not a SentencePiece model of the family.
    """
    family = XLM_ROBERTA
    if os.path.basename(path) != family.file:
        return model
    proto = parse_sentencepiece(model, path)
    names = [piece.piece for piece in proto.pieces]
    count = len(family.in_file)
    if tuple(names[:count]) != family.in_file or {*family.order, *family.last} & {*names[count:]}:
        raise UserError(
            f"{path}: the first of {len(names):,} pieces are {' '.join(names[:count])}. Expected "
            f"{' '.join(family.in_file)}, and no other special token of {family.name}."
        )
    kind, unknown = proto.SentencePiece.Type, family.unknown
    pieces = [
        proto.SentencePiece(piece=name, score=0, type=kind.UNKNOWN if name == unknown else kind.CONTROL)
        for name in (*family.order, *family.last)
    ]
    middle = [proto.SentencePiece.FromString(piece.SerializeToString()) for piece in proto.pieces[count:]]
    del proto.pieces[:]
    proto.pieces.extend([*pieces[: len(family.order)], *middle, *pieces[len(family.order) :]])
    return proto.SerializeToString(deterministic=True)


def _check_same(model, path, tokenizer, tokenizer_path):
    """Raises `UserError` if a `tokenizer.json` and a SentencePiece model have different pieces."""
    other = of_tokenizer_json(tokenizer, tokenizer_path)
    ours, theirs = (parse_sentencepiece(one, path).pieces for one in (model, other))
    if [piece.piece for piece in ours] != [piece.piece for piece in theirs]:
        raise UserError(
            f"{path}: the pieces differ from those in {tokenizer_path}. Copy the model's files again, or remove the "
            "file that does not belong to the model."
        )


def adopted(model, path, lower, keep_accents):
    """Rewrites a SentencePiece model with our ids; returns (its bytes, list of the published id for each of our ids).

    Args:
        model: bytes of the published model.
        path: str, path of the file, for error messages.
        lower, keep_accents: bool, the tokenizer's `do_lower_case` and `keep_accents`. If `lower` is None, the family's
            default is used.

    Raises:
        UserError: the file is not a SentencePiece model with the family's special tokens, or its rules are damaged.
    """
    proto = parse_sentencepiece(model, path)
    control = {piece.piece for piece in proto.pieces if piece.type == proto.SentencePiece.CONTROL}
    family = family_of(control)
    if missing := [token for token in (family.pad, family.first, family.end) if token not in control]:
        raise UserError(f"{path}: the special token {missing[0]} is missing. Expected the vocabulary of {family.name}.")
    lower = family.lower if lower is None else lower
    theirs = {piece.piece: i for i, piece in enumerate(proto.pieces)}
    proto.trainer_spec.pad_piece, proto.trainer_spec.eos_piece = family.pad, family.end
    if not family.is_cleaned:
        for name in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"):
            setattr(proto.normalizer_spec, name, True)  # the tokenizer always splits at spaces
    else:
        _add_clean_up(proto, path, lower, keep_accents)
    rewritten = with_usual_ids(proto.SerializeToString(deterministic=True), path)
    return rewritten, [theirs[piece.piece] for piece in parse_sentencepiece(rewritten, path).pieces]


def of_tokenizer_json(tokenizer, path):
    """Returns the bytes of the SentencePiece model that is equivalent to a Unigram `tokenizer.json`.

    Args:
        tokenizer: dict, the contents of the file.
        path: str, path of the file, for error messages.

    Raises:
        UserError: the file is incomplete or invalid.
    """
    check_schema(tokenizer, _SCHEMA, path)
    proto = ModelProto()
    kind, spec, vocab = ModelProto.SentencePiece, proto.trainer_spec, tokenizer["model"]["vocab"]
    special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    if not 0 <= (unknown := tokenizer["model"]["unk_id"]) < len(vocab):
        raise UserError(f"{path}: unk_id={shown(unknown)}: expected the id of a piece.")
    for i, pair in enumerate(vocab):
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is str and type(pair[1]) in (int, float)):
            raise UserError(f"{path}: entry {i} of the vocabulary: expected [piece, score].")
        piece_type = kind.UNKNOWN if i == unknown else kind.CONTROL if i in special else kind.NORMAL
        try:
            proto.pieces.add(piece=pair[0], score=float(pair[1]), type=piece_type)
        except (ValueError, OverflowError):  # an unpaired surrogate, or a huge number
            raise UserError(
                f"{path}: entry {i} of the vocabulary: {shown(pair)} is not a [piece, score] pair."
            ) from None
    spec.model_type, spec.vocab_size, spec.unk_id = spec.UNIGRAM, len(vocab), unknown
    spec.bos_id = spec.eos_id = spec.pad_id = -1
    spec.unk_piece = vocab[unknown][0]
    rules = tokenizer["normalizer"].get("normalizers", [tokenizer["normalizer"]])
    check_schema(rules, _RULES, f"{path}: 'normalizer'")
    family = family_of([piece.piece for piece in proto.pieces if piece.type == kind.CONTROL])
    check_words(tokenizer, rules, path, family.is_cleaned)
    rules = [rule for rule in rules if rule["type"] == "Precompiled"]
    try:
        charsmap = base64.b64decode(rules[0].get("precompiled_charsmap", ""), validate=True) if rules else b""
    except (ValueError, TypeError):
        raise UserError(f"{path}: precompiled_charsmap is not base64. Copy the file again.") from None
    proto.normalizer_spec.precompiled_charsmap = charsmap
    return proto.SerializeToString(deterministic=True)


@functools.cache
def _characters():
    """Returns all characters that the clean-up may change."""
    return [chr(code) for code in (*range(1, 0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE0200))]


def _add_clean_up(proto, path, lower, keep_accents):
    """Adds the clean-up to the model's normalization rules. Raises `UserError` if the rules are damaged."""
    spec = proto.normalizer_spec
    spec.remove_extra_whitespaces = True
    try:
        own_rules = read_rules(spec.precompiled_charsmap) if keep_accents else {}
    except (ValueError, IndexError):
        raise UserError(f"{path}: the normalization rules are damaged. Copy the file again.") from None
    rules = _with_accents(own_rules, lower) if keep_accents else _without_accents(proto, lower)
    rules |= {c: " " for c in _characters() if c.isspace()} | _QUOTES
    rules = {text: result for text, result in rules.items() if len(text) > 1 or text != result}
    if rules != own_rules:
        spec.precompiled_charsmap = compiled(rules)


def _without_accents(proto, lower):
    """Returns {text: replacement} for the clean-up that strips accents, combined with the model's rules.

    The model's rules for sequences of characters are dropped: except for Hangul, such rules add an accent to a letter.
    """
    import sentencepiece

    plain = type(proto).FromString(proto.SerializeToString())
    for name in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"):
        setattr(plain.normalizer_spec, name, False)
    normalizer = sentencepiece.SentencePieceProcessor(model_proto=plain.SerializeToString())
    rules = {}
    characters = _characters()
    for start in range(0, len(characters), _CHUNK):
        chunk = characters[start : start + _CHUNK]
        cleaned = normalizer.normalize(_BORDER.join(_clean(character, lower) for character in chunk)).split(_BORDER)
        rules.update(zip(chunk, cleaned, strict=True))
    return {text: "".join(" " if c.isspace() else c for c in result) for text, result in rules.items()}


def _clean(character, lower):
    parts = [part for part in unicodedata.normalize("NFKD", character) if unicodedata.category(part)[0] != "M"]
    return "".join(part.lower() if lower else part for part in parts)


def _with_accents(own_rules, lower):
    """Returns {text: replacement} for the clean-up that keeps accents, combined with the model's rules."""
    if not lower:
        return own_rules
    texts = {*own_rules, *(c for c in _characters() if c.lower() != c)}
    texts |= {text.upper() for text in own_rules if _lowered(text.upper()) == text}  # J + caron is like j + caron
    lowered = {text: _lowered(text) for text in texts}
    return {text: own_rules.get(small, "".join(own_rules.get(c, c) for c in small)) for text, small in lowered.items()}


def _lowered(text):
    return "".join(map(str.lower, text))  # letter by letter, so that a sigma at the end of a word has no special form
