"""SentencePiece's model file as a protocol buffer, and what a model does to a text before it is cut into pieces.

Of sentencepiece_model.proto these are only the fields read or changed here; all others are preserved. The sentencepiece
package has such a module too, but its current versions work only with the newest protobuf, which Apache Beam does not
allow.
"""

import hashlib

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from t2t_lite.text.encoder_parts import BLANK

# message: its fields, each as type, name, number and default; the type may be one of these messages or enums, [] a list
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
