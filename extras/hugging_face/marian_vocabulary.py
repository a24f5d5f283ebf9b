"""Converts the vocabularies of Marian and CTranslate2, which list ids separately, to and from SentencePiece models.

Marian segments text with `source.spm` or `target.spm`, and takes the ids of the pieces from `vocab.json`; a piece
missing from that file is unknown. Our ids are those of the SentencePiece model, so the model is rewritten: padding is
0, end of sentence 1 and unknown 2, and all other pieces follow.
"""

import dataclasses
import re

import numpy as np

from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import UserError, shown
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID, SentencePieceEncoder

# A language code at the beginning of a text, as in multilingual models. It must be a single piece in our vocabulary.
LANGUAGE_CODE = re.compile(r">>.+<<")
_BLANK = "\u2581"
_LONGEST_PIECE = 512  # in characters. SentencePiece learns far shorter pieces, and cannot load one of 100,000


@dataclasses.dataclass(frozen=True)
class MarianVocabulary:
    """The vocabulary of the inputs or the targets, with our ids.

    Attributes:
        model: bytes of a SentencePiece model that segments text as Marian does.
        rows: int [ids], Marian's id for each of our ids, or Marian's id of the unknown piece.
        is_unknown: bool [ids], whether Marian lacks the piece. Such a piece can occur in inputs, but never in outputs.
        has_others: bool, whether `vocab.json` has entries that the SentencePiece model lacks.
    """

    model: bytes
    rows: np.ndarray
    is_unknown: np.ndarray
    has_others: bool


def renumbered(model, ids, special, size, path, with_others):
    """Renumbers a SentencePiece model for our ids, and returns the MarianVocabulary.

    Args:
        model: bytes of the `.spm` file.
        ids: {piece: id}, the contents of `vocab.json`.
        special: {"pad", "eos", "unk": Marian's id}.
        size: int, the number of Marian's ids, which is the number of rows in its embedding.
        path: path of the `.spm` file, for error messages.
        with_others: bool, whether to keep entries of `ids` that never occur in segmented text. Outputs need them.

    Raises:
        UserError: the file is not a SentencePiece model.
    """
    from t2t_lite.text.subwords import parse_sentencepiece

    proto = parse_sentencepiece(model, path)
    kind, spec = proto.SentencePiece.Type, proto.trainer_spec
    no_text = (kind.CONTROL, kind.UNKNOWN)
    text_pieces = {piece.piece: piece for piece in proto.pieces if piece.type not in no_text}
    lowest = min((piece.score for piece in text_pieces.values()), default=0.0) - 1
    names = {i: piece for piece, i in ids.items()}
    listed = [(i, names.get(i, f"<{i}>")) for i in range(size) if i not in special.values()]

    def make(name, score, type):
        return proto.SentencePiece(piece=name, score=score, type=type)

    listed_pieces, has_others = [], False
    for i, name in listed:
        if name in text_pieces:
            listed_pieces.append((make(name, text_pieces[name].score, text_pieces[name].type), i))
        elif LANGUAGE_CODE.fullmatch(name):  # comes after the space that SentencePiece puts before a text
            listed_pieces.append((make(_BLANK + name, 0.0, kind.USER_DEFINED), i))
        else:
            has_others = True
            if with_others:
                # The piece gets the lowest score, because BPE merges a piece before it checks whether the piece is
                # used.
                listed_pieces.append((make(name, lowest, kind.UNUSED), i))
    used_names = {piece.piece for piece, _ in listed_pieces}
    unknown = [
        (make(name, piece.score, piece.type), special["unk"])
        for name, piece in text_pieces.items()
        if name not in used_names
    ]
    names = {piece.piece for piece, _ in [*listed_pieces, *unknown]}
    heads = [("pad", "<pad>", kind.CONTROL), ("eos", "</s>", kind.CONTROL), ("unk", "<unk>", kind.UNKNOWN)]
    first = []
    for role, name, type in heads:
        while name in names:  # an ordinary piece already has this name
            name = f"<{name}>"
        setattr(spec, f"{role}_piece", name)
        first.append((make(name, 0.0, type), special[role]))
    pieces = [*first, *listed_pieces, *unknown]
    spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id = PAD_ID, EOS_ID, UNK_ID, -1
    spec.vocab_size = len(pieces)
    del proto.pieces[:]
    proto.pieces.extend(piece for piece, _ in pieces)
    return MarianVocabulary(
        # If the file already has our ids, its bytes are kept, because protocol buffers can encode the same content in
        # several ways.
        model=model
        if _meaning(parse_sentencepiece(model, path)) == _meaning(proto)
        else proto.SerializeToString(deterministic=True),
        rows=np.array([i for _, i in pieces]),
        is_unknown=np.arange(len(pieces)) >= len(pieces) - len(unknown),
        has_others=has_others,
    )


def _meaning(proto):
    """Returns the parts of a SentencePiece model that `renumbered` changes."""
    spec = proto.trainer_spec
    ids = [spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id, spec.vocab_size]
    names = [spec.pad_piece, spec.eos_piece, spec.unk_piece]
    return ids, names, [(piece.piece, piece.score, piece.type) for piece in proto.pieces]


def check_ids(ids, size, path):
    """Raises `UserError` unless `ids` is {piece: id} with distinct ids below `size`."""
    good = all(0 <= i < size for i in ids.values())
    if not good or len(set(ids.values())) != len(ids) or "" in ids:
        raise UserError(
            f"{path}: the ids are invalid. Expected a different id for each piece, from 0 to {size - 1} according to "
            "config.json. Copy the model's files again."
        )
    for piece in ids:
        if len(piece) > _LONGEST_PIECE or "\0" in piece or valid_unicode(piece) != piece:
            raise UserError(
                f"{path}: {shown(piece)}: not a valid piece. Expected text of up to {_LONGEST_PIECE} characters. "
                "Copy the model's files again."
            )


def sentencepiece_models(encoders):
    """Returns {"source.spm": bytes, "target.spm": bytes}, or {} if a vocabulary is not a SentencePiece model."""
    if not all(isinstance(encoder, SentencePieceEncoder) for encoder in encoders.values()):
        return {}
    inputs, targets = encoders["inputs"], encoders["targets"]
    # The importer shares the embeddings of both sides if the two models are equal.
    is_shared = inputs.fingerprint == targets.fingerprint
    return {"source.spm": inputs.model, "target.spm": inputs.model if is_shared else targets.model}


def unique_pieces(encoder):
    """Returns the list of a vocabulary's pieces; a special piece is renamed if a piece of text has the same name."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    for i in (PAD_ID, EOS_ID):
        while pieces.count(pieces[i]) > 1:
            pieces[i] = f"<{pieces[i]}>"
    return pieces
