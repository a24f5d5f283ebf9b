"""A new run that begins with the weights of another one, and with nothing else of it."""

import json
import logging
import os
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.runs.weights import named_weights
from tests.training import runs
from tests.training.runs import Small, log, small_trainer, state, trainer

pytestmark = pytest.mark.slow  # of whole runs

HPARAMS = runs.HPARAMS.replace("eval_decode_examples=3", "eval_decode_examples=0")


@pytest.fixture(scope="module")
def source(data_dir, tmp_path_factory):
    """A run of four steps, and what it was at its end."""
    folder = tmp_path_factory.mktemp("source")
    metrics = small_trainer(data_dir, folder, HPARAMS, evaluates=True).train(4)
    return folder, metrics


@pytest.mark.few("one device")
@pytest.mark.parametrize("more", [{}, {"logical_cpus": 2}], ids=["one device", "two replicas"])
def test_without_a_step_it_is_the_model_it_began_with(data_dir, source, tmp_path, more):
    metrics = small_trainer(
        data_dir, tmp_path / "new", HPARAMS, warm_start_from=str(source[0]), evaluates=True, **more
    ).train(0)
    for name in ("loss", "token_accuracy"):
        assert metrics[name] == pytest.approx(source[1][name], rel=1e-5)
    [start] = log(tmp_path / "new", "start")
    assert (start["step"], start["warm_start_from"]) == (0, str(source[0] / "model.ckpt-4"))


def test_optimizer_and_data_begin_anew(data_dir, source, tmp_path):
    standing = HPARAMS + ",learning_rate_constant=1e-9"
    small_trainer(data_dir, tmp_path / "new", standing, warm_start_from=str(source[0])).train(1)
    before, after = state(source[0], 4), state(tmp_path / "new", 1)
    for key in (key for key in before if key.startswith("model/")):
        np.testing.assert_allclose(after[key], before[key], atol=1e-7)
    assert after["batches_read/.ATTRIBUTES/VARIABLE_VALUE"] == 1
    [updates] = [after[key] for key in after if key.startswith("optimizer/") and after[key].dtype.kind == "i"]
    assert updates == 1


def test_a_run_that_has_begun_is_resumed_instead(data_dir, source, tmp_path, caplog):
    small_trainer(data_dir, tmp_path, HPARAMS, warm_start_from=str(source[0] / "model.ckpt-4")).train(1)
    before, after = state(source[0], 4), state(tmp_path, 1)
    assert any(abs(after[key] - before[key]).max() > 1e-6 for key in before if key.startswith("model/"))
    again = small_trainer(data_dir, tmp_path, HPARAMS, warm_start_from=str(source[0]))
    with caplog.at_level(logging.INFO, "t2t_lite"):
        again.train(1)
    assert f"--warm_start_from={source[0]}: not used" in caplog.text
    weights = {name: weight.numpy() for name, weight in named_weights(again.trained).items()}
    for name, weight in weights.items():
        np.testing.assert_array_equal(weight, after[f"model/{name}/.ATTRIBUTES/VARIABLE_VALUE"])
    events = [(line["event"], line["step"]) for line in log(tmp_path) if line["event"] in ("start", "resume")]
    assert events == [("start", 0), ("resume", 1)]


@registry.register_model("warm_start_wide")
class Wide(Small):
    def __init__(self, vocab_size):
        super().__init__(vocab_size)
        self.embedding = keras.layers.Embedding(vocab_size, 9)


def test_weights_of_another_shape_are_refused(data_dir, source, tmp_path):
    with pytest.raises(UserError, match=r"model.ckpt-4: not of this model: \S+ is 8 x 12 there, 9 x 12 in"):
        small_trainer(data_dir, tmp_path / "new", model="warm_start_wide", warm_start_from=str(source[0])).train(2)
    assert not os.path.exists(tmp_path / "new" / "hparams.json")


def test_a_vocabulary_that_is_not_the_old_runs_is_refused(data_dir, tmp_path):
    """Of a model whose embeddings are known."""
    other, hparams = tmp_path / "other", registry.hparams("transformer_tiny").parse(HPARAMS)
    model = registry.model("transformer").from_hparams(hparams, 12)
    model.save_run(str(other), problem=runs.PROBLEM, data_dir=data_dir, hparams=hparams)
    config = json.loads((other / "hparams.json").read_text())
    config["vocabulary_sha256"]["targets"] = "0" * 64
    (other / "hparams.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"other: the vocabulary of the targets is not the one .* expected 0{12}…"):
        trainer(data_dir, tmp_path / "new", warm_start_from=str(other)).train(2)
    assert not os.path.exists(tmp_path / "new" / "hparams.json")


def test_what_is_no_run_is_refused(data_dir, source, tmp_path):
    with pytest.raises(UserError, match="nowhere: no such folder or checkpoint"):
        small_trainer(data_dir, tmp_path / "new", warm_start_from=str(tmp_path / "nowhere")).train(2)
    damaged = shutil.copytree(source[0], tmp_path / "damaged")
    [data] = damaged.glob("model.ckpt-4.data*")
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"model.ckpt-4: damaged"):
        small_trainer(data_dir, tmp_path / "new", warm_start_from=str(damaged)).train(2)
    (damaged / "hparams.json").unlink()
    with pytest.raises(UserError, match=r"hparams.json: no such file"):
        small_trainer(data_dir, tmp_path / "new", warm_start_from=str(damaged)).train(2)
    assert tf.io.gfile.glob(str(tmp_path / "new" / "model.ckpt*")) == []
