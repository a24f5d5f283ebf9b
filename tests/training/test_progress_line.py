"""The line of a run's progress, on values and a clock that are written by hand."""

import logging
import sys
import types

import pytest

from t2t_lite.training import progress
from t2t_lite.training.progress import ProgressLine
from tests.terminals import Terminal

# What a run of 250,000 steps shows near its beginning: as long as it gets.
VALUES = {
    "loss": 10.123456, "epochs": 12.345, "seconds_per_step": 0.08, "eta_seconds": 180_072.0, "skipped_steps": 0,
    "waiting_for_data": 0.001, "padding": 0.1, "gradient_norm": 1.5, "objective": 9.0, "cost_inputs": 3.0,
}  # fmt: skip
PLAIN = "step 100,000/250,000  loss 10.123  ETA 50:01:12  12 steps/s  epoch 12.35"


@pytest.fixture(autouse=True)
def clock(monkeypatch, caplog):
    """A clock that stands still unless it is moved."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
    caplog.set_level(logging.INFO, "t2t_lite")
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    return clock


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


def test_in_a_file_it_says_what_people_look_at(caplog):
    assert told(caplog) == PLAIN and len(PLAIN) < 80


def test_on_a_terminal_it_has_a_bar_and_fits(shown_on):
    assert shown_on(120) == f"[######----------] {PLAIN}"
    assert shown_on(80) == "[######----------] step 100,000/250,000  loss 10.123  ETA 50:01:12  12 steps/s"
    assert shown_on(50) == "step 100,000/250,000  loss 10.123  ETA 50:01:12"
    assert shown_on(40) == "step 100,000/250,000  loss 10.123"
    assert shown_on(10) == "step 100,"


def test_the_bar_is_full_at_the_end_where_nothing_is_left_to_wait_for(shown_on):
    ended = shown_on(80, step=20, train_steps=20, loss=2.0, epochs=0.5, eta_seconds=0.0)
    assert ended == "[################] step 20/20  loss 2.000  12 steps/s  epoch 0.50"


def test_a_speed_has_a_unit_that_suits_it_and_an_unknown_one_is_not_shown(caplog):
    assert told(caplog, seconds_per_step=0.0) == "step 100,000/250,000  loss 10.123  epoch 12.35"
    assert "  2.5 s/step  " in told(caplog, seconds_per_step=2.5)
    assert "  2.50 steps/s  " in told(caplog, seconds_per_step=0.4)
    assert "  1,250 steps/s  " in told(caplog, seconds_per_step=0.0008)


def test_losses_near_0_have_digits(caplog):
    assert "  loss 0.00123  " in told(caplog, loss=0.00123)
    assert "  loss 0.100  " in told(caplog, loss=0.1)
    assert "  loss nan  " in told(caplog, loss=float("nan"))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"skipped_steps": 2}, "skipped 2"), ({"waiting_for_data": 0.25}, "waiting for data 25%"),
        ({"padding": 0.5}, "padding 50%"), ({"gradient_norm": 1234.5}, "gradient 1,234"),
        ({"loss_scale": 1.0}, "loss scale 1"),
        ({"shares": {"expert_use_inputs": [[0.5, 0.5], [0.02, 0.98]]}}, "expert_use_inputs down to 2.0%"),
    ],
)  # fmt: skip
def test_what_is_not_ordinary_is_said_before_the_speed(caplog, changes, field):
    assert told(caplog, **changes) == PLAIN.replace("  12 ", f"  {field}  12 ")


@pytest.mark.parametrize(
    "changes", [{"loss_scale": 1024.0}, {"shares": {"expert_use_inputs": [[0.06, 0.94], [0.25, 0.25, 0.25, 0.25]]}}]
)
def test_what_is_ordinary_is_not_said(caplog, changes):
    assert told(caplog, **changes) == PLAIN


def test_lines_in_a_file_come_after_10_seconds_and_then_every_minute(clock, caplog):
    line = ProgressLine(9, "nats per target token")
    clock.now += 50
    assert not line.is_due, "nothing to show"
    line.begin(49.96, 8.3217)
    assert caplog.messages == ["first step: 50.0 s including its tracing, loss 8.322 nats per target token"]
    due = []
    for _ in range(140):
        clock.now += 1
        if line.is_due:
            due.append(clock.now - 150)
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
