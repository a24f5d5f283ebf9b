"""Runs of users' own models: one that tells its parts as a `SequenceModel` does, and one that tells nothing."""

import json
import os
import shutil
import types

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.data.problem import Problem
from t2t_lite.errors import Failure, UserError
from t2t_lite.models.arguments import model_hparams
from t2t_lite.runs.opening import open_run
from t2t_lite.runs.run_config import build_model, read_run_config
from t2t_lite.runs.saving import save_run, write_imported_run
from t2t_lite.runs.warm_start import warm_start
from t2t_lite.runs.weights import named_weights
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import TokenTextEncoder
from tests.layers.equations import array
from tests.models.own_model import OwnLanguageModel, OwnPlainModel

pytestmark = pytest.mark.slow

# Nearest tests of: t2t_lite/runs/saving.py, t2t_lite/runs/warm_start.py

IDS = {"targets": np.array([[2, 3, 1]], "int32")}


@registry.register_problem("own_words")
class OwnWords(Problem):
    """Texts without inputs; the vocabulary is the file `words` of a folder."""

    features = types.MappingProxyType({"targets": 2})

    def feature_encoders(self, data_dir):
        return {"targets": TokenTextEncoder(f"{data_dir}/words")}

    def vocabulary_files(self, data_dir):
        return [f"{data_dir}/words"]


def words(folder, text):
    folder.mkdir()
    (folder / "words").write_text("\n".join(["<pad>", "<EOS>", *text.split()]) + "\n")
    return TokenTextEncoder(f"{folder}/words")


@pytest.fixture
def encoder(tmp_path):
    return words(tmp_path / "data", "red green blue")


def weights(model):
    return {name: weight.numpy() for name, weight in named_weights(model).items()}


def by_piece(matrix, encoder):
    return dict(zip(encoder.pieces(range(len(matrix))), matrix, strict=True))


@pytest.fixture
def saved(encoder, tmp_path):
    """A model of one stack, and its run, whose hyperparameters follow from it."""
    model = OwnLanguageModel(encoder.vocab_size, hidden_size=8, num_heads=2, num_encoder_layers=2)
    model.build()
    settings = {"hparams_set": "their_set", "usr_dir": "mine", "step": 3}
    model.save_run(str(tmp_path / "run"), problem="own_words", data_dir=str(tmp_path / "data"), **settings)
    return model, str(tmp_path / "run")


def test_a_model_of_one_stack_is_saved_and_opened(saved):
    model, run = saved
    opened = open_run(run)
    assert opened.hparams.hidden_size == 8 and [*opened.encoders] == ["targets"] and opened.step == 3
    config = read_run_config(run)
    assert (config["hparams_set"], config["usr_dir"]) == ("their_set", os.path.abspath("mine"))
    np.testing.assert_array_equal(array(opened.model(IDS)), array(model(IDS)))


def test_an_imported_run_holds_what_opens_it_or_nothing_is_left(saved, tmp_path, monkeypatch):
    model, _ = saved
    folders = {type(model): "/mine"}
    monkeypatch.setattr(registry, "usr_dir_of", lambda kind: folders.get(kind, ""))

    def hold(problem, folder):
        assert problem.name == "own_words"
        shutil.copy(tmp_path / "data" / "words", folder)

    def fill(built):
        for weight, value in zip(built.weights, model.weights, strict=True):
            weight.assign(value)

    def full(built):
        raise Failure("the disk is full")

    named = {"model": type(model).REGISTERED_NAME, "hparams": model_hparams(model, HParams()), "step": 12}
    with pytest.raises(Failure):
        write_imported_run(str(tmp_path / "new"), "own_words", hold, fill=full, **named)
    assert not (tmp_path / "new").exists()
    path = write_imported_run(str(tmp_path / "new"), "own_words", hold, fill=fill, hparams_set="theirs", **named)
    assert path == str(tmp_path / "new" / "model.ckpt-12")
    opened = open_run(str(tmp_path / "new"))
    assert (opened.step, opened.config["usr_dir"], opened.config["hparams_set"]) == (12, "/mine", "theirs")
    np.testing.assert_array_equal(array(opened.model(IDS)), array(model(IDS)))
    folders.clear()
    folders[type(registry.problem("own_words"))] = "/problems"
    write_imported_run(str(tmp_path / "other"), "own_words", hold, fill=fill, **named)
    assert read_run_config(str(tmp_path / "other"))["usr_dir"] == "/problems"


@pytest.mark.parametrize("depth", [1, 40])
def test_another_depth_than_the_checkpoints_is_refused(saved, tmp_path, depth):
    path = tmp_path / "run" / "hparams.json"
    config = json.loads(path.read_text())
    config["hparams"]["num_encoder_layers"] = depth
    path.write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"model.ckpt-3: does not match this model: stack"):
        open_run(saved[1])


@pytest.mark.parametrize("is_tied", [True, False], ids=["tied", "untied"])
def test_it_begins_with_rows_by_piece(saved, tmp_path, is_tied):
    new = words(tmp_path / "new", "blue sky red")
    config = {**open_run(saved[1]).config, "vocab_size": new.vocab_size}
    config["hparams"] |= {"shared_embedding_and_softmax_weights": is_tied}
    model, old = build_model(config), weights(saved[0])
    drawn = weights(model)
    taken = warm_start(saved[1], model, {"targets": new})["warm_start_rows"]
    names = ["embedding/embeddings"] + ([] if is_tied else ["softmax_embedding/embeddings"])
    assert taken == {name: [4, 5] for name in names}
    there = by_piece(old["embedding/embeddings"], open_run(saved[1]).encoders["targets"])
    for name, value in weights(model).items():
        if name in names:
            for piece, row in by_piece(value, new).items():
                expected = there[piece] if piece != "sky" else drawn[name][new.encode("sky")[0]]
                np.testing.assert_array_equal(row, expected, err_msg=f"{name} {piece}")
        else:
            np.testing.assert_array_equal(value, old[name], err_msg=name)


def test_a_model_that_tells_nothing_needs_its_hyperparameters_and_vocabulary(encoder, tmp_path):
    model, run = OwnPlainModel(encoder.vocab_size), str(tmp_path / "run")
    model(IDS)
    settings = {"problem": "own_words", "data_dir": str(tmp_path / "data")}
    with pytest.raises(UserError, match="`hparams` is missing"):
        save_run(model, run, **settings)
    save_run(model, run, **settings, hparams=registry.hparams("transformer_tiny"))
    opened = open_run(run)
    np.testing.assert_array_equal(array(opened.model(IDS)), array(model(IDS)))
    new = build_model(opened.config)
    assert warm_start(run, new, {"targets": encoder}) == {"warm_start_from": f"{run}/model.ckpt-0"}
    np.testing.assert_array_equal(array(new(IDS)), array(model(IDS)))
    with pytest.raises(UserError, match=rf"{run}/model\.ckpt-0: .* t2t-datagen --vocab_from={run}"):
        warm_start(run, new, {"targets": words(tmp_path / "new", "sky")})
