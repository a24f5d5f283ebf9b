"""What a run says of itself: at its start, in its log and in its line, on steps and a clock written by hand."""

import math
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.runs.log import RunLog
from t2t_lite.settings.reserved_names import BEFORE
from t2t_lite.training.distribution import Replicas
from t2t_lite.training.progress import ProgressLine, TrainingProgress, announce, fetch, sentences_read
from t2t_lite.training.training_data import StepBatches
from tests.terminals import Terminal


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
    progress.add(batches((2, 4)), result(2.0, 2.0, 5.0))
    progress.flush(1, 0.1)
    assert "perplexity" not in lines(tmp_path)[0] and "nats" not in caplog.text and "squared error" in caplog.text


IDS = np.array([[5, 6, 7, 1], [5, 1, 0, 0]])
MASKED = {"inputs": IDS, "targets": np.where(IDS == 6, IDS, 0)}


@pytest.mark.parametrize(
    ("task", "batch", "padding"),
    [
        ("sequence_to_sequence", {"inputs": IDS, "targets": IDS[:, :3]}, 3 / 14),
        ("masked_language_model", MASKED, 2 / 8),  # positions without a mask are predicted nowhere, and read
        ("language_model", {"targets": IDS, BEFORE: np.ones((2, 9), int)}, 2 / 8),  # a segment's past does not count
    ],
)
def test_padding_is_the_share_of_cells_without_an_id(tmp_path, task, batch, padding):
    progress = TrainingProgress(RunLog(str(tmp_path)), 10, feed(), task=registry.task(task))
    progress.add(StepBatches([batch, batch], 0), result(2.0, 2.0))
    progress.flush(1, 0.1)
    assert lines(tmp_path)[0]["padding"] == pytest.approx(padding, rel=1e-5)


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


SPEEDS = {  # {what: (a step's seconds, whether it is compiled, and a pause after it; steps left; seconds per step)}
    "the first step is traced": ([(60.0, False, 0), (1.0, False, 0), (3.0, False, 0)], 2.0),
    "pauses": ([(1.0, False, 50), (1.5, False, 50), (2.5, False, 50)], 2.0),
    "compiled steps": ([(60.0, True, 0), (1.0, False, 0), (30.0, True, 0), (3.0, False, 0)], 2.0),
}


@pytest.mark.parametrize("what", SPEEDS)
def test_the_speed_is_that_of_steps_alone(tmp_path, clock, what):
    steps, expected = SPEEDS[what]
    progress = TrainingProgress(RunLog(str(tmp_path)), 9, feed())
    for seconds, compiles, pause in steps:
        with progress.pause(compiles):
            clock.advance(seconds)
        progress.add(batches((2, 4)), result(1.0, 1.0), not compiles)
        with progress.pause():
            clock.advance(pause)
    progress.flush(len(steps), 0.1)
    (line,) = lines(tmp_path)
    left = 9 - len(steps)
    assert (line["seconds_per_step"], line["target_tokens_per_second"]) == (expected, 8 / expected)
    assert (line["eta_seconds"], line["target_tokens_per_step"]) == (left * expected, 8)


def test_a_first_line_of_one_step_leaves_the_speed_to_those_after_it(tmp_path, clock):
    progress = TrainingProgress(RunLog(str(tmp_path)), 9, feed())
    progress.flush(0, 0.1)
    for step, seconds in ((1, 60.0), (2, 2.0)):
        clock.now += seconds
        progress.add(batches((2, 4)), result(1.0, 1.0))
        progress.flush(step, 0.1)
    progress.flush(2, 0.1)
    assert [line["eta_seconds"] for line in lines(tmp_path)] == [0.0, 14.0], "no steps have no line"


def test_the_first_step_is_told_and_those_of_a_window_shown_before_it_ends(tmp_path, clock, caplog):
    progress = TrainingProgress(RunLog(str(tmp_path)), 9, feed())
    progress.show(0)  # of no steps there is nothing to tell
    clock.now += 60
    progress.add(batches((2, 4)), result(20.0, 30.0))
    assert caplog.messages == ["first step: 60.0 s with tracing, loss 2.500 nats per target token"]
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


def test_shares_of_a_count_are_those_of_all_steps_by_layer(tmp_path, caplog):
    progress = TrainingProgress(RunLog(str(tmp_path)), 10, feed())
    counts = [[3.0, 1.0], [1.0, 1.0, 0.0, 2.0]], [[2.0, 2.0], [3.0, 3.0, 0.0, 6.0]]  # of two layers
    shares = [{"expert_use": {"inputs": [tf.constant(layer) for layer in layers]}} for layers in counts]
    steps = [{**result(tf.constant(2.0), tf.constant(2.0)), "shares": each} for each in shares]
    for metrics in fetch([tf.nest.map_structure(tf.convert_to_tensor, step) for step in steps]):
        assert metrics["nats"] == {"targets": 2.0, "inputs": 2.0} and metrics["gradient_norm"] == 1.0
        progress.add(batches((1, 4)), metrics)
    progress.flush(2, 0.1)
    assert lines(tmp_path)[0]["expert_use_inputs"] == [[0.625, 0.375], [0.25, 0.25, 0.0, 0.5]]
    assert "  expert_use_inputs down to 0.0%" in caplog.text


class Ladder:
    """What is said of a `WidthLadder`."""

    shapes, features = ((9, 4), (4, 9)), ("inputs", "targets")

    def __str__(self):
        return "9 x 4, 4 x 9"


USUAL = [
    "devices: 2",
    "problem p: 1,200 training examples",
    "model m, set s: 6 parameters, bfloat16",
    "batches: up to 256 tokens per replica, 2,560 tokens per step (all replicas): 2 replicas, accumulation 5",
    "seed 7: reproducible, the same command on this machine gives identical results",
    "output: run",
]
CUT = "(truncated to 40 ids: 1,234 train, 5 dev)"
KEPT = "2 replicas, accumulation 4 (same batches per step)"
SUMMARIES = {  # {what: (changes of the data, the context and the call, {number of a line: its end})}
    "usual": ({}, {}),
    "left out": ({"dropped": 3000}, {1: "(3,000 examples of other lengths are omitted)"}),
    "cut": ({"cut": {"train": 1234, "eval": 5}}, {1: CUT}),
    "accumulation that keeps batches": ({"accumulation": 4}, {3: f"2,048 tokens per step (all replicas): {KEPT}"}),
    "a set without a name": ({"hparams_set": ""}, {2: "model m, set (own): 6 parameters, bfloat16"}),
    "frozen": ({"frozen": True}, {2: "6 parameters, of which 0 are trained, bfloat16"}),
    "not exact": ({"gives_up": ["--a: b", "--c: d"]}, {4: "seed 7: reproducible, except for: --a: b; --c: d"}),
    "shapes": ({"ladder": Ladder()}, {4: "2 shapes (rows x inputs x targets), each at its first occurrence, on each "
                                         "replica: 9 x 4, 4 x 9"}),
    "a memory": ({"carried": types.SimpleNamespace(description=lambda source: "a memory")}, {4: "a memory"}),
}  # fmt: skip


@pytest.mark.parametrize("what", SUMMARIES)
def test_the_start_of_a_run_is_summed_up(caplog, what):
    changes, ends = SUMMARIES[what]
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(3), keras.layers.GaussianNoise(0.1)])
    model.layers[0].trainable = not changes.get("frozen")
    hparams = {"gradient_accumulation_steps": 5, "batch_size": 256, "dtype_policy": "bfloat16", "random_seed": 7}
    data = {"dropped": 0, "examples": 1200, "cut": {"train": 0, "eval": 0}}
    source = {"left_out": "examples of other lengths", "longest": 40, "ladder": changes.get("ladder")}
    data |= {"source": types.SimpleNamespace(**source)}
    config = {"problem": "p", "model": "m", "hparams_set": changes.get("hparams_set", "s"), "hparams": hparams}
    context = types.SimpleNamespace(
        config=config, output_dir="run", replicas=Replicas(None, 2, "devices: 2"),
        data=types.SimpleNamespace(**data | changes), accumulation=changes.get("accumulation", 5),
    )  # fmt: skip
    announce(context, types.SimpleNamespace(model=model, carried=changes.get("carried")), changes.get("gives_up", ()))
    *said, draws = caplog.messages
    for number, end in ends.items():
        assert said.pop(number).endswith(end)
    is_added = len(said) == len(USUAL)
    assert said == [line for i, line in enumerate(USUAL) if i not in ends or is_added] and "GaussianNoise" in draws


def checkpoint(step, sentences, data_batch):
    return {"event": "checkpoint", "step": step, "sentences": sentences, "data_batch": data_batch}


def test_sentences_of_an_earlier_process_are_those_of_its_checkpoint():
    log = [checkpoint(3, 30, 3), {"event": "progress", "step": 4}, checkpoint(6, 70, 6), checkpoint(9, 99, 9)]
    assert sentences_read(log, 6, 6) == 70
    assert sentences_read(log, 6, 12) == 140  # an estimate
    assert sentences_read(log[:2], 6, 6) == 60
    assert sentences_read([], 6, 6) == 0


# What a run of 250,000 steps shows near its beginning: as long as it gets.
VALUES = {
    "loss": 10.123456, "epochs": 12.345, "seconds_per_step": 0.08, "eta_seconds": 180_072.0, "skipped_steps": 0,
    "waiting_for_data": 0.001, "padding": 0.1, "gradient_norm": 1.5, "objective": 9.0, "cost_inputs": 3.0,
}  # fmt: skip
PLAIN = "step 100,000/250,000  loss 10.123  ETA 50:01:12  12 steps/s  epoch 12.35"


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch, caplog):
    """A usual terminal, and a log that has all that is said."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def shown_on(monkeypatch):
    """Function of a number of columns that returns what a terminal shows of one line."""

    def show(columns, step=100_000, train_steps=250_000, shares=(), **changes):
        terminal = Terminal(columns)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal.file)
            line = ProgressLine(train_steps, "nats")
            line.show(step, {**VALUES, **changes}, dict(shares))
            (text,) = terminal.written()
        terminal.close()
        return text

    return show


def told(caplog, train_steps=250_000, step=100_000, shares=(), **changes):
    ProgressLine(train_steps, "nats").show(step, {**VALUES, **changes}, dict(shares))
    return caplog.messages[-1]


def test_on_a_terminal_it_has_a_bar_and_fits(shown_on):
    assert shown_on(120) == f"[######----------] {PLAIN}"
    assert shown_on(80) == "[######----------] step 100,000/250,000  loss 10.123  ETA 50:01:12  12 steps/s"
    assert shown_on(50) == "step 100,000/250,000  loss 10.123  ETA 50:01:12"
    assert shown_on(40) == "step 100,000/250,000  loss 10.123"
    assert shown_on(10) == "step 100,"


def test_the_bar_is_full_at_the_end_where_nothing_is_left_to_wait_for(shown_on):
    ended = shown_on(80, step=20, train_steps=20, loss=2.0, epochs=0.5, eta_seconds=0.0)
    assert ended == "[################] step 20/20  loss 2.000  12 steps/s  epoch 0.50"


TOLD = [  # (changes of VALUES, a part of PLAIN, what is there instead)
    ({}, "", ""),
    ({"seconds_per_step": 0.0}, "  ETA 50:01:12  12 steps/s", ""),  # the speed is unknown
    ({"seconds_per_step": 2.5}, "12 steps/s", "2.5 s/step"),
    ({"seconds_per_step": 0.4}, "12 steps/s", "2.50 steps/s"),
    ({"seconds_per_step": 0.0008}, "12 steps/s", "1,250 steps/s"),
    *(({"loss": loss}, "10.123", text) for loss, text in ((0.00123, "0.00123"), (0.1, "0.100"), (math.nan, "nan"))),
    # What is not ordinary is said before the speed.
    ({"skipped_steps": 2}, "  12 ", "  skipped 2  12 "),
    ({"waiting_for_data": 0.25}, "  12 ", "  waiting for data 25%  12 "),
    ({"padding": 0.5}, "  12 ", "  padding 50%  12 "),
    ({"gradient_norm": 1234.5}, "  12 ", "  gradient 1,234  12 "),
    ({"loss_scale": 1.0}, "  12 ", "  loss scale 1  12 "),
    ({"loss_scale": 1024.0}, "", ""),
    ({"shares": {"expert_use_inputs": [[0.5, 0.5], [0.02, 0.98]]}}, "  12 ", "  expert_use_inputs down to 2.0%  12 "),
    ({"shares": {"expert_use_inputs": [[0.06, 0.94], [0.25, 0.25, 0.25, 0.25]]}}, "", ""),
]


@pytest.mark.parametrize(("changes", "part", "instead"), TOLD)
def test_a_line_has_units_and_digits_that_suit_it_and_what_is_not_ordinary(caplog, changes, part, instead):
    assert told(caplog, **changes) == PLAIN.replace(part, instead)


def test_lines_in_a_file_come_after_10_seconds_and_then_every_minute(clock, caplog):
    line = ProgressLine(9, "nats per target token")
    clock.now += 50
    assert not line.is_due, "nothing to show"
    begun = clock.now
    line.begin(49.96, 8.3217)
    assert caplog.messages == ["first step: 50.0 s with tracing, loss 8.322 nats per target token"]
    due = []
    for _ in range(140):
        clock.now += 1
        if line.is_due:
            due.append(clock.now - begun)
            line.show(1, VALUES, {})
    assert due == [10, 70, 130]


def test_a_terminal_is_written_again_every_half_second_and_keeps_what_is_left(clock, caplog, monkeypatch):
    terminal = Terminal(80)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal.file)
        line = ProgressLine(250_000, "nats")
        line.begin(1.0, 8.0)
        clock.now += 0.4
        assert not line.is_due
        clock.now += 0.2
        assert line.is_due
        line.show(100_000, VALUES, {})
        assert not line.is_due
        line.leave(100_000)
        line.leave(100_000)
    terminal.close()
    assert caplog.messages[1:] == [PLAIN]


def test_a_terminal_that_was_closed_ends_no_run(monkeypatch):
    """Its SIGHUP asks for a checkpoint: that comes after what cannot be shown."""

    class Closed:
        isatty = staticmethod(lambda: True)

        def write(self, _):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stderr", Closed())
    line = ProgressLine(250_000, "nats")
    line.show(1, VALUES, {})
    line.leave(1)
