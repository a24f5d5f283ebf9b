"""A new run that begins with the weights of another one, and with nothing else of it."""

# Nearest tests of: t2t_lite/training/trainer.py

import keras
import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.runs.weights import named_weights
from tests.training import runs
from tests.training.runs import Small, log, small_trainer, state

pytestmark = pytest.mark.slow  # of whole runs

HPARAMS = runs.HPARAMS.replace("eval_decode_examples=3", "eval_decode_examples=0")


@pytest.fixture(scope="module")
def source(data_dir, tmp_path_factory):
    """A run of four steps, and what it was at its end."""
    folder = tmp_path_factory.mktemp("source")
    metrics = small_trainer(data_dir, folder, HPARAMS, evaluates=True).train(4)
    return folder, metrics


@pytest.mark.parametrize("more", [{}, {"logical_cpus": 2}], ids=["one device", "two replicas"])
def test_without_a_step_it_is_the_model_it_began_with(data_dir, source, tmp_path, more):
    metrics = small_trainer(
        data_dir, tmp_path / "new", HPARAMS, warm_start_from=str(source[0]), evaluates=True, **more
    ).train(0)
    for name in ("loss", "token_accuracy"):
        assert metrics[name] == pytest.approx(source[1][name], rel=1e-5)
    [start] = log(tmp_path / "new", "start")
    assert (start["step"], start["warm_start_from"]) == (0, str(source[0] / "model.ckpt-4"))
    again = small_trainer(data_dir, tmp_path / "new", HPARAMS, evaluates=True, **more).train(0)
    assert again["loss"] == pytest.approx(source[1]["loss"], rel=1e-5), "it remembers with whose weights it began"


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
    again.train(1)
    assert f"--warm_start_from={source[0]} is not used" in caplog.text
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


def test_what_cannot_be_begun_with_leaves_nothing(data_dir, source, tmp_path):
    for given, model, words in (
        (source[0], "warm_start_wide", r"model.ckpt-4: does not match this model: \S+ is 8 x 12 there, but 9 x 12 in"),
        (tmp_path / "nowhere", "runs_small", "nowhere: no such folder or checkpoint"),
    ):
        with pytest.raises(UserError, match=words):
            small_trainer(data_dir, tmp_path / "new", model=model, warm_start_from=str(given)).train(2)
        assert not (tmp_path / "new").exists()
