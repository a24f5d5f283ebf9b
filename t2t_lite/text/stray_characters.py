"""Removes invisible characters and replaces unusual spaces in input texts if the vocabulary does not contain them.

Text from web pages and word processors has no-break spaces, soft hyphens, byte order marks and zero-width spaces. A
vocabulary without normalization spells such characters with bytes that the model has hardly ever seen, which spoils the
whole output. Characters that occur in a piece, such as French no-break spaces or Persian non-joiners, were learned, so
they are kept.
"""

import functools
import io
import tempfile

from t2t_lite.text import sentencepiece_model, subwords
from t2t_lite.text.encoder_parts import WordCache
from t2t_lite.text.vocabulary import SentencePieceEncoder

# Unicode's spaces (category Zs), which are replaced with U+0020.
SPACES = [0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000]
# The characters to remove: Unicode's Default_Ignorable_Code_Point, except the Hangul fillers, which have a width.
INVISIBLE = [
    0x00AD, 0x034F, 0x061C, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F),
    *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF, *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE01F0),
]  # fmt: skip


def reading_plain(encoder):
    """Returns an encoder that encodes a text with stray characters as if it did not contain them.

    A space that occurs in no piece is read as U+0020, and an invisible character that occurs in no piece is dropped.
    Texts without such characters get the same ids as before. The model's own normalization is extended, so ids and
    offsets are the same in Python and in a graph. The new encoder's `fingerprint` and `path` are still those of the
    vocabulary's file.

    Args:
        encoder: any encoder. It is returned unchanged if it is not a SentencePiece encoder, or if its publisher
            defined a custom normalization rule.
    """
    if type(encoder) is SentencePieceEncoder and sentencepiece_model.has_rule_of_characters(encoder.model):
        return _PlainReader(encoder)
    return encoder


class _PlainReader(SentencePieceEncoder):
    """See `reading_plain`."""

    def __init__(self, encoder):
        import sentencepiece

        vars(self).update(vars(encoder))
        self.fingerprint = encoder.fingerprint
        self.is_by_word = encoder.is_by_word  # keeps its value, since characters are still normalized one by one
        self.model = _with_rule(self.model)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        self._words = WordCache(self._processor.EncodeAsIds)


def _with_rule(model):
    """Extends a SentencePiece model's rule to the stray characters that occur in no piece; returns the model's bytes.

    If the model has no rule, no rule for control characters is added.
    """
    proto = sentencepiece_model.ModelProto.FromString(model)
    known = {*"".join(piece.piece for piece in proto.pieces)}
    spaces, invisible = ([code for code in codes if chr(code) not in known] for codes in (SPACES, INVISIBLE))
    controls = subwords.BLANKS if proto.normalizer_spec.precompiled_charsmap else []
    proto.normalizer_spec.precompiled_charsmap = _compiled((*controls, *spaces), tuple(invisible))
    return proto.SerializeToString(deterministic=True)


@functools.cache
def _compiled(spaces, removed):
    """Compiles a SentencePiece rule that replaces some characters with spaces and removes others; returns its bytes."""
    import sentencepiece

    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(  # SentencePiece compiles rules only in training; this text is short
            sentence_iterator=iter(["a"]),
            model_writer=model,
            model_type="char",
            hard_vocab_limit=False,
            minloglevel=2,
            **subwords.rule_options(folder, spaces, removed),
        )
    return sentencepiece_model.ModelProto.FromString(model.getvalue()).normalizer_spec.precompiled_charsmap
