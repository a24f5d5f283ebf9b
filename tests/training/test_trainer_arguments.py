"""What each argument of the Trainer does, on runs of a few steps."""

import functools
import json
import logging
import os

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.training import trainer as trainer_module
from t2t_lite.training.evaluator import Evaluation
from t2t_lite.training.settings import EarlyStopping
from t2t_lite.training.trainer import Trainer
from tests.training.runs import HPARAMS, PROBLEM, arguments, checkpoints, log, small_trainer

pytestmark = pytest.mark.slow  # runs, each for several of them


@pytest.fixture(scope="module")
def run(data_dir, tmp_path_factory):
    """A run of four steps with settings that are not the usual ones, and the metrics of its last evaluation."""
    folder = tmp_path_factory.mktemp("run")
    hparams = HPARAMS.replace("eval_decode_examples=3", "eval_decode_examples=0")
    metrics = small_trainer(
        data_dir, folder, hparams, evaluates=True, best_checkpoint_metric="token_accuracy", keep_checkpoint_max=0,
        save_checkpoints_secs=1e-9, usr_dir="of_mine", flags_text="--x=1\n", log_step_count_steps=1, eval_steps=1,
    ).train(4)  # fmt: skip
    return folder, metrics


def test_checkpoints_are_also_saved_by_the_clock_and_all_are_kept_where_that_is_asked(run):
    assert checkpoints(run[0]) == [f"model.ckpt-{step}" for step in (1, 2, 3, 4)]


@pytest.mark.slow
def test_evaluations_are_of_so_many_batches_and_at_their_steps_alone(run, data_dir):
    folder, metrics = run
    logged = log(folder, "evaluation")
    assert [line["step"] for line in logged] == [3, 4]
    assert metrics["loss"] == pytest.approx(logged[-1]["loss"], rel=1e-5)
    one, every = (
        Trainer(data_dir=data_dir, output_dir=str(folder), **arguments(eval_steps=n)).evaluate() for n in (1, 0)
    )
    assert one["loss"] == pytest.approx(metrics["loss"], rel=1e-5)
    assert every["loss"] != pytest.approx(metrics["loss"], rel=1e-5)


def test_the_best_is_by_the_metric_that_was_asked_for(run):
    lines = log(run[0], "best")
    assert lines and {line["metric"] for line in lines} == {"token_accuracy"}
    assert os.listdir(run[0] / "best")


def test_what_is_remembered_for_later_commands(run):
    folder, _ = run
    assert (folder / "flags.txt").read_text() == "--x=1\n"
    config = json.loads((folder / "hparams.json").read_text())
    assert config["usr_dir"] == os.path.abspath("of_mine")
    assert (config["vocab_size"], config["target_vocab_size"], config["batches_a_step"]) == (12, None, 1)
    encoders = registry.problem(PROBLEM).get_feature_encoders("")
    assert config["vocabulary_sha256"] == {side: encoder.fingerprint for side, encoder in encoders.items()}


def test_there_is_a_line_of_progress_as_often_as_asked_for(run):
    assert [line["step"] for line in log(run[0]) if line["event"] == "progress"] == [1, 2, 3, 4]


def test_the_first_weights_follow_from_the_seed(data_dir, tmp_path):
    def first(seed):
        begun = small_trainer(data_dir, tmp_path / str(seed), f"{HPARAMS},random_seed={seed}")
        assert begun.train(0) == {} and begun.ended_by == "train_steps"
        return np.concatenate([weight.numpy().ravel() for weight in begun.trained.trainable_weights])

    one, other, again = first(1), first(2), first(1)
    np.testing.assert_array_equal(one, again)
    assert (one != other).mean() > 0.5


TEXTS = [("in", "out", "reference")]
METRICS = {"loss": 1.0, "perplexity": 2.7, "token_accuracy": 0.5}


class Noted:
    """An evaluator that notes what it is made of."""

    def __init__(self, made, *args):
        made.append(args)

    def __call__(self):
        return Evaluation(METRICS, TEXTS)

    def shown(self, names):
        return names


@pytest.mark.parametrize("translate_all", [False, True])
def test_what_evaluates_is_made_of_and_what_is_said(data_dir, tmp_path, monkeypatch, caplog, translate_all):
    made = []
    monkeypatch.setattr(trainer_module, "Evaluator", functools.partial(Noted, made))
    of_run = small_trainer(
        data_dir, tmp_path, evaluates=True, best_checkpoint_metric="none", eval_steps=7, search={"alpha": 0.9},
        translate_all=translate_all, deterministic=False, inexact=["--x: y"], eval_throttle_seconds=5,
        early_stopping=EarlyStopping(9),
    )  # fmt: skip
    with caplog.at_level(logging.INFO, "t2t_lite"):
        assert of_run.train(1) == METRICS
    ((model, encoders, hparams, records, settings, _),) = made
    assert model is of_run.trained and records.problem.full_name == PROBLEM and hparams.eval_decode_examples == 3
    assert {side: encoder.vocab_size for side, encoder in encoders.items()} == {"inputs": 12, "targets": 12}
    assert records.paths == Records(registry.problem(PROBLEM), data_dir, "eval").paths
    assert (settings.eval_steps, settings.search, settings.translate_all) == (7, {"alpha": 0.9}, translate_all)
    assert (tmp_path / "decode").exists() == translate_all
    assert not (tmp_path / "best").exists()
    (said,) = [record.message for record in caplog.records if "reproducible" in record.message]
    for word in ("but for: --x: y", "--nodeterministic", "--eval_throttle_seconds"):
        assert word in said
    (start,) = log(tmp_path, "start")
    assert (start["deterministic"], start["random_seed"]) == (False, 429459)


def test_the_name_of_a_set_is_a_set_of_hparams(data_dir, tmp_path):
    made = Trainer(PROBLEM, hparams="transformer_tiny", data_dir=data_dir, output_dir=str(tmp_path))
    made.check()
    hparams = registry.problem(PROBLEM).model_hparams(registry.hparams("transformer_tiny"))
    assert made.hparams.values() == hparams.values() and made.hparams_set == "transformer_tiny"
