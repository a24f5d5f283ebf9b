"""The loop around steps that compute nothing: when it reads, saves, evaluates, shows and ends, on a moved clock."""

import contextlib
import itertools
import threading
import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data.problem import Problem
from t2t_lite.errors import Failure
from t2t_lite.runs.log import RunLog
from t2t_lite.settings.config import HParams
from t2t_lite.training import loop as loop_module
from t2t_lite.training.cluster import Cluster
from t2t_lite.training.distribution import Replicas
from t2t_lite.training.loop import TrainingLoop, explaining_out_of_memory
from t2t_lite.training.settings import CheckpointSettings, LogSettings
from tests import faults

ROWS, WIDTH, SECONDS = 3, 5, 4.0  # of a batch; of a step on the clock
EXAMPLES = 40


class Run:
    """What a `TrainingLoop` works with. Each step takes two batches; a save takes 1 s, an evaluation 30 s.

    Attributes:
        saved: list of (step, position in the data, batches read from the stream).
        evaluated: list of (step, is_last).
        caught_up: list of (step, is_due).
        on_step: {step: function}, called in that step.
        why: {step: str}, why the monitor ends the run.
    """

    def __init__(self, folder, clock, step=0, cluster=None, hparams="", log=None, **checkpoints):
        self.folder, self.clock, self.replicas = folder, clock, Replicas(None, 1, "one", cluster)
        self.saved, self.evaluated, self.caught_up, self.on_step, self.why, self.read = [], [], [], {}, {}, 0
        self.step, self.position, self.checked, self.stopped = step, 2 * step, [], threading.Event()
        self.replicas.check_same = lambda value, what: self.checked.append((value, what))
        data = types.SimpleNamespace(
            records=types.SimpleNamespace(paths=["a"]), problem=Problem(), examples=EXAMPLES,
            source=types.SimpleNamespace(rows_per_example=1),
        )  # fmt: skip
        self.context = types.SimpleNamespace(
            output_dir=str(folder), data=data, replicas=self.replicas, checkpoints=CheckpointSettings(**checkpoints),
            progress=log or LogSettings(), log=RunLog(str(folder), not self.replicas.is_chief),
        )  # fmt: skip
        rate = types.SimpleNamespace(_learning_rate=0.25, iterations=np.array(1))
        self.hparams = HParams(batch_size=ROWS * WIDTH).parse(hparams)
        self.state = types.SimpleNamespace(
            train_step=self, optimizer=rate, checkpoints=self, step=step, batches_read=2 * step,
            iterator=self._stream(), set_position=self._set_position,
        )  # fmt: skip
        self.features, self.batches_a_step, self.accumulation = ("inputs", "targets"), 2, 2

    def _stream(self):
        for _ in itertools.count():
            self.read += 1
            ids = np.full((ROWS, WIDTH), 7, "int32")
            yield {"inputs": ids, "targets": ids}

    # The train step.

    def place(self, batches):
        return batches

    def __call__(self, placed, stop=False):
        self.step += 1
        self.clock.advance(SECONDS)
        self.on_step.get(self.step, lambda: None)()
        each = {"targets": tf.constant(30.0 * self.step)}
        metrics = {"nats": each, "objective": each, "cost": {}, "gradient_norm": tf.constant(1.0)}
        return {**metrics, "skipped": tf.constant(0.0), "stops": tf.constant(float(stop))}

    # The compilations.

    def watched(self, step, batches):
        assert (step, len(batches)) == (self.step + 1, 2)
        return contextlib.nullcontext(False)

    # The checkpoints.

    def _set_position(self, step, batches):
        self.position = batches.end

    def save(self, step):
        self.clock.advance(1.0)
        for part in ("index", "data-00000-of-00001"):
            (self.folder / f"model.ckpt-{step}.{part}").touch()
        self.saved.append((step, self.position, self.read))
        return str(self.folder / f"model.ckpt-{step}")

    def save_apart(self, path):
        self.saved.append((path, self.position, self.read))

    # The monitor.

    def catch_up(self, step, is_due):
        self.caught_up.append((step, is_due))
        return {"loss": -1.0}

    def evaluate(self, step, is_last):
        self.clock.advance(30.0)
        self.evaluated.append((step, is_last))
        return {"loss": float(step)}

    def reason_to_stop(self):
        return self.why.get(self.step)

    def train(self, steps):
        """Runs the loop; returns it."""
        loop = TrainingLoop(self.context, self.state, self, self)
        self.metrics = loop.run(steps, self.stopped)
        return loop

    def log(self, event):
        return [line for line in self.context.log.read() if line["event"] == event]

    def saves(self):
        return [step for step, *_ in self.saved]


def test_it_saves_and_evaluates_every_so_many_steps_and_at_the_end(tmp_path, clock):
    """The stream is never ahead of a checkpoint, and what the log says of it can be worked out."""
    run = Run(tmp_path, clock, local_eval_frequency=3)
    assert run.train(7).ended_by == "train_steps" and run.metrics == {"loss": 7.0}
    assert run.saved == [(step, 2 * step, 2 * step) for step in (3, 6, 7)]
    assert run.evaluated == [(3, False), (6, False), (7, True)] and run.caught_up == [(0, False)]
    for line in run.log("checkpoint"):
        step, sentences = line["step"], 2 * ROWS * line["step"]
        assert (line["path"], line["data_batch"], line["seconds"]) == (f"model.ckpt-{step}", 2 * step, 1.0)
        assert (line["sentences"], line["epochs"]) == (sentences, pytest.approx(sentences / EXAMPLES))
    assert [(line["step"], line["finished"], line["reason"]) for line in run.log("end")] == [(7, True, "train_steps")]
    assert run.checked == [(7, "last step")]


@pytest.mark.parametrize(
    ("seconds", "evaluations", "expected"),
    [
        (13, 100, [5, 10, 12]),  # before step 5, at 16 s, it is time; saved at 21 s, and again before step 10, at 37 s
        (8, 100, [3, 6, 9, 12]),  # 8 s are enough
        (13, 5, [5, 6, 10, 11, 12]),  # an evaluation takes 30 s of that time
        (0, 100, [12]),
    ],
)
def test_it_saves_by_the_clock_as_well(tmp_path, clock, seconds, evaluations, expected):
    run = Run(tmp_path, clock, save_checkpoints_secs=seconds, local_eval_frequency=evaluations)
    run.train(12)
    assert run.saves() == expected
    assert [step for step, _ in run.evaluated] == [*range(evaluations, 12, evaluations), 12]


@pytest.mark.parametrize(("step", "train_steps"), [(0, 0), (6, 6), (7, 7), (9, 7)], ids=str)
def test_a_run_that_has_nothing_left_makes_up_for_what_a_kill_left_out(tmp_path, clock, caplog, step, train_steps):
    run = Run(tmp_path, clock, step=step, local_eval_frequency=3)
    assert run.train(train_steps).ended_by == "train_steps"
    assert (run.caught_up, run.metrics, run.read) == ([(step, True)], {"loss": -1.0}, 0)
    assert f"nothing to train: the run is at step {step} and train_steps={train_steps}." in caplog.text
    assert [(line["step"], line["finished"]) for line in run.log("end")] == [(step, True)]


@pytest.mark.parametrize(("step", "every", "is_due"), [(0, 1, False), (1, 1, True), (3, 3, True), (4, 3, False)])
def test_a_resumed_run_is_evaluated_where_an_evaluation_is_due(tmp_path, clock, step, every, is_due):
    run = Run(tmp_path, clock, step=step, local_eval_frequency=every)
    run.train(step + 1)
    assert run.caught_up == [(step, is_due)] and run.saves() == [step + 1]


def test_a_run_that_ended_early_does_not_train_on(tmp_path, clock, caplog):
    run = Run(tmp_path, clock, step=4, local_eval_frequency=3)
    run.why = {4: "loss was 3"}
    assert run.train(9).ended_by == "early_stopping" and not run.saved and run.read == 0
    assert "nothing to train: stopped early: loss was 3." in caplog.text
    run = Run(tmp_path, clock, local_eval_frequency=3)
    run.why = {6: "loss was 5"}
    assert run.train(9).ended_by == "early_stopping" and run.saves() == [3, 6]
    assert "stopped early at step 6: loss was 5." in caplog.text
    end = run.log("end")[-1]
    assert (end["step"], end["finished"], end["reason"]) == (6, True, "early_stopping")


@pytest.mark.parametrize(
    ("at", "saves", "last"), [(2, [3], 3), (3, [3, 4], 4), (5, [3, 6], 6), (8, [3, 6, 8], 8)], ids=str
)
def test_a_signal_ends_it_after_the_next_step_which_is_saved_once(tmp_path, clock, caplog, at, saves, last):
    run = Run(tmp_path, clock, local_eval_frequency=3)
    run.on_step = {at: run.stopped.set}
    ended = run.train(8).ended_by
    assert (run.saves(), ended) == (saves, "train_steps" if last == 8 else "signal")
    assert run.saved[-1][1:] == (2 * last, 2 * last), "the next step's batches were not read"
    assert ("stopped by a signal at step" in caplog.text) == (last < 8)
    (line,) = run.log("progress")
    assert (line["step"], line["loss"]) == (last, np.mean(range(1, last + 1))), "of all its steps"
    assert [(line["step"], line["finished"]) for line in run.log("end")] == [(last, last == 8)]


@pytest.mark.parametrize("is_first", [False, True])
def test_a_signal_before_the_first_step_leaves_no_checkpoint_and_one_before_its_call_does(tmp_path, clock, is_first):
    run = Run(tmp_path, clock)
    if is_first:
        run.place = lambda batches: run.stopped.set() or batches
    else:
        run.stopped.set()
    assert run.train(8).ended_by == "signal" and run.saved == ([(1, 2, 2)] if is_first else [])
    assert run.log("end")[0]["finished"] is False and run.read == (2 if is_first else 0)


@pytest.mark.parametrize(("index", "saves"), [(0, [10, 11]), (1, [])])
def test_machines_end_after_the_same_step_which_they_learn_with_the_metrics(tmp_path, clock, index, saves):
    """The other one's signal comes in step 4; all fetch after steps 1, 10, …, and one more step follows."""
    run = Run(tmp_path, clock, cluster=Cluster(("a:1", "b:2"), index), local_eval_frequency=10)
    real = run.__class__.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "__call__", lambda self, placed, stop: real(self, placed, stop or self.step == 3))
        assert run.train(100).ended_by == "signal"
    assert run.step == 11 and run.saves() == saves and run.checked == [(11, "last step")]


@pytest.mark.parametrize(
    ("hparams", "machines", "expected"),
    [("", 1, [1, 100, 200, 230]), (f"batch_size={2**18}", 1, [*([1], range(16, 230, 16), [230])]), ("", 2, None)],
)
def test_metrics_stay_on_the_device_as_long_as_their_batches_fit(
    tmp_path, clock, monkeypatch, hparams, machines, expected
):
    """64 MiB are held: 16 steps of two batches of 2^18 tokens in two features of four bytes."""
    fetched, real = [], loop_module.fetch
    monkeypatch.setattr(loop_module, "fetch", lambda results: fetched.append(run.step) or real(results))
    monkeypatch.setattr(loop_module.TrainingProgress, "is_due", False)
    cluster = Cluster(("a:1", "b:2"), 0) if machines > 1 else None
    run = Run(tmp_path, clock, hparams=hparams, cluster=cluster, log=LogSettings(1000), local_eval_frequency=1000)
    run.train(230)
    if expected is None:
        expected = [1, *range(10, 231, 10)]
    assert fetched == [*itertools.chain.from_iterable([e] if isinstance(e, int) else e for e in expected)]


def test_progress_is_logged_every_so_many_steps_and_shown_when_it_is_due(tmp_path, clock, caplog, monkeypatch):
    run, waits = Run(tmp_path, clock, log=LogSettings(3), local_eval_frequency=2), []
    monkeypatch.setattr(loop_module, "waiting", lambda what: waits.append((run.step, what)) or contextlib.nullcontext())
    run.train(7)
    assert waits == [(0, loop_module.TRACING)]
    assert [(line["step"], line["learning_rate"]) for line in run.log("progress")] == [(3, 0.25), (6, 0.25), (7, 0.25)]
    means = [np.mean([1, 2, 3]), np.mean([4, 5, 6]), 7]
    assert [line["loss"] for line in run.log("progress")] == means
    assert run.log("progress")[1]["seconds_per_step"] == SECONDS, "without pauses for checkpoints and evaluations"
    (tmp_path / "slow").mkdir()
    run = Run(tmp_path / "slow", clock, log=LogSettings(100), local_eval_frequency=100)
    caplog.clear()
    run.train(20)
    shown = [message.partition("/")[0] for message in caplog.messages if message.startswith("step ")]
    assert shown == ["step 4", "step 19", "step 20"], "after 10 s and after a minute"


@pytest.mark.parametrize("error", [Failure("no room"), KeyboardInterrupt()], ids=["disk", "Ctrl-C"])
@pytest.mark.parametrize(("operation", "call"), [("save", 1), ("save", 2), ("evaluate", 1), ("place", 1), ("place", 4)])
def test_what_fails_ends_the_run_without_a_word_that_it_is_done(tmp_path, clock, operation, call, error):
    run, before = Run(tmp_path, clock, local_eval_frequency=2), {*threading.enumerate()}
    with pytest.raises(type(error)), faults.failing(run, operation, call, error):
        run.train(6)
    assert not run.log("end")
    assert [line["step"] for line in run.log("checkpoint")] == run.saves()
    assert not [thread for thread in {*threading.enumerate()} - before if "ThreadPool" in thread.name]


@pytest.mark.parametrize("step", [1, 5])
def test_a_step_that_fails_saves_nothing(tmp_path, clock, step):
    """Not even the first one, which is traced: its memory may be too little."""

    def fail():
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")

    run = Run(tmp_path, clock, local_eval_frequency=3)
    run.on_step = {step: fail}
    with pytest.raises(Failure, match=rf"out of memory at step {step}: .* inputs {ROWS} x {WIDTH} and targets"):
        run.train(9)
    assert run.saves() == ([3] if step > 3 else []) and not run.log("end")


def test_too_many_steps_that_are_not_finite_leave_their_state_apart(tmp_path, clock):
    run = Run(tmp_path, clock, hparams="max_skipped_steps=2", log=LogSettings(1))
    real = run.__class__.__call__
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Failure, match="for 2 consecutive steps, up to step 4"):
        skipped = lambda self: {"skipped": tf.constant(float(self.step in (1, 3, 4)))}  # noqa: E731
        patch.setattr(Run, "__call__", lambda self, *given: real(self, *given) | skipped(self))
        run.train(9)
    assert run.saved[0][:2] == (str(tmp_path / "not-finite-step-4" / "model.ckpt-4"), 8)


def failure(hparams, *shapes):
    batches = [{"inputs": np.ones((rows, s)), "targets": np.ones((rows, t))} for rows, s, t in shapes]
    with pytest.raises(Failure) as caught, explaining_out_of_memory(1200, batches, hparams):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_out_of_memory_names_the_largest_batch_and_what_to_lower():
    said = failure(HParams(), (3, 4, 5), (10, 90, 100), (7, 8, 9))
    for word in (
        "step 1,200", "inputs 10 x 90 and targets 10 x 100", "1,900 tokens", "batch_size=4096", "max_length=256",
        "recompute_grad=True", "dtype_policy=mixed_bfloat16", "--allow_hparams_change",
    ):  # fmt: skip
        assert word in said
    for policy in ("mixed_bfloat16", "mixed_float16"):
        said = failure(HParams().parse(f"recompute_grad=True,dtype_policy={policy}"), (10, 9, 64))
        assert "set " not in said and "max_length" not in said, "what is set, or is no help"
    assert "max_length" in failure(HParams(), (10, 9, 65))
    with pytest.raises(tf.errors.InvalidArgumentError), explaining_out_of_memory(1, [], HParams()):
        tf.linalg.matmul(tf.ones((2, 3)), tf.ones((2, 3)))
