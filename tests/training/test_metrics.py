"""The line of progress, on steps and a clock that are written by hand."""

import math
import types

import pytest
import tensorflow as tf

from t2t_lite.runs.log import RunLog
from t2t_lite.training import metrics
from t2t_lite.training.metrics import Progress, sentences_read


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(metrics, "time", types.SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now))
    return clock


def batch(rows, real, width=4):
    """So many rows with so many ids each, on both sides."""
    ids = tf.constant([[5] * real + [0] * (width - real)] * rows)
    return {"inputs": ids, "targets": ids}


def result(nats, objective, tokens, norm=1.0, skipped=0.0):
    values = {"nats": nats, "objective": objective, "tokens": tokens, "gradient_norm": norm, "skipped": skipped}
    return {name: tf.constant(value, tf.float32) for name, value in values.items()}


def lines(folder):
    return [line for line in RunLog(str(folder)).read() if line["event"] == "progress"]


def test_a_line_is_of_the_steps_since_the_last_one(tmp_path, clock):
    progress = Progress(RunLog(str(tmp_path)), train_steps=10, every=2, examples=40, sentences=100)
    steps = [
        ([batch(2, 4)], result(20.0, 30.0, 10.0, 5.0)),
        ([batch(3, 2), batch(1, 1)], result(10.0, 15.0, 20.0, 7.0, 1.0)),
        ([batch(1, 4)], result(2.0, 4.0, 1.0, 9.0)),
        ([batch(1, 4)], result(4.0, 8.0, 1.0, 11.0)),
    ]
    for step, (batches, metrics_of_step) in enumerate(steps, 1):
        clock.now += 2.0
        progress.add(step, batches, metrics_of_step, 0.1 * step)
    first, second = lines(tmp_path)
    assert (first["step"], second["step"]) == (2, 4)
    expected = {
        "loss": 1.0, "perplexity": math.e, "objective": 1.5, "learning_rate": 0.2, "target_tokens_a_step": 15.0,
        "sentences_a_step": 3.0, "padding": 1 - 30 / 48, "gradient_norm": 7.0, "skipped_steps": 1,
        "epochs": 106 / 40, "seconds_a_step": 2.0, "target_tokens_per_second": 10.0, "eta_seconds": 16.0,
    }  # fmt: skip
    assert {name: first[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert (second["loss"], second["padding"], second["epochs"]) == (3.0, 0.0, 108 / 40)
    assert progress.sentences == 108


def test_the_first_step_is_no_part_of_the_speed(tmp_path, clock):
    """It is traced, which takes longer than many others."""
    progress = Progress(RunLog(str(tmp_path)), train_steps=9, every=3)
    for step, seconds in enumerate((60.0, 1.0, 3.0), 1):
        clock.now += seconds
        progress.add(step, [batch(1, 4)], result(1.0, 1.0, 8.0), 0.1)
    (line,) = lines(tmp_path)
    assert (line["seconds_a_step"], line["target_tokens_per_second"], line["eta_seconds"]) == (2.0, 4.0, 12.0)


def test_pauses_are_no_part_of_the_speed(tmp_path, clock):
    progress = Progress(RunLog(str(tmp_path)), train_steps=9, every=3)
    for step in (1, 2, 3):
        clock.now += 1.0
        progress.add(step, [batch(1, 4)], result(1.0, 1.0, 8.0), 0.1)
        with progress.pause():
            clock.now += 50.0
    assert lines(tmp_path)[0]["seconds_a_step"] == 1.0


def test_the_last_step_has_a_line_and_no_steps_have_none(tmp_path, clock):
    progress = Progress(RunLog(str(tmp_path)), train_steps=3, every=2)
    progress.flush(0, 0.1)
    for step in (1, 2, 3):
        progress.add(step, [batch(1, 4)], result(1.0, 1.0, 8.0), 0.1)
    progress.flush(3, 0.1)
    assert [line["step"] for line in lines(tmp_path)] == [2, 3]


def checkpoint(step, sentences, data_batch):
    return {"event": "checkpoint", "step": step, "sentences": sentences, "data_batch": data_batch}


def test_sentences_of_an_earlier_process_are_those_of_its_checkpoint():
    log = [checkpoint(3, 30, 3), {"event": "progress", "step": 4}, checkpoint(6, 70, 6), checkpoint(9, 99, 9)]
    assert sentences_read(log, 6, 6) == 70
    assert sentences_read(log, 6, 12) == 140  # an estimate
    assert sentences_read(log[:2], 6, 6) == 60
    assert sentences_read([], 6, 6) == 0
