"""XLNet in Hugging Face's folders: the same weights after a round trip, what its runs answer, and clear refusals."""

import logging

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.export import export_saved_model, formats
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from t2t_lite.extras.xlnet.xlnet import XLNet
from tests.export.served import served
from tests.extras.hugging_face.family_rows import WRITTEN, FamilyRow, families_are_as_published
from tests.extras.hugging_face.folders import config_of, configure, refuses_import
from tests.extras.hugging_face.in_and_out import assert_same_tensors, exported, in_and_out_twice, loaded
from tests.extras.hugging_face.published_weights import weights_are_as_published
from tests.extras.xlnet.xlnet_folders import CLASSES, LABELS, write_xlnet

test_weights_are_as_published = weights_are_as_published("xlnet")
test_its_configuration_is_as_published = families_are_as_published(
    [
        FamilyRow(  # the defaults are those of Transformers' XLNetConfig
            "xlnet", {"vocab_size": 53, "d_model": 24, "n_layer": 5, "n_head": 6, "d_inner": 88},
            {
                "vocab_size": 53, "hidden_size": 24, "num_layers": 5, "num_heads": 6, "filter_size": 88,
                "activation": "gelu", "norm_epsilon": 1e-12, "self_attention.clamp_length": 0,
            },
            {"dropout": 0.2, "layer_norm_eps": 1e-6, "ff_activation": "relu", "clamp_len": 7},
            {
                "dropout": 0.2, "attention_dropout": 0.2, "relu_dropout": 0.2, "self_attention.position_dropout": 0.2,
                "activation": "relu", "norm_epsilon": 1e-6, "self_attention.clamp_length": 7,
            },
            WRITTEN
            | {
                "d_head": 4, "attn_type": "bi", "summary_type": "last", "summary_use_proj": True,
                "summary_activation": "tanh", "summary_last_dropout": 0.2,
            },
            "LMHeadModel", {"hparams_set": "xlnet_base", "text_problem": "permutation_lm_own", "row_id": "last_id"},
        )
    ]
)  # fmt: skip


def test_layers_with_different_attention_are_refused():
    clamped = {"type": "relative_segments", "clamp_length": 4}
    different, same = (
        XLNet(20, hidden_size=8, filter_size=8, num_heads=2, num_layers=2, self_attention=[clamped, other])
        for other in ("relative_segments", clamped)
    )
    (reason,) = formats.obstacles("hugging_face", different)
    assert "expected relative_segments(clamp_length=4, " in reason
    assert not formats.obstacles("hugging_face", same)
    assert registry.family("xlnet").written(same.config, "XLNetModel", {})["clamp_len"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("class_name", CLASSES)
def test_in_and_out_again(tmp_path, class_name):
    """Weights, vocabulary and settings are the same, bit by bit; a second time as well."""
    folder, tensors = write_xlnet(tmp_path / "theirs", class_name, dropout=0.2, layer_norm_eps=1e-9, clamp_len=7)
    twice = class_name == "XLNetForSequenceClassification"
    if twice:
        in_and_out_twice(folder, tmp_path)
    else:
        exported(loaded(folder, tmp_path / "run"), tmp_path / "0")
    if "LMHead" not in class_name:  # of other heads there is none here
        tensors["transformer.mask_emb"] = np.zeros_like(tensors["transformer.mask_emb"])
    assert_same_tensors(tmp_path / str(int(twice)), tensors)
    assert config_of(folder).items() <= config_of(tmp_path / "0").items()
    for name in ("model.safetensors", "config.json", "tokenizer_config.json", "spiece.model") * twice:
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The Predictor of a language model."""
    folder = tmp_path_factory.mktemp("words")
    return loaded(write_xlnet(folder / "theirs", "XLNetLMHeadModel")[0], folder / "run")


@pytest.mark.long
def test_what_a_language_model_answers(words):
    """Candidates at masks, which see no other mask; features, whose first pooled one is the last position's."""
    assert words.problem.name == "permutation_lm_own"
    encoder = words.encoders["inputs"]
    assert words.model.config["last_id"] == encoder.pieces(range(encoder.vocab_size)).index("<cls>")
    (one,), (first, _) = words.fill_mask(["the <mask> in", "the <mask> <mask>"], top=encoder.vocab_size)
    for candidates in (one, first):
        assert sum(candidate.probability for candidate in candidates) == pytest.approx(1, abs=1e-4)
    rows = [words.read(text).rows[0] for text in ("the <mask> in", "the <mask> red")]
    assert [rows[0].index(words.task.mask[0]), rows[0][-1]] == [rows[1].index(words.task.mask[0]), 1]
    (states,), (last,) = words.features(["the cafe"]), words.features(["the cafe"], pooling="first")
    assert states.shape == (len(encoder.encode("the cafe")) + 2, 16)
    np.testing.assert_allclose(states[-1], last, atol=1e-6)


@pytest.mark.slow
def test_texts_are_cleaned_up(words):
    """As its tokenizer does, in the graph, too: quotation marks and accents, while capital letters stay."""
    encoder, text, same = words.encoders["inputs"], "``Cafe\u0301'' \uff11\u2461\u3000in", '"Cafe" 12 in'
    assert encoder.tf_encode([text]).to_list() == [encoder.encode(text)] == [encoder.encode(same)]
    assert encoder.encode("The") != encoder.encode("the")


@pytest.mark.long
def test_an_export_answers_as_python(words, tmp_path):
    path = export_saved_model(words, str(tmp_path / "1"))
    texts = ["the <mask> in", "<mask> red cafe <mask>"]
    answers = words.fill_mask(texts)
    outputs = served(path)("predict", {"inputs": [text.encode() for text in texts]})
    for row, masks in enumerate(answers):
        for at, candidates in enumerate(masks):
            assert [piece.decode() for piece in outputs["candidates"][row, at]] == [c.token for c in candidates]
            expected = [candidate.probability for candidate in candidates]
            np.testing.assert_allclose(outputs["probabilities"][row, at], expected, atol=1e-5)


@pytest.mark.slow
def test_classes_of_pairs_and_a_body_alone(tmp_path, caplog):
    folder, _ = write_xlnet(tmp_path / "classes", "XLNetForSequenceClassification")
    predictor = loaded(folder, tmp_path / "run", problem="classify_pair_own")
    one, other = predictor.predict([("the", "cafe"), ("the cafe", "the")])
    assert predictor.labels == LABELS and one.probabilities != other.probabilities
    folder, tensors = write_xlnet(tmp_path / "body", "XLNetModel", prefix=False)
    with caplog.at_level(logging.WARNING):
        model = loaded(folder, tmp_path / "body_run").model
    assert "has no head" in caplog.text
    np.testing.assert_array_equal(model.query, tensors["mask_emb"])
    np.testing.assert_array_equal(
        model.encoder.layers[1].self_attention.layer.segment_table, tensors["layer.1.rel_attn.seg_embed"]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "config, message",
    [
        ({"architectures": ["XLNetForQuestionAnswering"]}, "architectures=XLNetForQuestionAnswering…XLNetLMHead"),
        ({"attn_type": "uni"}, "attn_type=uni…bi"),
        ({"bi_data": True}, "bi_data=True…False"),
        ({"d_head": 8}, "d_head=8…4, d_model / n_head"),
        ({"summary_type": "mean"}, "summary_type=mean…last"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings=False…True"),
        ({"d_inner": 25}, "layer_1.weight…24 x 16…25 x 16"),
        ({"n_head": 2, "d_head": None}, "rel_attn.q…16 x 4 x 4…16 x 2 x 8"),
    ],
)
def test_what_no_model_here_has_is_refused(tmp_path, config, message):
    folder, _ = write_xlnet(tmp_path / "theirs", "XLNetLMHeadModel")
    configure(folder, **config)
    refuses_import(folder, tmp_path, message)


@pytest.mark.slow
def test_a_tensor_that_is_missing_or_has_no_place(tmp_path):
    folder, tensors = write_xlnet(tmp_path / "theirs", "XLNetLMHeadModel")
    path = f"{folder}/model.safetensors"
    write_tensors(path, tensors | {"transformer.extra": np.zeros(3, "float32")})
    refuses_import(folder, tmp_path, "model.safetensors: extra does not belong")
    write_tensors(path, {name: tensor for name, tensor in tensors.items() if not name.endswith("1.rel_attn.seg_embed")})
    refuses_import(folder, tmp_path, "layer.1.rel_attn.seg_embed…missing…2 x 4 x 4")
