import io

import pytest
import sentencepiece

from t2t_lite.text import sentencepiece_model


@pytest.fixture
def theirs():
    """SentencePiece's own module, where the installed protobuf is new enough for it."""
    try:
        from sentencepiece import sentencepiece_model_pb2
    except Exception as error:  # protobuf's VersionError
        pytest.skip(str(error))
    return sentencepiece_model_pb2


@pytest.fixture(scope="module")
def model():
    model, lines = io.BytesIO(), [f"{word} green houses {number}" for word in "abcdefgh" for number in range(40)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=300,
        model_type="bpe",
        byte_fallback=True,
        user_defined_symbols=["<2de>"],
        minloglevel=2,
    )
    return model.getvalue()


def test_fields_are_sentencepieces(theirs):
    def check(ours, expected):
        for field in ours.fields:
            same = expected.fields_by_name[field.name]
            assert (field.number, field.type) == (same.number, same.type), field.name
            if field.message_type:
                check(field.message_type, same.message_type)
            else:
                assert field.default_value == same.default_value, field.name
            if field.enum_type:
                for value in field.enum_type.values:
                    assert value.number == same.enum_type.values_by_name[value.name].number

    check(sentencepiece_model.ModelProto.DESCRIPTOR, theirs.ModelProto.DESCRIPTOR)


def test_nothing_is_lost(theirs, model):
    again = sentencepiece_model.ModelProto.FromString(model).SerializeToString()
    assert theirs.ModelProto.FromString(again) == theirs.ModelProto.FromString(model)


def test_what_is_read(model):
    proto = sentencepiece_model.ModelProto.FromString(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert [piece.piece for piece in proto.pieces] == [processor.id_to_piece(i) for i in range(300)]
    assert proto.trainer_spec.model_type == sentencepiece_model.TrainerSpec.BPE
    assert sum(piece.type == piece.BYTE for piece in proto.pieces) == 256
    assert [piece.piece for piece in proto.pieces if piece.type == piece.USER_DEFINED] == ["<2de>"]
    again = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    assert again.encode("green houses <2de> é") == processor.encode("green houses <2de> é")
