"""Several models behind one server: which one answers, what is said of each, and files that change underneath."""

# Nearest tests of: extras/insights/answers.py

import shutil

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.extras.insights.app import create_app
from t2t_lite.extras.insights.models import Models
from t2t_lite.text.class_label_encoder import RealEncoder
from t2t_lite.text.vocabulary import TextEncoder
from tests.decoding.parity import LABELS, Labels, Parity
from tests.decoding.runs import make_run
from tests.extras.insights.doubles import Classes, Classifier, Shown, spans, tags

TEXT = "the red house"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("models"), steps=(100, 200))


@pytest.fixture(scope="module")
def checkpoints(run):
    return [str(run / f"model.ckpt-{step}") for step in (100, 200)]


@pytest.fixture(scope="module")
def client(checkpoints):
    return create_app(Models.load(checkpoints)).test_client()


@pytest.mark.long
def test_each_model_answers_where_it_is_named(client, checkpoints):
    found = []
    for name in (*checkpoints, None):
        answer = client.post("/api/translate", json={"text": TEXT, "beam_size": 2} | ({"model": name} if name else {}))
        found.append((answer.json["translation"], answer.json["hypotheses"][0]["score"]))
    (expected,) = Translator.load([*checkpoints][1]).translate([TEXT], beam_size=2)
    assert found[1] == (expected.text, pytest.approx(expected.score, abs=1e-5))
    assert found[2] == found[0] != found[1], "the first one answers where none is named"


def test_what_is_said_of_each(client, checkpoints):
    models = client.get("/api/models").json
    assert [(model["name"], model["step"]) for model in models] == [*zip(checkpoints, (100, 200), strict=True)]
    parameters = Translator.load(checkpoints[0]).model.count_params()
    for model in models:
        assert model["task"] == "sequence_to_sequence" and model["notice"] is None
        assert (model["problem"], model["model"]) == ("translate_own", "transformer") and model["inputs"] == ["inputs"]
        assert model["hparams_set"] == "transformer_tiny" and model["parameters"] == parameters
        assert model["attention"] == {"encoder": [2], "decoder": [2], "memory": [2]}
        assert model["calls"] == ["translate", "beam", "steps", "attention"]


@pytest.mark.parametrize(
    ("call", "request_", "words"),
    [
        ("translate", {"model": "model.ckpt-300"}, "model='model.ckpt-300': unknown model. Expected one of /"),
        ("translate", {"model": 3}, "'model': expected a text, found 3"),
        ("predict", {}, "model.ckpt-100: does not support predict. Expected one of translate, beam, steps, attention."),
    ],
    ids=["unknown", "a number", "another task"],
)
def test_models_that_do_not_answer(client, call, request_, words):
    answer = client.post(f"/api/{call}", json={"text": TEXT, **request_})
    assert answer.status_code == 400 and words in answer.json["error"]


def test_a_request_whose_client_has_gone_is_not_computed(client, monkeypatch):
    monkeypatch.setattr(Translator, "translate", None)  # must not be called
    gone = {"waitress.client_disconnected": lambda: True}
    answer = client.post("/api/translate", json={"text": TEXT}, environ_overrides=gone)
    assert answer.status_code == 400 and answer.json["error"] == "The client has disconnected."


@pytest.mark.slow
def test_a_folder_that_changes_underneath(tmp_path):
    """The model answers with what was loaded, and the list says what has happened."""
    run = make_run(tmp_path, steps=(100,))
    client = create_app(Models.load([str(run)])).test_client()

    def ask():
        (model,) = client.get("/api/models").json
        return client.post("/api/steps", json={"text": TEXT, "target": "ein Haus"}).json["steps"], model["notice"]

    before, notice = ask()
    assert notice is None
    for file in run.glob("model.ckpt-100.*"):
        shutil.copy2(file, file.with_name(file.name.replace("100", "300")))
    (run / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-300"\n')
    after, notice = ask()
    assert after == before and f"{run}/model.ckpt-300 is newer." in notice
    shutil.rmtree(run)
    after, notice = ask()
    assert after == before and notice.startswith(f"{run}: no such folder or checkpoint.")
    assert notice.endswith("This server still uses the model that it has loaded.")


@pytest.mark.slow
def test_a_checkpoint_that_is_written_again(tmp_path):
    run = make_run(tmp_path)
    models = Models.load([str(run / "model.ckpt-100")])
    index = run / "model.ckpt-100.index"
    index.write_bytes(index.read_bytes() + b"x")
    assert "model.ckpt-100 was written again." in models.list()[0]["notice"]


def test_models_that_cannot_be_served(run, checkpoints, tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"is listed twice"):
        Models.load([str(run), str(run)])
    with pytest.raises(UserError, match="no such folder or checkpoint"):
        Models.load([checkpoints[0], str(tmp_path / "missing")])
    with monkeypatch.context() as patch, pytest.raises(UserError, match="cannot show the search of a transformer"):
        patch.setattr(registry.model("transformer"), "search", lambda *_: None, raising=False)
        Models.load([str(run)])
    monkeypatch.setattr(registry.problem("translate_own").__class__, "answered_by", dict)
    with pytest.raises(UserError, match=r"models of translate_own \(task sequence_to_sequence\)"):
        Models.load([str(run)])


def test_a_classifier_s_probabilities(monkeypatch, clock):
    predictor = Predictor(Classifier(), {"inputs": TextEncoder(50), "targets": Labels()}, Classes())
    client = create_app(Models({"parity": predictor})).test_client()
    (model,) = client.get("/api/models").json
    assert (model["task"], model["calls"]) == ("classification", ["predict", "attention"])
    assert (model["attention"], model["parameters"]) == (None, 7)
    (expected,) = predictor.predict(["3 4"])
    with monkeypatch.context() as patch:
        patch.setattr(predictor, "predict", lambda texts: clock.advance(1.23456) or [expected])
        answer = client.post("/api/predict", json={"text": "3 4"}).json
    assert answer["seconds"] == 1.2346
    assert answer["label"] == expected.label == answer["probabilities"][0]["label"] and not answer["truncated"]
    assert {one["label"]: one["probability"] for one in answer["probabilities"]} == pytest.approx(
        expected.probabilities
    )
    assert len(answer["probabilities"]) == len(LABELS)
    for call, request in {"predict": {"text": "x"}, "attention": {"text": "3"}, "translate": {"text": "3"}}.items():
        assert client.post(f"/api/{call}", json=request).status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize(
    "task, model, second, answer, lists",
    [
        ("classification", Parity(), {"second": "4"}, "odd", [["odd", "even", "none"]]),
        ("regression", lambda batch, training: tf.ones([1, 1]) / 4, {"second": "4"}, "1", []),
        ("tagging", tags, {}, "", [["3 odd", "4 even"]]),
        ("spans", spans, {"second": "7 8 9"}, "8 9", [["8 9", "7 8 9", "8", "9", "7"]]),
    ],
)
def test_every_encoder_s_answers_are_shown(task, model, second, answer, lists):
    """In the order of the probabilities, or of the words."""
    model.count_params = lambda: 7
    problem = Shown(task)
    if task in ("tagging", "spans"):
        problem.num_texts = 1 + len(second)
    encoders = {"inputs": TextEncoder(50), "targets": RealEncoder(0, 4) if task == "regression" else Labels()}
    client = create_app(Models({"one": Predictor(model, encoders, problem)})).test_client()
    (about,) = client.get("/api/models").json
    assert len(about["inputs"]) == problem.num_texts and ("attention" in about["calls"]) == (not second)
    found = client.post("/api/predict", json={"text": "3 4", **second}).json
    assert found["answer"] == answer and not found["truncated"]
    assert [sorted(one["text"] for one in every) for every in found["lists"]] == [sorted(every) for every in lists]
    for every in found["lists"]:
        shares = [one["probability"] for one in every]
        assert task == "tagging" or shares == sorted(shares, reverse=True)
