"""What lies beside the graph: an export opens again as a model, says what it is, and warms a server up."""
# Nearest tests of: t2t_lite/export/saved_model.py, t2t_lite/runs/opening.py

import os
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.export import export_saved_model
from t2t_lite.models import Transformer
from t2t_lite.runs.opening import open_runs
from t2t_lite.runs.run_config import build_model
from t2t_lite.runs.warm_start import warm_start
from t2t_lite.runs.weights import named_weights
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import SentencePieceEncoder
from tests.decoding.runs import make_run
from tests.export.models import without_signatures

TEXTS = ["the red house is old.", "", "a green tree", "Grün 😀 neu", "is " * 60]
_SEARCH = {"beam_size": 2, "extra_length": 5}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), steps=(100, 200))


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    """One model in float32."""
    return export_saved_model(
        Translator.load(str(run)),
        str(tmp_path_factory.mktemp("float32") / "ours"),
        license="CC-BY-4.0",
        command="t2t-exporter --output_dir=run",
        **_SEARCH,
    )


@pytest.fixture(scope="module")
def ensemble(run, tmp_path_factory):
    """Two models in bfloat16, whose weights have the same shapes, though of other heads."""
    paths = [f"{run}/model.ckpt-100", str(make_run(tmp_path_factory.mktemp("other"), steps=(200,), num_heads=4))]
    return Translator.load(paths, compute_dtype="bfloat16", check_device=False)


@pytest.fixture(scope="module")
def exported_ensemble(ensemble, tmp_path_factory):
    with without_signatures("n_best", "tokens", "with_options"):
        return export_saved_model(ensemble, str(tmp_path_factory.mktemp("two")), **_SEARCH)


def _served(export, signature="serving_default", **inputs):
    serve = tf.saved_model.load(export).signatures[signature]
    return serve(**{name: tf.constant(value) for name, value in inputs.items()})


@pytest.mark.slow
def test_an_export_opens_as_the_model_it_was_made_of(eager, run, exported):
    before, after = Translator.load(str(run)), Translator.load(exported)
    weights = [named_weights(translator.model) for translator in (before, after)]
    assert weights[0].keys() == weights[1].keys()
    for name, weight in weights[0].items():
        np.testing.assert_array_equal(weight.numpy(), weights[1][name].numpy())
    options = {"beam_size": 1, "extra_length": 2, "max_input_length": 20}
    assert before.translate(TEXTS, **options) == after.translate(TEXTS, **options)
    assert (after.run.step, after.run.config["hparams_set"]) == (200, "transformer_tiny")
    of_keras = named_weights(Transformer.from_run(exported))
    assert {name: weight.shape for name, weight in of_keras.items()} == {n: w.shape for n, w in weights[0].items()}


@pytest.mark.slow
def test_it_needs_nothing_from_elsewhere(eager, run, exported, tmp_path, monkeypatch):
    """Moved, and named by the folder of its versions."""
    os.renames(exported, tmp_path / "moved" / "10")
    try:
        os.rename(run, f"{run}-gone")
        assert Translator.load(str(tmp_path / "moved")).translate(["a tree"], extra_length=2)[0].text
    finally:
        os.rename(f"{run}-gone", run)
        os.renames(tmp_path / "moved" / "10", exported)


@pytest.mark.long
def test_an_ensemble_answers_as_its_models_together(ensemble, exported_ensemble):
    """In bfloat16, graph and opened export; in float32 the latter is near, on the same rounded weights."""
    opened = Translator.load(exported_ensemble, compute_dtype="bfloat16", check_device=False)
    exact = Translator.load(exported_ensemble)
    assert [run.step for run in opened.runs] == [100, 200]
    for translator, dtype in ((opened, tf.bfloat16), (exact, tf.float32)):
        for before, after in zip(ensemble.model.models, translator.model.models, strict=True):
            for name, weight in named_weights(before).items():
                found = named_weights(after)[name].value
                assert found.dtype == dtype
                np.testing.assert_array_equal(tf.cast(found, tf.float32), tf.cast(weight.value, tf.float32))
    expected = opened.translate(TEXTS, max_input_length=512, **_SEARCH)
    found = _served(exported_ensemble, inputs=TEXTS)
    assert [text.decode() for text in found["outputs"].numpy()] == [t.text for t in expected]
    assert found["scores"].numpy() == pytest.approx([t.score for t in expected], abs=1e-4)
    exact = [t.score for t in exact.translate(TEXTS, **_SEARCH)]
    assert found["scores"].numpy() == pytest.approx(exact, rel=0.02) and max(np.abs(exact)) > 1
    given = _served(exported_ensemble, "score", inputs=TEXTS[:1], targets=["das rote Haus"])
    (score,) = opened.score(TEXTS[:1], ["das rote Haus"])
    assert given["scores"].numpy() == pytest.approx([score.log_prob], abs=1e-4)


@pytest.mark.slow
def test_a_run_can_begin_with_an_exports_weights(exported, exported_ensemble, tmp_path, monkeypatch):
    opened = Translator.load(exported)
    new = build_model(opened.run.config)
    facts = warm_start(exported, new, opened.encoders)
    assert facts == {"warm_start_from": os.path.join(exported, "variables", "variables")}
    for name, weight in named_weights(new).items():
        np.testing.assert_array_equal(weight.numpy(), named_weights(opened.model)[name].numpy())
    with pytest.raises(UserError, match=r"ensemble of 2 models\. Expected one model"):
        warm_start(exported_ensemble, new, opened.encoders)
    # With another vocabulary, from the first of its models, whose weights are bfloat16, as if it were the only one.
    monkeypatch.setattr("t2t_lite.runs.locating.read_facts", lambda export: {"models": 1})
    train_sentencepiece(["the red house is old", "ein roter Baum"] * 5, str(tmp_path / "other"), 290)
    other = SentencePieceEncoder(str(tmp_path / "other.model"))
    new = build_model({**opened.run.config, "vocab_size": 290})
    facts = warm_start(exported_ensemble, new, {"inputs": other, "targets": other})
    ((matrix, (taken, rows)),) = facts["warm_start_rows"].items()
    assert 260 <= taken < rows == 290
    monkeypatch.undo()
    first = named_weights(Translator.load(exported_ensemble).model.models[0])
    for name, weight in named_weights(new).items():
        if name != matrix:
            np.testing.assert_array_equal(weight.numpy(), first[name].numpy())


@pytest.mark.slow
def test_each_model_of_an_ensemble_keeps_its_own_settings(exported_ensemble):
    runs = open_runs(exported_ensemble)
    assert [(run.step, run.hparams.num_heads, run.model.config["num_heads"]) for run in runs] == [
        (100, 2, 2),
        (200, 4, 4),
    ]


@pytest.mark.slow
def test_bfloat16_is_half_the_size(exported, exported_ensemble):
    def of_weights(export):
        reader = tf.train.load_checkpoint(os.path.join(export, "variables", "variables"))
        types = reader.get_variable_to_dtype_map()
        shapes = reader.get_variable_to_shape_map()
        return sum(int(np.prod(shapes[name])) * types[name].size for name in shapes if name.startswith("model/"))

    assert of_weights(exported_ensemble) * 2 == of_weights(exported)


@pytest.mark.slow
def test_an_export_can_be_damaged(exported):
    variables = pathlib.Path(exported, "variables", "variables.data-00000-of-00001")
    data = variables.read_bytes()
    try:
        variables.write_bytes(data[: len(data) // 2])
        with pytest.raises(UserError, match="damaged"):
            Translator.load(exported)
    finally:
        variables.write_bytes(data)


@pytest.mark.slow
def test_the_card_is_that_of_the_export(exported, exported_ensemble):
    """tests/extras/model_card has what it says."""
    pytest.importorskip("t2t_lite.extras.model_card")
    card = pathlib.Path(exported, "README.md").read_text(encoding="utf-8")
    for words in (
        "| license | CC-BY-4.0 |",
        "```bash\nt2t-exporter --output_dir=run\n```",
        "/ours:/models/translate",
        "beam 2, alpha 0.6 (gnmt), ends any, at most the input's length + ",
        "float32, as trained",
    ):
        assert words in card
    signatures = tf.saved_model.load(exported).signatures
    assert sorted(re.findall(r"^\| `(\w+)` \|", card, re.MULTILINE)) == sorted(signatures)
    assert "bfloat16" in pathlib.Path(exported_ensemble, "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_server_can_be_warmed_up(exported):
    """Every request names a signature and fits it, as the server checks before it runs them."""
    log = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = os.path.join(exported, "assets.extra", "tf_serving_warmup_requests")
    signatures = tf.saved_model.load(exported).signatures
    warmed = set()
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        request = log.PredictionLog.FromString(record).predict_log.request
        assert request.model_spec.name == "ours"
        inputs = {name: tf.constant(tf.make_ndarray(proto)) for name, proto in request.inputs.items()}
        answer = signatures[request.model_spec.signature_name](**inputs)
        assert all(len(value) == len(inputs["inputs"]) for value in answer.values())
        warmed.add((request.model_spec.signature_name, len(inputs["inputs"])))
        assert {len(value) for value in inputs.values()} == {len(inputs["inputs"])}, "a server that batches wants that"
    assert warmed == {*((name, 1) for name in signatures), ("serving_default", 3)}
