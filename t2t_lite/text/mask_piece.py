"""The piece of a vocabulary that masks others, and how texts with it are encoded."""

from t2t_lite.errors import UserError

_MASKS = ("[MASK]", "<mask>")  # BERT's, and RoBERTa's and XLNet's
_SEPARATE = "\u2581"  # SentencePiece's blank


def mask_of(encoder):
    """Returns (id, piece) of a vocabulary's mask. Raises `UserError` if it has none."""
    return mask_in(encoder.pieces(range(encoder.vocab_size)))


def mask_in(pieces):
    """As `mask_of`, given all pieces of a vocabulary."""
    masks = [(pieces.index(mask), mask) for mask in _MASKS if mask in pieces]
    if not masks:
        raise UserError(
            f"The vocabulary has no {_MASKS[0]}, nor {_MASKS[1]}, which masked ids are shown as. Expected one that "
            "masked_lm_own has learned, or a published encoder's."
        )
    return masks[0]


def blank_before_mask(encoder):
    """Returns the id of a bare space, which belongs to a mask after it, if `encode` knows the mask; else None.

    A SentencePiece vocabulary that was learned here encodes a text with masks like any other. If a published one
    belongs to a tokenizer with special tokens, the parts between the masks are encoded separately, as by that
    tokenizer: ALBERT's and XLNet's each begin with a space.
    """
    pieces = encoder.pieces(range(encoder.vocab_size))
    mask_id, mask = mask_in(pieces)
    if {"[CLS]", "<cls>"} & {*pieces} or _SEPARATE not in pieces or mask_id not in encoder.encode(mask):
        return None
    return pieces.index(_SEPARATE)
