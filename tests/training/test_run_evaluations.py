"""What a run does with its evaluations: best model, early end, log, TensorBoard, and evaluating checkpoints later."""

# Nearest tests of: t2t_lite/training/trainer.py, t2t_lite/training/monitor.py, t2t_lite/training/run_context.py

import glob
import json
import logging
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.runs.opening import open_run
from t2t_lite.training import EarlyStopping
from tests.training.log_schema import assert_documented
from tests.training.runs import EXAMPLES, SIZES, assert_same, checkpoints, log, small_trainer, state, trainer

pytestmark = pytest.mark.slow  # it trains and evaluates

HPARAMS = f"{SIZES},eval_beam_size=4,eval_decode_examples="
STOPS_AT_ONCE = EarlyStopping(6, "loss", 100.0)  # nothing moves that much


def evaluated(data_dir, output_dir, translated=0, **more):
    make = trainer if translated else small_trainer
    return make(data_dir, output_dir, f"{HPARAMS}{translated}", **{"evaluates": True, **more})


def events(output_dir, event, name="train.log"):
    return log(output_dir, event, name)


class _Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@pytest.fixture(scope="module")
def run(data_dir, tmp_path_factory):
    """A run with all that can be seen of one: (folder, what it said)."""
    folder, said, logger = tmp_path_factory.mktemp("run"), _Lines(), logging.getLogger("t2t_lite")
    logger.addHandler(said)
    logger.setLevel(logging.INFO)
    evaluated(
        data_dir, folder, 5, profile=True, translate_all=True, search={"beam_size": 1}, eval_throttle_seconds=0.001,
        inexact=("--x: y",), local_eval_frequency=8,
    ).train(16)  # fmt: skip
    logger.removeHandler(said)
    logger.setLevel(logging.NOTSET)
    return folder, said.lines


def tensorboard(folder):
    """Returns {tag: {step: tensor}} of a folder's events."""
    found = {}
    for path in sorted(glob.glob(f"{folder}/events.out.tfevents*")):
        for record in tf.data.TFRecordDataset(path):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = tf.make_ndarray(value.tensor)
    return found


def test_progress_is_said_logged_and_drawn(run):
    folder, said = run
    lines = events(folder, "progress")
    assert [line["step"] for line in lines] == [2, 4, 6, 8, 10, 12, 14, 16]
    drawn = tensorboard(folder)
    for name in lines[-1].keys() - {"time", "event", "step"}:
        assert drawn[name][16] == pytest.approx(lines[-1][name], rel=1e-4, abs=1e-9), name
    (first,) = [line for line in said if line.startswith("first step: ")]
    assert first.endswith(" nats per target token")
    (shown,) = [line for line in said if line.startswith("step 16/16")]
    assert [field.split()[0] for field in re.split("  +", shown)][:2] == ["step", "loss"] and len(shown) < 80
    assert any(line.startswith("seed 429459: reproducible, except for: --x: y") for line in said)
    assert events(folder, "start")[0]["random_seed"] == 429459
    assert json.loads((folder / "hparams.json").read_text())["hparams"]["random_seed"] == 429459


def test_epochs_count_sentences(run):
    lines = log(run[0])
    sentences = sum(2 * line["sentences_per_step"] for line in lines if line["event"] == "progress")
    last = [line for line in lines if line["event"] == "checkpoint"][-1]
    assert last["sentences"] == pytest.approx(sentences, rel=1e-4)
    assert last["epochs"] == pytest.approx(sentences / EXAMPLES, rel=1e-4)
    assert last["data_batch"] == 16


def test_evaluations_are_drawn_with_five_translations(run):
    folder, _ = run
    logged = {line["step"]: line for line in events(folder, "evaluation")}
    assert list(logged) == [8, 16]
    drawn = tensorboard(folder / "eval")
    for step, line in logged.items():
        assert drawn["loss"][step] == pytest.approx(line["loss"], rel=1e-4)
        rows = drawn["translations"][step].item().decode().splitlines()
        assert rows[0] == "| input | output | reference |" and len(rows) == 2 + 5


def test_the_whole_dev_set_is_translated_where_that_is_asked_for(run, data_dir):
    lines = {
        name: (run[0] / f"decode/dev-16.{name}").read_text().splitlines() for name in ("inputs", "decodes", "targets")
    }
    assert len(set(map(len, lines.values()))) == 1
    assert [" ".join(reversed(line.split())) for line in lines["inputs"]] == lines["targets"]
    assert len(lines["inputs"]) > 5


def test_the_profile_is_written_once(run):
    assert len(glob.glob(f"{run[0]}/plugins/profile/*/*.xplane.pb")) == 1
    assert any(line.startswith("profile of 5 steps") for line in run[1])


def test_the_best_model_is_kept_in_a_folder_of_its_own(run):
    folder, _ = run
    losses = {line["step"]: line["loss"] for line in events(folder, "evaluation")}
    best = min(losses, key=lambda step: (losses[step], step))
    kept = open_run(str(folder / "best"))
    assert kept.step == best == events(folder, "best")[-1]["best_step"]
    same = open_run(str(folder / f"model.ckpt-{best}"))
    for one, other in zip(kept.model.get_weights(), same.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(list((folder / "best").glob("model.ckpt-*.index"))) == 1
    assert kept.config == same.config


def test_a_lost_best_model_is_made_again(run, data_dir, tmp_path):
    """As after a kill before it was written."""
    folder = shutil.copytree(run[0], tmp_path / "run")
    shutil.rmtree(folder / "best")
    evaluated(data_dir, folder, 5).train(16)
    assert open_run(str(folder / "best")).step == open_run(str(run[0] / "best")).step


@pytest.fixture(scope="module")
def stopped(data_dir, tmp_path_factory):
    """A run that ended early."""
    folder = tmp_path_factory.mktemp("stopped")
    ended = evaluated(
        data_dir, folder, early_stopping=STOPS_AT_ONCE, keep_checkpoint_max=1, keep_checkpoint_every_n_hours=1e-9
    )
    ended.train(30)
    return folder, ended.ended_by


def test_a_run_ends_early_and_does_not_train_on(stopped, data_dir, tmp_path):
    """Its checkpoints are kept for good as often as asked for."""
    folder, ended_by = stopped
    last = log(folder)[-1]
    assert (last["event"], last["step"], last["finished"], last["reason"]) == ("end", 9, True, "early_stopping")
    assert ended_by == "early_stopping" and checkpoints(folder) == [f"model.ckpt-{n}" for n in (3, 6, 9)]
    again = evaluated(data_dir, shutil.copytree(folder, tmp_path / "run"), early_stopping=STOPS_AT_ONCE)
    again.train(30)
    assert again.ended_by == "early_stopping" and [line["event"] for line in log(tmp_path / "run")[-2:]] == [
        "resume",
        "end",
    ]


@pytest.mark.parametrize("kept", ["checkpoint", "evaluation"])
def test_killed_before_the_end_it_ends_at_the_same_step(stopped, data_dir, tmp_path, kept):
    """Killed after the checkpoint of the last step, or after its evaluation, with a line cut off."""
    folder = shutil.copytree(stopped[0], tmp_path / "run")
    lines = (folder / "train.log").read_text().splitlines(keepends=True)
    at = max(i for i, line in enumerate(lines) if json.loads(line)["event"] == kept)
    (folder / "train.log").write_text("".join(lines[: at + 1]) + '{"time": 1, "eve')
    again = evaluated(data_dir, folder, early_stopping=STOPS_AT_ONCE)
    again.train(30)
    assert again.ended_by == "early_stopping"
    raw = (folder / "train.log").read_text().splitlines()
    lines = [json.loads(line) for line in raw if line != '{"time": 1, "eve']
    assert_documented(lines)
    assert [line["step"] for line in lines if line["event"] == "evaluation"] == [3, 6, 9]
    assert any(line["event"] == "resume" and line["step"] == 9 for line in lines)
    assert_same(state(folder, 9), state(stopped[0], 9))
