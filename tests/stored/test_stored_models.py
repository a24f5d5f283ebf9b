"""What each version has stored, tiny models in every format, opens in this one and answers the same; see make.py."""

import functools
import json
import pathlib
import shutil
import tarfile
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  the operations of exports

import t2t_lite
from t2t_lite import HParams, registry
from t2t_lite.bin import t2t_importer, t2t_trainer
from t2t_lite.data.records import Records
from tests.stored import small_models

ARCHIVES = {path.name.removesuffix(".tar.xz"): path for path in pathlib.Path(__file__).parent.glob("*.tar.xz")}
BEAM = {"beam_size": 2, "extra_length": 5}


def expected_of(archive):
    """What a version's models answered."""
    with tarfile.open(archive) as file:
        return json.load(file.extractfile("expected.json"))


SMALL = [
    (version, name)
    for version, path in ARCHIVES.items()
    for name in expected_of(path).get("small", ())
    if small_models.is_there(name)
]
# One per task and per vocabulary; the others are read by make test-all.
FEW = pytest.mark.few("transformer_lm", "classes", "gpt2", "bert")


def test_this_version_has_stored_its_models():
    assert t2t_lite.__version__ in ARCHIVES, "python -m tests.stored.make"


def _extract(path, folder):
    with tarfile.open(path) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # not in 3.11.2


@pytest.fixture(scope="module", params=ARCHIVES)
def stored(request, tmp_path_factory):
    """The folder of what a version has stored, and what its models answered."""
    folder = tmp_path_factory.mktemp("stored")
    _extract(ARCHIVES[request.param], folder)
    return types.SimpleNamespace(folder=folder, **expected_of(ARCHIVES[request.param]))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Opens the archive of a version once: returns (the folder of a model in it, what it answered)."""

    @functools.cache
    def folder_of(version):
        folder = tmp_path_factory.mktemp("small")
        _extract(ARCHIVES[version], folder)
        return folder

    return lambda version, name: (folder_of(version) / name, expected_of(ARCHIVES[version])["small"][name])


def log_prob(translator, stored):
    (score,) = translator.score([stored.text], [stored.target])
    return float(score.log_prob)


@pytest.mark.slow  # a search is traced
def test_run(stored):
    translator = t2t_lite.load(str(stored.folder / "run"))
    assert log_prob(translator, stored) == pytest.approx(stored.log_prob, rel=1e-4)
    assert [t.text for t in translator.translate([stored.text], **BEAM)] == [stored.translation]


@pytest.mark.slow
def test_keras_file(stored):
    model = keras.saving.load_model(stored.folder / "model.keras")
    translator = t2t_lite.load(str(stored.folder / "run"))
    ids = np.array([[5, 6, 7, 1], [8, 1, 0, 0]])
    features = {"inputs": ids, "targets": ids[:, ::-1]}
    np.testing.assert_allclose(model(features), translator.model(features), atol=1e-5)


@pytest.mark.slow  # loading an export takes seconds
def test_saved_model(stored):
    export = str(stored.folder / "export")
    served = tf.saved_model.load(f"{export}/1").signatures["serving_default"](inputs=tf.constant([stored.text]))
    assert served["outputs"].numpy()[0].decode() == stored.translation
    assert log_prob(t2t_lite.load(export), stored) == pytest.approx(stored.log_prob, rel=1e-4)


@pytest.mark.slow
def test_hugging_face_folder(stored, tmp_path):
    theirs = stored.folder / "hugging_face"
    if (kind := json.loads((theirs / "config.json").read_text())["model_type"]) not in registry.list_families():
        pytest.skip(f"{kind} is of an extra")
    words = ["--from=hugging_face", f"--path={theirs}", "--languages=en,de"]
    assert t2t_importer.main([*words, f"--output_dir={tmp_path / 'run'}"]) == 0
    assert log_prob(t2t_lite.load(str(tmp_path / "run")), stored) == pytest.approx(stored.log_prob, rel=1e-4)


def test_records(stored):
    problem = registry.problem("translate_own")
    data = str(stored.folder / "data")
    encoder = problem.get_feature_encoders(data)["inputs"]
    examples = list(Records(problem, data, "train").examples(HParams()))
    assert len(examples) == 60
    for ids in (list(example[side]) for example in examples for side in ("inputs", "targets")):
        assert encoder.decode(ids).endswith(".") and [*encoder.encode(encoder.decode(ids)), 1] == ids


@pytest.mark.long  # a whole run goes on, with its evaluations
def test_records_and_optimizer_of_a_run_that_goes_on(stored, tmp_path):
    run = shutil.copytree(stored.folder / "run", tmp_path / "run")
    words = [f"--data_dir={stored.folder / 'data'}", f"--output_dir={run}", "--train_steps=151", "--eval_steps=1"]
    assert t2t_trainer.main(words) == 0
    assert (run / "model.ckpt-151.index").is_file()
    events = [json.loads(line) for line in (run / "train.log").read_text(encoding="utf-8").splitlines()]
    assert any(event["event"] == "resume" and event["step"] == 150 for event in events)
    before, after = (event["loss"] for event in events if event["event"] == "evaluation")
    assert after == pytest.approx(before, abs=0.2)  # of new weights it is about 6


@pytest.mark.slow
@FEW
@pytest.mark.parametrize(("version", "name"), SMALL, ids=lambda value: value)
def test_small_models(small, version, name):
    """A run of each kind of model, task and foreign family: the same ids of a text, and the same logits."""
    folder, expected = small(version, name)
    assert_same(small_models.answer(folder), expected)


@pytest.mark.slow
@FEW
@pytest.mark.parametrize(("version", "name"), SMALL, ids=lambda value: value)
def test_files_of_small_models(small, version, name, tmp_path):
    """Their `.keras` files, and the folders of foreign families."""
    folder, expected = small(version, name)
    keras_file, theirs = folder.with_name(f"{name}.keras"), folder.with_name(f"{name}.hugging_face")
    assert keras_file.exists() or theirs.exists()
    if keras_file.exists():
        assert_same(small_models.answer(folder, keras.saving.load_model(keras_file)), expected)
    if theirs.exists():
        languages = ["en", "de"] if (theirs / "source.spm").exists() else []
        t2t_lite.export.import_hugging_face(str(theirs), str(tmp_path / "run"), languages=languages)
        assert_same(small_models.answer(tmp_path / "run"), expected)


def assert_same(found, expected):
    assert found["ids"] == expected["ids"]
    np.testing.assert_allclose(found["logits"], expected["logits"], rtol=1e-4, atol=1e-5)


@pytest.mark.whole
def test_what_lacks_is_said():
    names = {*small_models.MODELS, *small_models.FOLDERS}
    assert small_models.lacking(names) == []
    assert small_models.lacking(names - {"masked", "classes", "numbers", "tags", "gpt2"})[-1] == "gpt2"
