"""Shared by the formats of other toolkits: a single Transformer with its SentencePiece models."""

import logging

from t2t_lite import files
from t2t_lite.export import formats
from t2t_lite.export.model_card import own_texts
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, SentencePieceEncoder

_LOGGER = logging.getLogger("t2t_lite")


def check(translator, format_name):
    """Raises `UserError` unless a format supports a Translator's model; warns if the problem changes texts.

    Args:
        translator: Translator.
        format_name: str, one of `formats.FORMATS`.
    """
    formats.check(format_name, translator.model, translator.encoders)
    problem = translator.problem
    if changed := own_texts(problem):
        _LOGGER.warning(
            f"{problem.full_name}: {' and '.join(changed)} of this problem are Python code, which "
            f"{formats.label(format_name, translator.model)} does not run: texts go in and come out as the vocabulary "
            "has them."
        )


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
