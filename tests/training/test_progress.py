"""What is logged of the progress, on steps and a clock that are written by hand."""

import math
import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.runs.log import RunLog
from t2t_lite.training import progress as progress_module
from t2t_lite.training.progress import TrainingProgress, fetch, sentences_read
from t2t_lite.training.training_data import StepBatches


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress_module, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def batches(*sizes, width=4):
    """A step's batches of (rows, ids a row), the same on both sides."""
    sides = [np.array([[5] * real + [0] * (width - real)] * rows) for rows, real in sizes]
    return StepBatches([{"inputs": ids, "targets": ids} for ids in sides], 0)


def result(nats, objective, norm=1.0, skipped=0.0):
    cost = {"inputs": 2 * nats}
    sums = {"nats": {"targets": nats, "inputs": objective}, "objective": {"targets": objective}, "cost": cost}
    return {**sums, "gradient_norm": norm, "skipped": skipped}


def feed(seconds_waited=0.0):
    return types.SimpleNamespace(seconds_waited=seconds_waited)


def lines(folder):
    return [line for line in RunLog(str(folder)).read() if line["event"] == "progress"]


def test_a_squared_error_has_no_perplexity(tmp_path, clock, caplog):
    progress = TrainingProgress(RunLog(str(tmp_path)), 10, feed(), task=registry.task("regression"))
    clock.now += 2.0
    with caplog.at_level("INFO"):
        progress.add(batches((2, 4)), result(2.0, 2.0, 5.0))
        progress.flush(1, 0.1)
    assert "perplexity" not in lines(tmp_path)[0] and "nats" not in caplog.text and "squared error" in caplog.text


def test_positions_without_a_mask_are_no_padding(tmp_path):
    ids = np.array([[5, 6, 7, 1], [5, 1, 0, 0]])
    progress = TrainingProgress(RunLog(str(tmp_path)), 10, feed(), task=registry.task("masked_language_model"))
    progress.add(StepBatches([{"inputs": ids, "targets": np.where(ids == 6, ids, 0)}], 0), result(2.0, 2.0))
    progress.flush(1, 0.1)
    assert lines(tmp_path)[0]["padding"] == 2 / 8


def test_a_line_is_of_the_steps_since_the_last_one(tmp_path, clock):
    waiting = feed()
    progress = TrainingProgress(RunLog(str(tmp_path)), 10, waiting, examples=40, sentences=100)
    steps = [
        (batches((2, 4)), result(20.0, 30.0, 5.0)),
        (batches((3, 2), (1, 1)), result(10.0, 15.0, 7.0, 1.0)),
        (batches((1, 4)), result(2.0, 4.0, 9.0)),
        (batches((1, 4)), result(4.0, 8.0, 11.0)),
    ]
    for step, (batches_of_step, metrics_of_step) in enumerate(steps, 1):
        clock.now += 2.0
        waiting.seconds_waited += 0.1 * step
        progress.add(batches_of_step, metrics_of_step)
        if step % 2 == 0:
            progress.flush(step, 0.1 * step)
    first, second = lines(tmp_path)
    assert (first["step"], second["step"]) == (2, 4)
    expected = {
        "loss": 2.0, "perplexity": math.exp(2.0), "objective": 3.0, "learning_rate": 0.2, "target_tokens_per_step": 7.5,
        "sentences_per_step": 3.0, "padding": 1 - 30 / 48, "gradient_norm": 7.0, "skipped_steps": 1,
        "epochs": 106 / 40, "seconds_per_step": 2.0, "target_tokens_per_second": 3.5, "eta_seconds": 16.0,
        "loss_inputs": 3.0, "cost_inputs": 4.0,
        "waiting_for_data": 0.1,  # of the second step: the first one is no part of it
    }  # fmt: skip
    assert {name: first[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert (second["loss"], second["padding"], second["epochs"]) == (0.75, 0.0, 108 / 40)
    assert second["waiting_for_data"] == pytest.approx(0.7 / 4)
    assert progress.sentences == 108


def test_the_first_step_is_no_part_of_the_speed(tmp_path, clock):
    """It is traced, which takes longer than many others."""
    progress = TrainingProgress(RunLog(str(tmp_path)), 9, feed())
    for seconds in (60.0, 1.0, 3.0):
        clock.now += seconds
        progress.add(batches((2, 4)), result(1.0, 1.0))
    progress.flush(3, 0.1)
    (line,) = lines(tmp_path)
    assert (line["seconds_per_step"], line["target_tokens_per_second"], line["eta_seconds"]) == (2.0, 4.0, 12.0)


def test_pauses_are_no_part_of_the_speed(tmp_path, clock):
    progress = TrainingProgress(RunLog(str(tmp_path)), 9, feed())
    for _ in range(3):
        clock.now += 1.0
        progress.add(batches((1, 4)), result(1.0, 1.0))
        with progress.pause():
            clock.now += 50.0
    progress.flush(3, 0.1)
    assert lines(tmp_path)[0]["seconds_per_step"] == 1.0


def test_no_steps_have_no_line(tmp_path, clock):
    progress = TrainingProgress(RunLog(str(tmp_path)), 3, feed())
    progress.flush(0, 0.1)
    progress.add(batches((1, 4)), result(1.0, 1.0))
    progress.flush(1, 0.1)
    progress.flush(1, 0.1)
    assert [line["step"] for line in lines(tmp_path)] == [1]


def test_steps_that_were_compiled_are_no_part_of_the_speed(tmp_path, clock):
    progress = TrainingProgress(RunLog(str(tmp_path)), 9, feed())
    for seconds, compiles in ((60.0, True), (1.0, False), (30.0, True), (3.0, False)):
        with progress.pause(compiles):
            clock.now += seconds
        progress.add(batches((2, 4)), result(1.0, 1.0), not compiles)
    progress.flush(4, 0.1)
    (line,) = lines(tmp_path)
    assert (line["seconds_per_step"], line["target_tokens_per_second"], line["eta_seconds"]) == (2.0, 4.0, 10.0)
    assert line["target_tokens_per_step"] == 8


def test_a_first_line_of_one_step_leaves_the_speed_to_those_after_it(tmp_path, clock):
    progress = TrainingProgress(RunLog(str(tmp_path)), 9, feed())
    for step, seconds in ((1, 60.0), (2, 2.0)):
        clock.now += seconds
        progress.add(batches((2, 4)), result(1.0, 1.0))
        progress.flush(step, 0.1)
    assert [line["eta_seconds"] for line in lines(tmp_path)] == [0.0, 14.0]


def test_the_first_step_is_told_and_those_of_a_window_shown_before_it_ends(tmp_path, clock, caplog):
    caplog.set_level("INFO")
    progress = TrainingProgress(RunLog(str(tmp_path)), 9, feed())
    progress.show(0)  # of no steps there is nothing to tell
    clock.now += 60
    progress.add(batches((2, 4)), result(20.0, 30.0))
    assert caplog.messages == ["first step: 60.0 s including its tracing, loss 2.500 nats per target token"]
    clock.now += 10
    assert progress.is_due
    progress.add(batches((2, 4)), result(12.0, 30.0))
    progress.show(2)
    assert caplog.messages[1:] == ["step 2/9  loss 2.000  ETA 1:10  10.0 s/step  epoch 4.00"]
    progress.leave(2)  # a file has it already
    assert len(caplog.messages) == 2 and lines(tmp_path) == []
    clock.now += 4
    progress.add(batches((2, 4)), result(16.0, 30.0))
    progress.flush(3, 0.1)
    (line,) = lines(tmp_path)
    assert (line["loss"], line["seconds_per_step"]) == (2.0, 7.0)


def test_shares_of_a_count_are_those_of_all_steps(tmp_path, caplog):
    progress = TrainingProgress(RunLog(str(tmp_path)), 10, feed())
    counts = [tf.constant([3.0, 1.0]), tf.constant([0.0, 4.0])], [tf.constant([2.0, 2.0]), tf.constant([0.0, 0.0])]
    steps = [
        {**result(tf.constant(2.0), tf.constant(2.0)), "shares": {"expert_use": {"inputs": layers}}}
        for layers in counts
    ]
    for metrics in fetch([tf.nest.map_structure(tf.convert_to_tensor, step) for step in steps]):
        assert metrics["nats"] == {"targets": 2.0, "inputs": 2.0} and metrics["gradient_norm"] == 1.0
        progress.add(batches((1, 4)), metrics)
    with caplog.at_level("INFO"):
        progress.flush(2, 0.1)
    assert lines(tmp_path)[0]["expert_use_inputs"] == [[0.625, 0.375], [0.0, 1.0]]
    assert "  expert_use_inputs down to 0.0%" in caplog.text


def test_shares_of_layers_with_unequal_numbers_of_experts(tmp_path):
    progress = TrainingProgress(RunLog(str(tmp_path)), 10, feed())
    for count in (1.0, 3.0):
        layers = [np.array([count, 0.0]), np.array([count, count, 0.0, 2 * count])]
        progress.add(batches((1, 4)), {**result(2.0, 2.0), "shares": {"expert_use": {"targets": layers}}})
    progress.flush(2, 0.1)
    assert lines(tmp_path)[0]["expert_use_targets"] == [[1.0, 0.0], [0.25, 0.25, 0.0, 0.5]]


def test_metrics_are_fetched_by_name():
    results = [{"b": tf.constant(n + 0.5), "a": {"c": tf.constant(float(n))}} for n in range(3)]
    assert fetch(results) == [{"a": {"c": float(n)}, "b": n + 0.5} for n in range(3)]


def checkpoint(step, sentences, data_batch):
    return {"event": "checkpoint", "step": step, "sentences": sentences, "data_batch": data_batch}


def test_sentences_of_an_earlier_process_are_those_of_its_checkpoint():
    log = [checkpoint(3, 30, 3), {"event": "progress", "step": 4}, checkpoint(6, 70, 6), checkpoint(9, 99, 9)]
    assert sentences_read(log, 6, 6) == 70
    assert sentences_read(log, 6, 12) == 140  # an estimate
    assert sentences_read(log[:2], 6, 6) == 60
    assert sentences_read([], 6, 6) == 0
