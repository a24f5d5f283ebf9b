"""What a SentencePiece model does to a text before it is cut into pieces, from the bytes of its file."""

import hashlib

BLANK = "\u2581"  # SentencePiece's symbol for a space
# SHA-256 of compiled rules: none ("identity"), and ours of `subwords.normalization_options`.
_RULES_OF_CHARACTERS = {
    hashlib.sha256(b"").hexdigest(),
    "b304547e497b78efb6a74008929eddfdba6529394057bf6c41a7d4150e4dc3ab",
}


def has_rule_of_characters(model):
    """Returns whether a model changes no characters, or control characters alone, as `subwords.IDENTITY` does."""
    rule = _parsed(model).normalizer_spec.precompiled_charsmap
    return hashlib.sha256(rule).hexdigest() in _RULES_OF_CHARACTERS


def is_by_word(model):
    """Returns whether words can be encoded one by one, so that the ids of frequent words can be cached.

    This holds if no piece spans a space and the normalization acts on single characters, as in the models of
    `train_sentencepiece` without another normalization. It does not hold for unigram models, whose scores are summed
    over the whole text, so that rounding decides between equally good segmentations.
    """
    proto = _parsed(model)
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


def has_symbols(model, symbols):
    """Returns whether a model has all of some user-defined symbols, each of which is always one piece."""
    proto = _parsed(model)
    return {*symbols} <= {one.piece for one in proto.pieces if one.type == proto.SentencePiece.Type.USER_DEFINED}


def _parsed(model):
    from t2t_lite.text import sentencepiece_proto

    return sentencepiece_proto.ModelProto.FromString(model)
