"""What a command shows of its work: it fits a terminal, and says the same plainly elsewhere."""

import logging
import sys
import time

import pytest

from t2t_lite.cli import console
from t2t_lite.cli.console import Progress, columns, fit, waiting
from tests.terminals import Terminal


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, caplog):
    """Those of a usual terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
    caplog.set_level(logging.INFO, "t2t_lite")


@pytest.fixture
def terminal(monkeypatch):
    """Function of a number of columns that puts a terminal in place of stderr."""
    made = []

    def make(number):
        made.append(Terminal(number))
        monkeypatch.setattr(sys, "stderr", made[-1].file)
        return made[-1]

    yield make
    monkeypatch.undo()
    for one in made:
        one.close()


def test_fields_that_do_not_fit_are_left_out():
    fields = ["step 1/9", "loss 2.000", "ETA 0:10"]
    assert fit(fields, 30) == "step 1/9  loss 2.000  ETA 0:10"
    assert fit(fields, 29) == "step 1/9  loss 2.000"
    assert fit(fields, 19) == "step 1/9  ETA 0:10"  # a later one may be shorter
    assert fit(fields, 4) == "step"
    assert fit(["a", "b"], 4, ", ") == "a, b"


@pytest.mark.parametrize(
    ("size", "told", "expected"),
    [
        (None, None, 79),
        (None, "120", 119),
        (80, None, 79),
        (50, None, 49),
        (80, "50", 49),
        (50, "200", 49),
        (0, None, 79),
        (0, "60", 59),
        (80, "wide", 79),
    ],
)
def test_a_line_is_narrower_than_the_terminal(terminal, monkeypatch, size, told, expected):
    if size is not None:  # otherwise stderr is a file
        terminal(size)
    if told:
        monkeypatch.setenv("COLUMNS", told)
    assert columns() == expected


def test_lines_move_on_terminals_that_can_write_them_again(terminal, monkeypatch):
    assert not console.has_moving_line() and console.clear_line() == ""
    terminal(80)
    monkeypatch.setenv("NO_COLOR", "1")  # there is none
    assert console.has_moving_line() and console.clear_line() == "\r\033[K"
    monkeypatch.setenv("TERM", "dumb")
    assert not console.has_moving_line() and console.clear_line() == ""


def test_what_is_waited_for_is_told_at_once_on_a_terminal(terminal, caplog):
    shown = terminal(20)
    with waiting("the first step is traced"):
        assert shown.written() == ["the first step is t"]
    assert shown.written() == [] and not caplog.messages


def test_what_is_waited_for_is_told_elsewhere_if_it_takes_long(monkeypatch, caplog):
    with waiting("short"):
        pass
    monkeypatch.setattr(console, "SECONDS", 0.01)
    with waiting("long"):
        end = time.monotonic() + 10
        while not caplog.messages and time.monotonic() < end:
            time.sleep(0.01)
    assert caplog.messages == ["long"]


def test_an_error_ends_the_waiting(terminal):
    shown = terminal(80)
    with pytest.raises(ValueError, match="no"), waiting("long"):
        raise ValueError("no")
    assert shown.written() == ["long"]


@pytest.mark.parametrize(
    ("unit", "total", "count", "expected"),
    [
        ("sentences", 3, 3, "3 of 3 sentences"), ("sentences", 1, 0, "0 of 1 sentence"),
        ("images", 1, 1, "1 of 1 image"),
        ("pieces of text", None, 1, "1 piece of text"), ("pieces of text", None, 2000, "2,000 pieces of text"),
        ("MB", 1, 1, "1 of 1 MB"),
    ],
)  # fmt: skip
def test_nouns_agree_with_their_numbers(clock, caplog, unit, total, count, expected):
    progress = Progress("doing", unit, total)
    clock.now += 1
    progress.add(count)
    progress.done()
    assert caplog.messages[-1].startswith(f"doing: {expected}, ")


def test_what_was_done_before_takes_no_time(clock, caplog):
    progress = Progress("doing", "texts", 110, done=50)
    clock.now += 20
    progress.add(10)
    clock.now += 20
    assert list(progress.watch("ab")) == ["a", "b"]
    progress.done()
    expected = ["60 of 110 texts, 0.5 a second, ETA 1:40", "62 of 110 texts, 0.3 a second"]
    assert caplog.messages == [f"doing: {line}" for line in expected]


def test_a_line_comes_every_ten_seconds_and_every_256_items(clock, caplog):
    progress = Progress("reading", "pairs")
    for _ in progress.watch(range(512)):
        clock.now += 0.5
    assert [message.split(",")[0] for message in caplog.messages] == ["reading: 256 pairs", "reading: 512 pairs"]
    for seconds, told in ((9.9, 2), (0.2, 3), (9.9, 3), (0.1, 4)):
        clock.now += seconds
        progress.add(1)
        assert len(caplog.messages) == told


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0:00"), (59.9, "0:59"), (60, "1:00"), (200, "3:20"), (3599, "59:59"), (3600, "1:00:00"), (7500, "2:05:00"),
     (360_001, "100:00:01")],
)  # fmt: skip
def test_times(seconds, expected):
    assert console.clock(seconds) == expected


def test_a_table_has_its_columns_to_the_right():
    rows = [["name", "n"], ["a", "1,000"], ["b", ""]]
    assert console.table(rows) == ["name      n", "   a  1,000", "   b"]
    assert console.table(rows, left=(0,)) == ["name      n", "a     1,000", "b"]


def test_nothing_is_told_twice(clock, caplog):
    """Where the last of it took long, its line is the last one, too."""
    progress = Progress("doing", "texts", 2)
    for _ in range(2):
        clock.now += 20
        progress.add(1)
    progress.add(0, tokens=80)
    progress.done()
    expected = ["1 of 2 texts, 0.1 a second, ETA 0:20", "2 of 2 texts, 0.1 a second, 2 tokens per second"]
    assert caplog.messages == [f"doing: {line}" for line in expected]


def test_where_nobody_knows_how_many_there_are_the_last_line_may_have_been_told(clock, caplog):
    progress = Progress("reading", "pairs")
    clock.now += 20
    progress.add(3)
    progress.done()
    assert caplog.messages == ["reading: 3 pairs, 0.1 a second"]


def test_on_a_narrow_terminal_the_rest_is_left_out(terminal, clock, caplog):
    shown, progress = terminal(50), Progress("translate_own: reading for the vocabulary", "pairs", 10**7)
    clock.now += 1
    progress.add(10)
    assert shown.written() == ["translate_own: reading for the vocabulary: 10 of "]
    progress.done()
    assert caplog.messages == ["translate_own: reading for the vocabulary: 10 of 10,000,000 pairs, 10 a second"]
