"""What a run does with its evaluations: best model, early end, log, TensorBoard, and evaluating checkpoints later."""

import glob
import json
import logging
import os
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.bin import t2t_eval
from t2t_lite.cli import console
from t2t_lite.errors import UserError
from t2t_lite.runs.opening import open_run
from t2t_lite.training import EarlyStopping, checkpoint_evaluation, loop
from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
from t2t_lite.training.evaluator import Evaluator
from t2t_lite.training.progress import ProgressLine
from t2t_lite.training.settings import EvaluationSettings
from tests.training.log_schema import assert_documented
from tests.training.runs import EXAMPLES, PROBLEM, SIZES, log, small_trainer, trainer

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
    assert any(line.startswith("seed 429459: reproducible, but for: --x: y") for line in said)
    assert events(folder, "start")[0]["random_seed"] == 429459
    assert json.loads((folder / "hparams.json").read_text())["hparams"]["random_seed"] == 429459


def test_slow_steps_are_shown_before_there_are_enough_for_the_log(data_dir, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "t2t_lite")
    monkeypatch.setattr(ProgressLine, "is_due", True)
    monkeypatch.setattr(console, "SECONDS", 0.0)  # the first step takes longer
    evaluated(data_dir, tmp_path, evaluates=False, log_step_count_steps=3).train(4)
    assert caplog.messages.count(loop.TRACING) == 1
    shown = [" ".join(line.split()[:2]) for line in caplog.messages if line.startswith(("first step", "step "))]
    assert shown == ["first step:", "step 1/4", "step 2/4", "step 3/4", "step 4/4"]
    assert [line["step"] for line in events(tmp_path, "progress")] == [3, 4]


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


def weights(path):
    reader = tf.train.load_checkpoint(str(path))
    return {
        k: reader.get_tensor(k) for k in reader.get_variable_to_shape_map() if k.startswith(("model/", "optimizer/"))
    }


def test_a_run_ends_early_and_says_why(stopped):
    folder, ended_by = stopped
    last = log(folder)[-1]
    assert (last["event"], last["step"], last["finished"], last["reason"]) == ("end", 9, True, "early_stopping")
    assert ended_by == "early_stopping"


def test_checkpoints_are_kept_for_good_as_often_as_asked_for(stopped):
    assert sorted(path.stem for path in stopped[0].glob("model.ckpt-*.index")) == [f"model.ckpt-{n}" for n in (3, 6, 9)]


def test_it_does_not_train_on(stopped, data_dir, tmp_path, caplog):
    folder = shutil.copytree(stopped[0], tmp_path / "run")
    with caplog.at_level(logging.INFO, "t2t_lite"):
        again = evaluated(data_dir, folder, early_stopping=STOPS_AT_ONCE)
        again.train(30)
    assert again.ended_by == "early_stopping"
    assert "stopped early: loss was" in caplog.text and "nothing to train" in caplog.text
    assert [line["event"] for line in log(folder)[-2:]] == ["resume", "end"]


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
    expected, got = weights(stopped[0] / "model.ckpt-9"), weights(folder / "model.ckpt-9")
    for key in expected:
        np.testing.assert_array_equal(got[key], expected[key], err_msg=key)


def test_an_evaluation_too_soon_is_left_out_but_for_the_last(data_dir, tmp_path):
    evaluated(data_dir, tmp_path, eval_throttle_seconds=3600).train(7)
    assert [line["step"] for line in events(tmp_path, "evaluation")] == [3, 7]
    assert [line["step"] for line in events(tmp_path, "checkpoint")] == [3, 6, 7]


@pytest.fixture
def folder(stopped, tmp_path):
    """A folder with the checkpoints of steps 3, 6 and 9."""
    return shutil.copytree(stopped[0], tmp_path / "run")


def test_checkpoints_evaluated_later_give_what_training_logged(folder, data_dir):
    logged = {line["step"]: line["loss"] for line in events(folder, "evaluation")}
    before = (folder / "train.log").read_bytes()
    found = dict(CheckpointEvaluation(str(folder), data_dir).follow())
    assert [os.path.basename(path) for path in found] == ["model.ckpt-3", "model.ckpt-6", "model.ckpt-9"]
    for path, metrics in found.items():
        assert metrics["loss"] == pytest.approx(logged[int(path.rsplit("-", 1)[1])], rel=1e-5)
    lines = events(folder, "evaluation", "eval.log")
    again = dict(CheckpointEvaluation(str(folder), data_dir).follow())
    assert again.keys() == found.keys() and events(folder, "evaluation", "eval.log") == lines  # done before: not again
    of_train = CheckpointEvaluation(str(folder), data_dir, "train").newest()
    assert of_train["loss"] != found[str(folder / "model.ckpt-9")]["loss"]
    assert os.path.isdir(folder / "eval_train")
    assert (folder / "train.log").read_bytes() == before


def test_with_other_settings_a_checkpoint_is_evaluated_again(folder, data_dir):
    for path in (*folder.glob("model.ckpt-3.*"), *folder.glob("model.ckpt-6.*")):
        path.unlink()

    def lines(change_hparams=None, **options):
        settings = EvaluationSettings(**options)
        ((path, _),) = CheckpointEvaluation(str(folder), data_dir, "eval", settings, change_hparams).follow()
        assert os.path.basename(path) == "model.ckpt-9"
        return events(folder, "evaluation", "eval.log")

    free = {"batch_size": 300, "eval_beam_size": 1, "eval_alpha": 0.1}
    assert len(lines()) == 1
    assert len(lines(eval_steps=1)) == 2
    assert len(lines(change_hparams=lambda trained: trained.override_from_dict(free))) == 3
    assert len(lines(search={"beam_size": 2})) == 4
    default = {"eval_tokenization": "13a"}  # as where it is not set
    assert len(lines(change_hparams=lambda trained: trained.override_from_dict(default))) == 4
    os.utime(folder / "model.ckpt-9.index", (1, 1))  # it was written at another time
    settings = [line["settings"] for line in lines()]
    assert settings[0] == settings[4] and settings[2].items() >= free.items()
    assert settings[1]["eval_steps"] == 1 and settings[3]["beam_size"] == 2
    other = {"eval_tokenization": "char"}
    assert (
        lines(change_hparams=lambda trained: trained.override_from_dict(other))[5]["settings"].items() >= other.items()
    )


def test_other_records_are_evaluated_again_but_not_moved_ones(folder, data_dir, tmp_path):
    def lines(records):
        assert len(dict(CheckpointEvaluation(str(folder), str(records)).follow())) == 3
        return events(folder, "evaluation", "eval.log")

    before = lines(data_dir)
    assert lines(shutil.copytree(data_dir, tmp_path / "moved")) == before
    other = registry.problem(PROBLEM)
    other.max_cases = EXAMPLES // 2
    (tmp_path / "other").mkdir()
    other.generate_data(str(tmp_path / "other"), str(tmp_path))
    after = lines(tmp_path / "other")
    assert len(after) == 6 and not {line["loss"] for line in before} & {line["loss"] for line in after[3:]}
    for line in before:
        del line["settings"]["records"]  # as an earlier version has it
    (folder / "eval.log").write_text("".join(json.dumps(line) + "\n" for line in before))
    assert len(lines(data_dir)) == 6


def test_a_folder_that_can_only_be_read_is_refused_before_the_work(folder, data_dir, monkeypatch):
    evaluation = CheckpointEvaluation(str(folder), data_dir)
    done = evaluation.newest()
    for path in (*folder.glob("model.ckpt-3.*"), *folder.glob("model.ckpt-6.*")):
        path.unlink()
    (folder / ".t2t_lite_probe").mkdir()  # for root all folders are writable
    monkeypatch.setattr(Evaluator, "__call__", None)
    with pytest.raises(UserError, match=f"^{folder}: "):
        evaluation.newest()
    assert [metrics for _, metrics in evaluation.follow()] == [pytest.approx(done, rel=1e-4)], "it is in the log"


def test_new_damaged_and_deleted_checkpoints(folder, data_dir, tmp_path, caplog):
    """What a trainer at work does meanwhile: writes one more; one is half-written; one is gone before it is read."""
    later = tmp_path / "later"
    later.mkdir()
    for path in folder.glob("model.ckpt-9.*"):
        shutil.move(path, later)
    half = folder / "model.ckpt-6.data-00000-of-00001"
    half.write_bytes(half.read_bytes()[:100])
    for path in folder.glob("model.ckpt-3.*"):
        shutil.copy(path, folder / path.name.replace("-3.", "-4."))
    following = CheckpointEvaluation(str(folder), data_dir).follow(timeout_seconds=2, poll_seconds=0.05)
    with caplog.at_level(logging.INFO, "t2t_lite"):
        assert os.path.basename(next(following)[0]) == "model.ckpt-3"
        for path in folder.glob("model.ckpt-4.*"):
            path.unlink()
        for path in later.iterdir():
            shutil.move(path, folder)
        assert [os.path.basename(path) for path, _ in following] == ["model.ckpt-9"]
    assert "model.ckpt-4: deleted meanwhile" in caplog.text
    assert "model.ckpt-6: damaged" in caplog.text


def test_a_damaged_checkpoint_that_is_set_aside_is_not_waited_for(folder, data_dir, monkeypatch):
    half = folder / "model.ckpt-6.data-00000-of-00001"
    half.write_bytes(half.read_bytes()[:100])

    def set_aside(seconds):
        for path in folder.glob("model.ckpt-6.*"):
            path.rename(folder / f"damaged-{path.name}")

    monkeypatch.setattr(checkpoint_evaluation.time, "sleep", set_aside)
    following = CheckpointEvaluation(str(folder), data_dir).follow()
    assert [os.path.basename(path) for path, _ in following] == ["model.ckpt-3", "model.ckpt-9"]


def test_t2t_eval(folder, data_dir, capsys, tmp_path):
    flags = f"--output_dir={folder}", f"--data_dir={data_dir}", "--eval_timeout_mins=0"
    assert t2t_eval.main([*flags, "--eval_steps=1", "--train_steps=5"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == [str(folder / f"model.ckpt-{n}") for n in (3, 6, 9)]
    assert all("loss = " in line for line in lines)
    assert "--train_steps has no effect" in err
    for more, word in (
        ("--hparams=hidden_size=8", "hidden_size=8"),
        ("--problem=algorithmic_identity_decimal40", "trained with problem="),
        ("--eval_use_test_set", "-test-"),
        ("--decode_hparams=return_beams=true", "return_beams has no effect in evaluations"),
        (f"--output_dir={tmp_path / 'nowhere'}", "no such folder or checkpoint"),
    ):
        others = [flag for flag in flags if flag.split("=")[0] != more.split("=")[0]]
        assert t2t_eval.main([*others, more]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and word in err
