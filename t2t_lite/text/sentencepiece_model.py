"""SentencePiece's model file as a protocol buffer, and what a model does to a text before it is cut into pieces.

Of sentencepiece_model.proto these are only the fields read or changed here; all others are preserved. The sentencepiece
package has such a module too, but its current versions work only with the newest protobuf, which Apache Beam does not
allow.
"""

import hashlib

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from t2t_lite.text.vocabulary import BLANK

_OPTIONAL, _REPEATED = "LABEL_OPTIONAL", "LABEL_REPEATED"

# message: [(name, number, type, label, default)]; the type may be one of these messages or enums
_MESSAGES = {
    "TrainerSpec": [
        ("model_type", 3, "ModelType", _OPTIONAL, "UNIGRAM"),
        ("vocab_size", 4, "INT32", _OPTIONAL, "8000"),
        ("input_format", 7, "STRING", _OPTIONAL, None),
        ("max_sentence_length", 18, "INT32", _OPTIONAL, "4192"),
        ("treat_whitespace_as_suffix", 24, "BOOL", _OPTIONAL, "false"),
        ("byte_fallback", 35, "BOOL", _OPTIONAL, "false"),
        ("unk_id", 40, "INT32", _OPTIONAL, "0"),
        ("bos_id", 41, "INT32", _OPTIONAL, "1"),
        ("eos_id", 42, "INT32", _OPTIONAL, "2"),
        ("pad_id", 43, "INT32", _OPTIONAL, "-1"),
        ("unk_piece", 45, "STRING", _OPTIONAL, "<unk>"),
        ("bos_piece", 46, "STRING", _OPTIONAL, "<s>"),
        ("eos_piece", 47, "STRING", _OPTIONAL, "</s>"),
        ("pad_piece", 48, "STRING", _OPTIONAL, "<pad>"),
    ],
    "NormalizerSpec": [
        ("precompiled_charsmap", 2, "BYTES", _OPTIONAL, None),
        ("add_dummy_prefix", 3, "BOOL", _OPTIONAL, "true"),
        ("remove_extra_whitespaces", 4, "BOOL", _OPTIONAL, "true"),
        ("escape_whitespaces", 5, "BOOL", _OPTIONAL, "true"),
        ("normalization_rule_tsv", 6, "STRING", _OPTIONAL, None),
    ],
    "ModelProto.SentencePiece": [
        ("piece", 1, "STRING", _OPTIONAL, None),
        ("score", 2, "FLOAT", _OPTIONAL, None),
        ("type", 3, "Type", _OPTIONAL, "NORMAL"),
    ],
    "ModelProto": [
        ("pieces", 1, "ModelProto.SentencePiece", _REPEATED, None),
        ("trainer_spec", 2, "TrainerSpec", _OPTIONAL, None),
        ("normalizer_spec", 3, "NormalizerSpec", _OPTIONAL, None),
    ],
}
_ENUMS = {
    "TrainerSpec": ("ModelType", {"UNIGRAM": 1, "BPE": 2, "WORD": 3, "CHAR": 4}),
    "ModelProto.SentencePiece": (
        "Type", {"NORMAL": 1, "UNKNOWN": 2, "CONTROL": 3, "USER_DEFINED": 4, "UNUSED": 5, "BYTE": 6}
    ),
}  # fmt: skip


def _make():
    """Returns the classes of the two messages that other modules use; the others are nested in them."""
    file = descriptor_pb2.FileDescriptorProto(name="t2t_lite_sentencepiece.proto", package="t2t_lite", syntax="proto2")
    messages = {}
    for name in sorted(_MESSAGES):  # outer messages first
        outer, _, inner = name.rpartition(".")
        messages[name] = messages[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=name)
    for name, message in messages.items():
        if name in _ENUMS:
            enum, values = _ENUMS[name]
            kind = message.enum_type.add(name=enum)
            for value, number in values.items():
                kind.value.add(name=value, number=number)
        for field, number, type_name, label, default in _MESSAGES[name]:
            added = message.field.add(name=field, number=number, label=label)
            if type_name in _MESSAGES:
                added.type, added.type_name = added.TYPE_MESSAGE, f".t2t_lite.{type_name}"
            elif name in _ENUMS and type_name == _ENUMS[name][0]:
                added.type, added.type_name = added.TYPE_ENUM, f".t2t_lite.{name}.{type_name}"
            else:
                added.type = getattr(added, f"TYPE_{type_name}")
            if default is not None:
                added.default_value = default
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return [message_factory.GetMessageClass(find(f"t2t_lite.{name}")) for name in ("ModelProto", "TrainerSpec")]


ModelProto, TrainerSpec = _make()


# SHA-256 of compiled rules: none ("identity"), and ours of `subwords.normalization_options`.
_RULES_OF_CHARACTERS = {
    hashlib.sha256(b"").hexdigest(),
    "b304547e497b78efb6a74008929eddfdba6529394057bf6c41a7d4150e4dc3ab",
}


def has_rule_of_characters(model):
    """Returns whether a model changes no characters, or control characters alone, as `subwords.IDENTITY` does."""
    rule = ModelProto.FromString(model).normalizer_spec.precompiled_charsmap
    return hashlib.sha256(rule).hexdigest() in _RULES_OF_CHARACTERS


def is_by_word(model):
    """Returns whether words can be encoded one by one, so that the ids of frequent words can be cached.

    This holds if no piece spans a space and the normalization acts on single characters, as in the models of
    `train_sentencepiece` without another normalization. It does not hold for unigram models, whose scores are summed
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


def has_symbols(model, symbols):
    """Returns whether a model has all of some user-defined symbols, each of which is always one piece."""
    proto = ModelProto.FromString(model)
    return {*symbols} <= {one.piece for one in proto.pieces if one.type == proto.SentencePiece.Type.USER_DEFINED}
