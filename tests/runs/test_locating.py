"""What a path may name: a checkpoint, a run, an export or a folder of numbered exports; and what lies beside it."""

import json
import types

import pytest

from t2t_lite.errors import UserError
from t2t_lite.runs import locating
from t2t_lite.runs.run_config import write_run_config
from tests.runs.configs import CONFIG


def make_export(folder, models=1, steps=(7,), **facts):
    """Writes the files of an export by which it is recognized."""
    for name in ("saved_model.pb", "variables/variables.index", "assets.extra/t2t_lite/vocab"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    beside = folder / "assets.extra/t2t_lite"
    contents = {"models": models, "steps": [*steps], "weights_dtype": "float32"} | facts
    (beside / "export.json").write_bytes(locating.facts_json(**contents))
    write_run_config(str(beside), CONFIG)
    return str(folder)


@pytest.fixture
def folder(tmp_path):
    """A folder with a run, an export, numbered exports and an empty folder."""
    (tmp_path / "run").mkdir()
    for step in (900, 1000):
        (tmp_path / "run" / f"model.ckpt-{step}.index").touch()
    write_run_config(str(tmp_path / "run"), CONFIG)
    for name in ("export", "exports/2", "exports/10", "exports/model"):
        make_export(tmp_path / name)
    (tmp_path / "exports" / "11").mkdir()  # being copied
    (tmp_path / "empty").mkdir(), (tmp_path / "part").mkdir()
    (tmp_path / "part" / "model.ckpt-5.data-00000-of-00001").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("run", "run/model.ckpt-1000"),
        ("run/model.ckpt-900", "run/model.ckpt-900"),
        ("run/model.ckpt-900.index", "run/model.ckpt-900"),
        ("export", "export/variables/variables"),
        ("exports", "exports/10/variables/variables"),
    ],
)
def test_the_checkpoint_of_a_path(folder, path, expected):
    found = locating.find_run(folder / path)
    assert (found.checkpoint, found.config["vocab_size"]) == (str(folder / expected), 12)
    assert found.problem.name == CONFIG["problem"] and locating.find_run(found) is found
    export = str(folder / expected.removesuffix("/variables/variables")) if "variables" in expected else None
    assert locating.export_of(found.checkpoint) == export
    beside = f"{export}/assets.extra/t2t_lite" if export else str(folder / "run")
    assert locating.folder_of(found.checkpoint) == beside


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere", "nowhere: no such folder or checkpoint"),
        ("run/model.ckpt-7", r"model\.ckpt-7: no such folder or checkpoint.* such as .*/run/model\.ckpt-1000"),
        ("empty", r"empty: holds no checkpoint \(model\.ckpt-N\)\. "),
        ("part", r"part: holds no checkpoint .*, only model\.ckpt-5\.data-00000-of-00001, without its index"),
    ],
)
def test_a_path_without_a_checkpoint(folder, path, words):
    with pytest.raises(UserError, match=words):
        locating.find_checkpoint(str(folder / path))


def test_a_model_file_of_keras_is_named(tmp_path):
    path = tmp_path / "model.keras"
    path.write_bytes(b"")
    with pytest.raises(UserError, match=r"model\.keras: a model file of Keras, not a run\. .*load_model.*save_run"):
        locating.find_checkpoint(str(path))


def test_a_run_without_settings_and_one_whose_names_are_a_users(folder, monkeypatch):
    imported = []

    def note(folder, config):
        imported.append((folder, config["usr_dir"]))

    monkeypatch.setattr(locating, "import_usr_dir", note)
    for path in ("run", "export"):
        locating.read_config_of(locating.find_checkpoint(str(folder / path)))
    assert not imported, "all names are registered"
    monkeypatch.setattr(locating, "is_registered", lambda config: False)
    for path in ("run", "export"):
        locating.read_config_of(locating.find_checkpoint(str(folder / path)))
    assert imported == [(str(folder / "run"), ""), (str(folder / "export"), "")]
    (folder / "run" / "hparams.json").unlink()
    with pytest.raises(UserError, match=r"run/hparams\.json: no such file"):
        locating.find_run(folder / "run")


def test_the_files_of_a_run_and_of_an_export(folder):
    for name in ("checkpoint", "train.log", "eval.log", "vocab.a", "a.model", "problem.json", "flags.txt", "notes.txt"):
        (folder / "run" / name).touch()
    names = {path.rpartition("/")[2] for path in locating.run_files(str(folder / "run"))}
    assert names == {path.name for path in (folder / "run").iterdir()} - {"notes.txt"}
    of_export = [path.rpartition("/")[2] for path in locating.run_files(str(folder / "export" / "variables"))]
    assert sorted(of_export) == ["export.json", "hparams.json", "variables.index", "vocab"]


def test_an_ensemble_is_not_one_model(folder):
    path = make_export(folder / "three", 3, (7, 8, 10), more="x")
    facts = locating.read_facts(path)
    assert facts["steps"] == [7, 8, 10] and facts["more"] == "x"
    assert locating.model_names(3) == ["model", "model_2", "model_3"]
    locating.check_is_one(locating.find_checkpoint(str(folder / "export")), "export")
    locating.check_is_one(str(folder / "run" / "model.ckpt-900"), "run")
    with pytest.raises(UserError, match=r"^three: .* 3 models"):
        locating.check_is_one(f"{path}/variables/variables", "three")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, r"format 2, expected 1"),
        ({"models": 0, "steps": []}, "one step per model"),
        ({"models": 2}, "one step per model"),
        ({"steps": ["7"]}, "steps"),
        (None, "no such file"),
    ],
)
def test_facts_of_an_export_that_are_none(folder, change, words):
    path = folder / "export" / "assets.extra" / "t2t_lite" / "export.json"
    if change is None:
        path.unlink()
    else:
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=f"^{path}: .*{words}"):
        locating.read_facts(str(folder / "export"))


def fake_problem(**prints):
    """A problem whose folders hold encoders of these fingerprints: {folder: (of inputs, of targets)}."""

    def encoders(folder):
        if folder not in prints:
            raise UserError(f"{folder}: no vocabulary")
        sides = zip(("inputs", "targets"), prints[folder], strict=True)
        return {side: types.SimpleNamespace(fingerprint=print_) for side, print_ in sides}

    return types.SimpleNamespace(get_feature_encoders=encoders, vocabulary_files=lambda folder: [f"{folder}/v.a"])


def test_the_vocabulary_is_beside_the_checkpoint_or_else_in_the_data_folder():
    right = "a" * 64, "b" * 64
    both = fake_problem(run=right, data=("c", "d"))
    for problem, expected in ((fake_problem(run=right), "run"), (fake_problem(data=right), "data"), (both, "run")):
        encoders, folder = locating.encoders_and_folder(problem, CONFIG, "run", "data")
        assert folder == expected and [encoder.fingerprint for encoder in encoders.values()] == [*right]
    with pytest.raises(UserError, match="run: no vocabulary"):
        locating.encoders_and_folder(fake_problem(data=right), CONFIG, "run")
    words = r"^run: the vocabulary of the targets .* c{12}…, expected b{12}….*identity_decimal40 needs v\.a\."
    with pytest.raises(UserError, match=words):
        locating.encoders_and_folder(fake_problem(run=("a" * 64, "c" * 64)), CONFIG, "run", "data")
    with pytest.raises(UserError, match=r"run/problem\.json: no such file"):
        locating.LocatedRun("run/model.ckpt-3", CONFIG | {"problem": "translate_own"}).check_encoders()
