"""What is written to `train.log` is what is read from it, whatever became of the process between."""

import json
import math

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.runs.log import RunLog, lineage, read_lines


def raw(folder, name="train.log"):
    return (folder / name).read_text()


def test_a_line_has_its_event_step_time_and_values(tmp_path, clock):
    log = RunLog(str(tmp_path))
    assert log.read() == []
    clock.now = 1_700_000_003.25678
    log.write("progress", 7, loss=1.23456789, tokens=3, name="x", none=None, nan=math.nan, infinite=-math.inf)
    log.write("end", 8)
    first, second = log.read()
    expected = {"time": 1_700_000_003.257, "event": "progress", "step": 7}
    values = {"loss": 1.23457, "tokens": 3, "name": "x", "none": None, "nan": None, "infinite": None}
    assert first == expected | values and "NaN" not in raw(tmp_path)
    assert (second["event"], second["step"]) == ("end", 8)
    assert RunLog(str(tmp_path)).read() == log.read(), "another process reads the same"


def test_a_silent_log_writes_nothing(tmp_path):
    log = RunLog(str(tmp_path), is_silent=True)
    log.write("progress", 1)
    log.scalars(1, {"loss": 1.0})
    log.text(1, "translations", "| a |")
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "run").write_text("")  # a file in the folder's place
    log = RunLog(str(tmp_path / "run"))
    for write, name in (
        (lambda: log.write("start", 0), "run/train.log: "),
        (lambda: log.scalars(1, {"loss": 1.0}, "eval"), "run/eval: "),
        (lambda: log.text(1, "translations", "a", "eval"), "run/eval: "),
    ):
        with pytest.raises(UserError, match=f"{name}a file is in the way") as error:
            write()
        assert "{{" not in str(error.value)


def test_behind_a_line_that_was_cut_off_a_new_one_begins(tmp_path):
    (tmp_path / "train.log").write_text('{"event": "progress", "step": 1}\n{"event": "prog')
    log = RunLog(str(tmp_path))
    assert len(log.read()) == 1
    log.write("resume", 1)
    log.write("progress", 2)
    assert [(line["event"], line["step"]) for line in log.read()] == [("progress", 1), ("resume", 1), ("progress", 2)]
    assert "\n\n" not in raw(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "[]", "3", "null", "{}", '"text"', '{"event": "progress"}', '{"step": 3}', '{"event": 3, "step": 3}',
        '{"event": "progress", "step": "3"}', '{"event": "progress", "step": 3.5}', '{"event": "progress", "step": -3}',
        '{"event": "progress", "step": true}', '{"event": "progress", "step": 1' + 400 * "0" + "}",
        '{"event": "progress", "step": 3, "loss": "low"}', '{"event": "progress", "step": 3, "loss": [1]}',
        '{"event": "progress", "step": 3, "loss": NaN}', '{"event": "progress", "step": 3, "loss": 1e999}',
        '{"event": "progress", "step": 3, "loss": 1' + 400 * "0" + "}", '{"event": "best", "step": 3}',
        '{"event": "best", "step": 3, "best_step": 3, "metric": [], "value": 1}', '{"event": "checkpoint", "step": 3}',
        '{"event": "checkpoint", "step": 3, "data_batch": {}, "sentences": 1}', 2000 * "[" + 2000 * "]",
        '{"event": "checkpoint", "step": 3, "data_batch": 1, "sentences": -1}', '{"event": "x", "step": 1, "step": 2}',
        '{"event": "evaluation", "step": 3, "bleu": {"a": 1}}',
        '{"event": "evaluation", "step": 3, "bleu_signature": 1}',
    ],
)  # fmt: skip
def test_lines_that_no_run_writes_are_named(tmp_path, line):
    path = tmp_path / "train.log"
    path.write_text(f"{json.dumps({'event': 'progress', 'step': 1, 'loss': 2.0})}\n{line}\n")
    with pytest.raises(UserError, match=f"^{path}: line 2: ") as error:
        read_lines(str(path))
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


def test_the_way_to_the_newest_state():
    """Steps behind the checkpoint from which a run went on are done again; that of the checkpoint itself is not."""
    events = [("start", 0), ("progress", 2), ("evaluation", 3), ("progress", 4), ("resume", 3), ("progress", 4),
              ("resume", 4), ("progress", 6)]  # fmt: skip
    lines = [{"event": event, "step": step, "at": at} for at, (event, step) in enumerate(events)]
    assert [line["at"] for line in lineage(lines)] == [0, 1, 2, 4, 5, 6, 7]
    anew = [*lines, {"event": "start", "step": 0, "at": 8}]
    assert [line["at"] for line in lineage(anew)] == [0, 8]


def steps(folder):
    """The steps of a folder's events that have values, over all its files, in the order in which these were begun."""
    # Named by second, host, process and number in it; text would put the tenth before the ninth.
    names = [path.name.split(".") for path in folder.glob("events.out.tfevents.*")]
    ordered = sorted(names, key=lambda parts: (parts[3], int(parts[-2])))
    records = tf.data.TFRecordDataset([str(folder / ".".join(parts)) for parts in ordered])
    found = [tf.compat.v1.Event.FromString(record.numpy()) for record in records]
    return [event.step for event in found if event.summary.value]


def test_events_of_steps_that_are_taken_again_are_forgotten(tmp_path):
    before = RunLog(str(tmp_path))
    for step in (2, 4, 6, 8):
        before.scalars(step, {"loss": 1.0})
    before.scalars(4, {"bleu": 1.0}, "eval")
    before.text(6, "translations", "| a |", "eval")
    before.scalars(6, {"bleu": 1.0}, "eval_test")  # of t2t-eval alone
    (cut,) = tmp_path.glob("events*")
    cut.write_bytes(cut.read_bytes()[:-3])  # by a kill
    RunLog(str(tmp_path), is_silent=True).forget_events_after(0)
    assert steps(tmp_path / "eval") == [4, 6], "the first of several machines does so"
    after = RunLog(str(tmp_path))
    after.forget_events_after(4)
    after.scalars(6, {"loss": 2.0})
    assert steps(tmp_path) == [2, 4, 6] and steps(tmp_path / "eval") == [4] and steps(tmp_path / "eval_test") == [6]
