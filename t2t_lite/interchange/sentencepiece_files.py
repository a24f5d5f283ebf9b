"""The SentencePiece vocabularies of a Transformer, in the files of CTranslate2 and Marian."""

from t2t_lite import files
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, SentencePieceEncoder


def sentencepiece_models(encoders):
    """Returns {"source.spm": bytes, "target.spm": bytes}; {} for vocabularies that are not SentencePiece's."""
    if not all(isinstance(encoder, SentencePieceEncoder) for encoder in encoders.values()):
        return {}
    return {
        name: files.read_bytes(encoders[side].path)
        for name, side in (("source.spm", "inputs"), ("target.spm", "targets"))
    }


def unique_pieces(encoder):
    """Returns the pieces of a vocabulary by id; special ones are renamed if a piece of text has the same name."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    for i in (PAD_ID, EOS_ID):
        while pieces.count(pieces[i]) > 1:
            pieces[i] = f"<{pieces[i]}>"
    return pieces
