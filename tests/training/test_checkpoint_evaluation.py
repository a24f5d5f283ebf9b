"""Checkpoints that are evaluated later, once, as they appear, and by t2t-eval; also beside a trainer at work."""

import dataclasses
import json
import os
import shutil
import types

import pytest

from t2t_lite import registry
from t2t_lite.bin import t2t_eval
from t2t_lite.errors import UserError
from t2t_lite.runs.opening import open_run
from t2t_lite.training import checkpoint_evaluation
from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
from t2t_lite.training.evaluator import Evaluator
from t2t_lite.training.settings import EvaluationSettings
from tests.training.runs import EXAMPLES, PROBLEM, SIZES, log, small_trainer

pytestmark = pytest.mark.slow  # it trains and evaluates


@pytest.fixture(scope="module")
def made(data_dir, tmp_path_factory):
    """A run with checkpoints of steps 3, 6 and 9, which was evaluated at each."""
    folder = tmp_path_factory.mktemp("made")
    small_trainer(data_dir, folder, f"{SIZES},eval_beam_size=4,eval_decode_examples=0", evaluates=True).train(9)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(made, tmp_path / "run")


def test_checkpoints_evaluated_later_give_what_training_logged(folder, data_dir):
    logged = {line["step"]: line["loss"] for line in log(folder, "evaluation")}
    before = (folder / "train.log").read_bytes()
    found = dict(CheckpointEvaluation(str(folder), data_dir).follow())
    assert [os.path.basename(path) for path in found] == ["model.ckpt-3", "model.ckpt-6", "model.ckpt-9"]
    for path, metrics in found.items():
        assert metrics["loss"] == pytest.approx(logged[int(path.rsplit("-", 1)[1])], rel=1e-5)
    lines = log(folder, "evaluation", "eval.log")
    again = dict(CheckpointEvaluation(str(folder), data_dir).follow())
    assert again.keys() == found.keys() and log(folder, "evaluation", "eval.log") == lines  # done before: not again
    of_train = CheckpointEvaluation(str(folder), data_dir, "train").newest()
    assert of_train["loss"] != found[str(folder / "model.ckpt-9")]["loss"]
    assert os.path.isdir(folder / "eval_train")
    assert (folder / "train.log").read_bytes() == before


def test_records_of_another_vocabulary_are_refused(folder, data_dir, monkeypatch):
    def open_with_another_vocabulary(*given):
        run = open_run(*given)
        return dataclasses.replace(run, encoders=dict.fromkeys(run.encoders, types.SimpleNamespace(fingerprint="0")))

    monkeypatch.setattr(checkpoint_evaluation, "open_run", open_with_another_vocabulary)
    for evaluate in (CheckpointEvaluation.newest, lambda evaluation: [*evaluation.follow()]):
        with pytest.raises(UserError, match=f"--data_dir={data_dir}: its vocabulary for the inputs differs"):
            evaluate(CheckpointEvaluation(str(folder), data_dir))
    assert not (folder / "eval.log").exists()


@pytest.fixture
def followed(tmp_path, clock, monkeypatch):
    """Function of {seconds: what happens to a folder then} that returns [(seconds, step)] of what is evaluated.

    A checkpoint can be read if its index is not empty; an evaluation takes 3 s.
    """

    def evaluate(self, path, changed, is_last_try):
        clock.advance(3.0)
        if os.path.getsize(f"{path}.index"):
            return {"loss": 1.0}
        self._error = UserError(f"{path}: damaged") if is_last_try else None
        return None

    def happens(seconds):
        asleep(seconds)
        for at in [at for at in events if at <= clock.now - start]:
            events.pop(at)()

    def follow(given, **waits):
        events.clear()
        events.update(given)
        happens(0)
        following = CheckpointEvaluation(str(tmp_path), "data").follow(**waits)
        return [(clock.now - start, int(path.rpartition("-")[2])) for path, _ in following]

    start, events, asleep = clock.now, {}, clock.sleep
    monkeypatch.setattr(CheckpointEvaluation, "_evaluate_if_readable", evaluate)
    monkeypatch.setattr(checkpoint_evaluation.time, "sleep", happens)
    return follow


def test_checkpoints_are_waited_for_and_damaged_ones_read_twice(tmp_path, clock, followed, caplog):

    def write(step, text="x"):
        path = tmp_path / f"model.ckpt-{step}.index"
        path.write_text(text)
        os.utime(path, (clock.now, clock.now))

    start = clock.now
    events = {0: lambda: [write(2), write(10)], 9: lambda: write(20, ""), 30: lambda: [write(30), write(20)]}
    # The damaged one is read at 16 and 29 s, and once more after it was written again. Polls are at 58, 68 and 78 s.
    assert followed(events, timeout_seconds=30) == [(3, 2), (6, 10), (45, 20), (48, 30)]
    assert clock.now - start == 78 and "no new checkpoint for 0.5 minutes" in caplog.text
    for path in tmp_path.glob("*.index"):
        path.unlink()
    damaged = tmp_path / "model.ckpt-10.index"
    assert followed({0: lambda: [write(2), write(10, "")], 83: damaged.unlink}) == [(81, 2)], "it is set aside"
    (tmp_path / "model.ckpt-2.index").unlink()
    with pytest.raises(UserError, match=f"--output_dir={tmp_path}: .*no checkpoint"):
        followed({})
    with pytest.raises(UserError, match=r"model\.ckpt-5: damaged"):
        followed({0: lambda: write(5, "")})
    assert clock.sleeps[-1] == 10, "it is read again at the next poll"


def test_with_other_settings_a_checkpoint_is_evaluated_again(folder, data_dir):
    for path in (*folder.glob("model.ckpt-3.*"), *folder.glob("model.ckpt-6.*")):
        path.unlink()

    def lines(changes=(), **options):
        arguments = EvaluationSettings(**options), lambda trained: trained.override_from_dict(dict(changes))
        ((path, _),) = CheckpointEvaluation(str(folder), data_dir, "eval", *arguments).follow()
        assert os.path.basename(path) == "model.ckpt-9"
        return log(folder, "evaluation", "eval.log")

    free = {"batch_size": 300, "eval_beam_size": 1, "eval_alpha": 0.1}
    assert len(lines()) == 1
    assert len(lines(eval_steps=1)) == 2
    assert len(lines(free)) == 3
    assert len(lines(search={"beam_size": 2})) == 4
    default = {"eval_tokenization": "13a"}  # as where it is not set
    assert len(lines(default)) == 4
    os.utime(folder / "model.ckpt-9.index", (1, 1))  # it was written at another time
    settings = [line["settings"] for line in lines()]
    assert settings[0] == settings[4] and settings[2].items() >= free.items()
    assert settings[1]["eval_steps"] == 1 and settings[3]["beam_size"] == 2
    other = {"eval_tokenization": "char"}
    assert lines(other)[5]["settings"].items() >= other.items()


def test_other_records_are_evaluated_again_but_not_moved_ones(folder, data_dir, tmp_path):
    def lines(records):
        assert len(dict(CheckpointEvaluation(str(folder), str(records)).follow())) == 3
        return log(folder, "evaluation", "eval.log")

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
    assert os.path.basename(next(following)[0]) == "model.ckpt-3"
    for path in folder.glob("model.ckpt-4.*"):
        path.unlink()
    for path in later.iterdir():
        shutil.move(path, folder)
    assert [os.path.basename(path) for path, _ in following] == ["model.ckpt-9"]
    assert "model.ckpt-4 has been deleted" in caplog.text
    assert "model.ckpt-6: damaged" in caplog.text


def test_a_run_that_replaces_another_is_evaluated_with_its_own_settings(folder, data_dir):
    """Its weights may fit the model of the other one."""
    following = CheckpointEvaluation(str(folder), data_dir).follow()
    next(following)
    config = json.loads((folder / "hparams.json").read_text())
    config["hparams"]["batch_size"] = 300
    (folder / "hparams.json").write_text(json.dumps(config))
    assert len([*following]) == 2
    assert [line["settings"]["batch_size"] for line in log(folder, "evaluation", "eval.log")] == [256, 300, 300]


def test_a_run_that_is_being_deleted_is_waited_for(folder, data_dir, caplog):
    following = CheckpointEvaluation(str(folder), data_dir).follow()
    next(following)
    for path in (*folder.glob("model.ckpt-*"), folder / "hparams.json"):
        path.unlink()
    assert not [*following] and "model.ckpt-9 has been deleted" in caplog.text


def test_t2t_eval(folder, data_dir, capsys):
    flags = f"--output_dir={folder}", f"--data_dir={data_dir}", "--eval_timeout_mins=0"
    assert t2t_eval.main([*flags, "--eval_steps=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3:2] for line in lines] == [[str(folder / f"model.ckpt-{n}"), "="] for n in (3, 6, 9)]
    for more, word in (
        ("--hparams=hidden_size=8", "hidden_size=8"),
        ("--problem=algorithmic_identity_decimal40", "trained with problem="),
        ("--eval_use_test_set", "-test-"),
    ):
        assert t2t_eval.main([*flags, more]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and word in err
