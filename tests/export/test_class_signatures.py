"""The export of a model of a user's folder, a classifier, called as a server does."""
# Nearest tests of: t2t_lite/export/encoder_signatures.py

import pathlib

import keras
import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite import registry
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.errors import UserError
from t2t_lite.export import export_saved_model, formats
from t2t_lite.registry import import_usr_dir
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import SentencePieceEncoder
from tests.decoding.runs import SENTENCES
from tests.examples.commands import AGENT_CLASSIFIER as FOLDER
from tests.export.served import HOSTILE, answers_here

pytestmark = pytest.mark.slow

_LONGEST = 24
ROWS = [b"the red house.", b"", b"   ", b"a green tree is old", b"is " * 200, *HOSTILE]


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    """With random weights, which are large, so that probabilities differ."""
    import_usr_dir(str(FOLDER))
    problem, made = registry.problem("sentence_agent"), str(tmp_path_factory.mktemp("vocab") / "vocab")
    train_sentencepiece(SENTENCES, made, 330)
    inputs, labels = SentencePieceEncoder(f"{made}.model"), problem.class_labels(None)
    encoders = {"inputs": inputs, "targets": ClassLabelEncoder(labels)}
    keras.utils.set_random_seed(2)
    hparams = registry.hparams("transformer_tiny").parse(
        "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2"
    )
    model = registry.model("agent_classifier").from_hparams(hparams, inputs.vocab_size, 1 + len(labels))
    predictor = Predictor(model, encoders, problem)
    predictor.predict(["a"])
    for weight in model.trainable_weights:
        weight.assign(weight * 2)
    return predictor


@pytest.fixture(scope="module")
def exported(predictor, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("export"))
    return export_saved_model(predictor, folder, max_input_length=_LONGEST, license="MIT")


@pytest.fixture(scope="module")
def answers(exported):
    return answers_here(exported, {"together": ("serving_default", {"inputs": ROWS}, {})})["together"]


def test_it_answers_as_predictor_does(predictor, answers):
    """To any bytes; texts of more ids than the export reads apart."""
    found = answers
    assert found["truncated"][:5] == [False] * 4 + [True] and len({*found["labels"]}) == 2
    texts = [tf.strings.unicode_transcode(row, "UTF-8", "UTF-8").numpy().decode() for row in ROWS]
    expected = predictor.predict(texts)
    compared = 0
    for at, prediction in enumerate(expected):
        if found["truncated"][at]:
            continue
        compared += 1
        assert found["labels"][at] == prediction.label
        assert found["probabilities"][at] == pytest.approx(list(prediction.probabilities.values()), abs=1e-5)
    assert compared > 12


def test_a_long_text_is_read_up_to_the_exports_length(predictor, answers):
    cut = predictor.encoders["inputs"].decode(predictor.encoders["inputs"].encode("is " * 200)[: _LONGEST - 1])
    (expected,) = predictor.predict([cut])
    assert answers["probabilities"][4] == pytest.approx(list(expected.probabilities.values()), abs=1e-5)


def test_its_card(exported):
    pytest.importorskip("t2t_lite.extras.model_card")
    text = pathlib.Path(exported, "README.md").read_text()
    for words in ('"text-classification"', "| classes | person, animal |", "[batch, 2]", '["labels"]', "MIT"):
        assert words in text, words
    assert "BLEU" not in text


@pytest.mark.parametrize("name", [name for name in formats.names() if name != "saved_model"])
def test_other_formats_say_why_not(predictor, tmp_path, name):
    export = getattr(t2t_lite.export, f"export_{name}")
    message = "^(Hugging Face's|CTranslate2).*: it is of class AgentClassifier.* model=(xlnet or )?transformer"
    with pytest.raises(UserError, match=message) as caught:
        export(predictor, str(tmp_path / "x"))
    assert "\n" not in str(caught.value) and not (tmp_path / "x").exists()
