"""The recipe of docs/extras/sentence_transformers.md with published weights, and other folders, against the package."""

import contextlib
import pathlib
import tempfile

import numpy as np
import pytest
import transformers
from all_minilm_l6_v2 import extract_model
from sentence_transformers import SentenceTransformer, models

import t2t_lite
from t2t_lite.export import export_hugging_face, import_hugging_face
from tests.docs.blocks import blocks, to_run
from tests.docs.files import TEXTS
from tests.docs.shell import Shell
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.serving.running_server import RunningServer
from tests.peers.conftest import HOSTILE

PAGE = "docs/extras/sentence_transformers.md"
READ = [*TEXTS["train.en"].splitlines()[:20], *HOSTILE, "", "A red house by the river. " * 60]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """The folder in which the page's commands have run, with two steps of each training."""
    folder = tmp_path_factory.mktemp("recipe")
    extract_model(str(folder))
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with tempfile.TemporaryDirectory() as own, contextlib.closing(Shell(folder, pathlib.Path(own))) as shell:
        for block in blocks(PAGE):
            if block.language == "bash":
                shell.run(to_run(block).replace("_steps=400", "_steps=2").replace("_steps=300", "_steps=2"))
    return folder


@pytest.fixture(scope="module")
def theirs(recipe):
    """Vectors of `READ` by the package, from the published folder."""
    return SentenceTransformer(str(recipe / "all-MiniLM-L6-v2")).encode(READ)


def test_the_published_model_gives_the_same_vectors(recipe, theirs):
    vectors = np.stack(t2t_lite.load(str(recipe / "minilm")).features(READ))
    assert vectors.shape == (len(READ), 384)
    np.testing.assert_allclose(vectors, theirs, atol=1e-5)


def test_the_package_loads_what_is_written_back(recipe, theirs):
    np.testing.assert_allclose(SentenceTransformer(str(recipe / "back")).encode(READ), theirs, atol=1e-5)
    body = transformers.AutoModel.from_pretrained(str(recipe / "back"), add_pooling_layer=False)
    published = transformers.AutoModel.from_pretrained(str(recipe / "all-MiniLM-L6-v2"), add_pooling_layer=False)
    for (name, ours), (_, weight) in zip(body.state_dict().items(), published.state_dict().items(), strict=True):
        assert bool((ours == weight).all()), name


@pytest.mark.long
def test_a_file_and_a_server_give_the_same_vectors(recipe, theirs, tmp_path):
    lines = TEXTS["texts.txt"].splitlines()
    expected = SentenceTransformer(str(recipe / "all-MiniLM-L6-v2")).encode(lines)
    np.testing.assert_allclose(np.load(recipe / "vectors.npz")["features"], expected, atol=1e-5)
    with RunningServer(tmp_path, "t2t-server", f"--export_dir={recipe / 'export'}") as server:
        answer = server.predict({"inputs": READ}, signature_name="features")
    np.testing.assert_allclose(answer["features"], theirs, atol=1e-5)
    assert answer["truncated"] == [len(text) > 1000 for text in READ]


@pytest.mark.long
def test_what_was_trained_further_is_an_encoder_for_both(recipe, tmp_path):
    """A classifier keeps the pooling; its folder is one for both packages."""
    classifier = t2t_lite.load(str(recipe / "classifier"))
    assert {one.label for one in classifier.predict(READ)} <= {"negative", "positive"}
    export_hugging_face(classifier, str(tmp_path / "classifier"))
    vectors = SentenceTransformer(str(tmp_path / "classifier")).encode(READ)
    np.testing.assert_allclose(np.stack(classifier.features(READ)), vectors, atol=1e-5)
    logits = transformers.pipeline("text-classification", str(tmp_path / "classifier"))(READ[:8])
    answers = zip(classifier.predict(READ[:8]), logits, strict=True)
    expected = [answer.probabilities[found["label"]] for answer, found in answers]
    np.testing.assert_allclose([found["score"] for found in logits], expected, atol=1e-5)
    (value,) = t2t_lite.load(str(recipe / "alike")).predict([(READ[0], READ[1])])
    assert 0 <= value.value <= 4


@pytest.mark.parametrize(
    ("class_name", "pooling", "is_unit"),
    [("BertModel", "cls", True), ("RobertaModel", "mean", False), ("XLMRobertaModel", "mean", True),
     ("DistilBertModel", "max", True), ("AlbertModel", "max", False)],
)  # fmt: skip
def test_folders_that_the_package_writes(tmp_path, class_name, pooling, is_unit):
    """Of other families, with other poolings: in, and out again."""
    body = models.Transformer(write_encoder(tmp_path / "body", class_name)[0], max_seq_length=20)
    modules = [body, models.Pooling(16, pooling), *([models.Normalize()] if is_unit else [])]
    theirs = SentenceTransformer(modules=modules, device="cpu")
    theirs.save(str(tmp_path / "theirs"))
    import_hugging_face(str(tmp_path / "theirs"), str(tmp_path / "run"))
    predictor = t2t_lite.load(str(tmp_path / "run"))
    texts = ["the cafe", "naive red", "", "the un in red " * 12]
    expected = theirs.encode(texts)
    np.testing.assert_allclose(np.stack(predictor.features(texts)), expected, atol=1e-5)
    export_hugging_face(predictor, str(tmp_path / "ours"))
    np.testing.assert_allclose(SentenceTransformer(str(tmp_path / "ours")).encode(texts), expected, atol=1e-5)
