"""What a run leaves behind, and what it is evaluated by; tests/training/test_resumed_runs.py has parts of runs."""

# Nearest tests of: t2t_lite/training/trainer.py

import functools
import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.runs.opening import open_run
from t2t_lite.training import trainer as trainer_module
from t2t_lite.training.evaluator import Evaluation
from t2t_lite.training.settings import EarlyStopping
from t2t_lite.training.trainer import Trainer
from tests.training.runs import HPARAMS, PROBLEM, arguments, checkpoints, log, small_trainer, trainer

pytestmark = pytest.mark.slow  # of whole runs

WITHOUT_OUTPUTS = HPARAMS.replace("eval_decode_examples=3", "eval_decode_examples=0")


@pytest.fixture(scope="module")
def whole(data_dir, tmp_path_factory):
    """A run of seven steps without a break, with evaluations, and the metrics of the last one."""
    folder = tmp_path_factory.mktemp("whole")
    own = {"best_checkpoint_metric": "token_accuracy", "usr_dir": "of_mine", "flags_text": "--x=1\n"}
    return folder, trainer(data_dir, folder, evaluates=True, **own).train(7)


def test_what_a_run_leaves(whole):
    folder, metrics = whole
    assert {"hparams.json", "checkpoint", "train.log"} <= set(os.listdir(folder))
    assert any(name.startswith("events.out.tfevents") for name in os.listdir(folder))
    config = json.loads((folder / "hparams.json").read_text())
    assert (config["problem"], config["model"], config["hparams_set"]) == (PROBLEM, "transformer", "transformer_tiny")
    assert (config["hparams"]["hidden_size"], config["hparams"]["random_seed"]) == (16, 429459)
    assert (config["vocab_size"], config["target_vocab_size"], config["batches_a_step"]) == (12, None, 1)
    assert config["usr_dir"] == os.path.abspath("of_mine") and (folder / "flags.txt").read_text() == "--x=1\n"
    encoders = registry.problem(PROBLEM).get_feature_encoders("")
    assert config["vocabulary_sha256"] == {side: encoder.fingerprint for side, encoder in encoders.items()}
    assert checkpoints(folder) == ["model.ckpt-3", "model.ckpt-6", "model.ckpt-7"]
    assert set(metrics) == {"loss", "perplexity", "token_accuracy", "exact_sequence_accuracy"}
    assert metrics["perplexity"] == pytest.approx(np.exp(metrics["loss"]), rel=1e-5)  # six digits
    lines = log(folder)
    assert [line["step"] for line in lines if line["event"] == "evaluation"] == [3, 6, 7]
    progress = [line for line in lines if line["event"] == "progress"]
    assert [line["step"] for line in progress] == [2, 4, 6, 7]
    for line in progress:
        assert line["loss"] > 0 and line["target_tokens_per_step"] <= 256 and 0 <= line["padding"] < 1
    best = [line for line in lines if line["event"] == "best"]
    assert {line["metric"] for line in best} == {"token_accuracy"}
    assert open_run(str(folder / "best")).step == best[-1]["best_step"]


def test_settings_are_remembered_unless_others_are_given(data_dir, whole):
    metrics, one = (
        Trainer(data_dir=pathlib.Path(data_dir), output_dir=whole[0], **more).evaluate()
        for more in ({}, arguments(eval_steps=1))
    )
    assert metrics == pytest.approx(whole[1], rel=1e-5)
    assert one["loss"] != pytest.approx(metrics["loss"], rel=1e-5)


def test_a_moving_average_is_what_is_evaluated_and_before_the_first_step_the_model(data_dir, tmp_path):
    """As every command does that opens the checkpoint, whose model it is."""
    hparams = f"{WITHOUT_OUTPUTS},learning_rate_constant=0.1,learning_rate_schedule=constant"
    plain, averaged = (
        small_trainer(data_dir, tmp_path / name, f"{hparams},ema_decay={decay}", evaluates=True).train(0)["loss"]
        for name, decay in (("plain", 0.0), ("run", 0.9))
    )
    assert averaged == pytest.approx(plain)
    metrics = small_trainer(data_dir, tmp_path / "run", f"{hparams},ema_decay=0.9", evaluates=True).train(3)
    again = Trainer(data_dir=pathlib.Path(data_dir), output_dir=tmp_path / "run")
    assert again.evaluate("dev") == pytest.approx(metrics, rel=1e-5) and metrics["loss"] < averaged
    with pytest.raises(UserError, match="split='foo': expected one of train, eval, test"):
        again.evaluate("foo")


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "mixed_bfloat16"])
def test_every_dtype_trains(data_dir, tmp_path, dtype):
    small_trainer(data_dir, tmp_path, f"{HPARAMS},dtype_policy={dtype},clip_grad_norm=1").train(2)
    (line,) = log(tmp_path, "progress")
    assert np.isfinite([line["loss"], line["gradient_norm"]]).all() and line["gradient_norm"] > 0


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
    assert of_run.train(1) == METRICS
    ((model, encoders, hparams, records, settings, _),) = made
    assert model is of_run.trained and records.problem.full_name == PROBLEM and hparams.eval_decode_examples == 3
    assert {side: encoder.vocab_size for side, encoder in encoders.items()} == {"inputs": 12, "targets": 12}
    assert records.paths == Records(registry.problem(PROBLEM), data_dir, "eval").paths
    assert (settings.eval_steps, settings.search, settings.translate_all) == (7, {"alpha": 0.9}, translate_all)
    assert (tmp_path / "decode").exists() == translate_all
    assert not (tmp_path / "best").exists()
    (said,) = [record.message for record in caplog.records if "reproducible" in record.message]
    for word in ("--x: y", "--nodeterministic", "--eval_throttle_seconds"):
        assert word in said
    assert "learning_rate_warmup_steps=10 is longer than the run of 1 step" in caplog.text
    (start,) = log(tmp_path, "start")
    assert (start["deterministic"], start["random_seed"]) == (False, 429459)


def test_the_name_of_a_set_is_a_set_of_hparams(data_dir, tmp_path):
    made = Trainer(PROBLEM, hparams="transformer_tiny", data_dir=data_dir, output_dir=str(tmp_path))
    made.check()
    hparams = registry.problem(PROBLEM).model_hparams(registry.hparams("transformer_tiny"))
    assert made.hparams.values() == hparams.values() and made.hparams_set == "transformer_tiny"


def test_bfloat16_is_suggested_once_to_a_new_run(data_dir, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(trainer_module.bfloat16, "suggest", lambda setting, _, rows: calls.append((setting, rows)))
    for steps in (1, 2):
        trainer = small_trainer(data_dir, tmp_path)
        trainer.train(steps)
        assert calls == [("--hparams=dtype_policy=mixed_bfloat16", trainer.hparams.batch_size)]


def drawn(folder):
    """Returns {(name, step): value} of what TensorBoard shows of a folder's events."""
    records = tf.data.TFRecordDataset([str(path) for path in folder.glob("events.out.tfevents*")])
    events = [tf.compat.v1.Event.FromString(record.numpy()) for record in records]
    return {(each.tag, event.step): tf.make_ndarray(each.tensor) for event in events for each in event.summary.value}


def test_progress_is_drawn(whole):
    line, values = log(whole[0], "progress")[-1], drawn(whole[0])
    for name in line.keys() - {"time", "event", "step"}:
        assert values[name, 7] == pytest.approx(line[name], rel=1e-4, abs=1e-9), name


def test_a_run_ends_early_and_does_not_train_on(data_dir, tmp_path):
    """Its checkpoints are kept for good as often as asked for."""
    kept = {"keep_checkpoint_max": 1, "keep_checkpoint_every_n_hours": 1e-9}
    stopping = EarlyStopping(6, "loss", 100.0)  # nothing moves that much
    for _ in range(2):
        ended = small_trainer(data_dir, tmp_path, WITHOUT_OUTPUTS, evaluates=True, early_stopping=stopping, **kept)
        ended.train(30)
        assert ended.ended_by == "early_stopping" and checkpoints(tmp_path) == [f"model.ckpt-{n}" for n in (3, 6, 9)]
        end = log(tmp_path)[-1]
        assert (end["event"], end["step"], end["finished"], end["reason"]) == ("end", 9, True, "early_stopping")
