"""The trials of a search: sampled in their ranges, pruned by the others' evaluations, continued after a kill."""
# Nearest tests of: extras/autotune/search.py

import errno
import fcntl
import json
import math
import os
import threading
import time

import pytest

from t2t_lite import registry
from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.autotune import search as search_module
from t2t_lite.extras.autotune import study as study_module
from t2t_lite.extras.autotune.ranged_hparams import HParamRange
from t2t_lite.extras.autotune.study import STARTUP_TRIALS, STUDY, Objective, _sample, open_journal
from tests import faults
from tests.extras.autotune.studies import search, study


def sampled(folder, count, stop=None, **arguments):
    """The hyperparameters of trials that all reach the same, in one process or in two."""
    for most in (stop, count) if stop else (count,):
        found, _ = search(folder, lambda call: {8: 1.0}, **arguments)
        assert found.run(most)
    return [trial.hparams for trial in found.study.trials()]


@pytest.mark.slow
def test_samples_are_in_their_ranges_and_follow_their_scales(tmp_path):
    found = sampled(tmp_path / "a", 40)
    assert {type(value) for value in found[0].values()} == {float, int, str}
    for hparams in found:
        registry.hparams("transformer_tiny").override_from_dict(hparams)
        assert 0.01 <= hparams["learning_rate_constant"] <= 10
        assert 0.9 <= hparams["optimizer_adam_beta2"] <= 0.999
        assert 0 <= hparams["label_smoothing"] <= 0.2
        assert hparams["num_hidden_layers"] in (1, 2, 3, 4)
        assert hparams["batch_size"] in (256, 512)
        assert hparams["optimizer"] in ("adam", "adafactor")
    first = found[:STARTUP_TRIALS]
    assert len({json.dumps(hparams) for hparams in found}) == 40
    assert len({hparams["learning_rate_constant"] for hparams in first}) == STARTUP_TRIALS


class Suggesting:
    """A trial of Optuna that notes what it suggests, numbers near the lower bound."""

    def suggest_float(self, *arguments, log):
        self.asked = "float", *arguments, log
        return 0.015 if log else 0.25

    def suggest_int(self, *arguments, log):
        self.asked = "int", *arguments, log
        return 3

    def suggest_categorical(self, name, points):
        self.asked = "points", name, points
        return points[-1]


SCALES = {  # a range; what Optuna is asked; the value
    "linear": (HParamRange("x", "float", 0.25, 4.0), ("float", "x", 0.25, 4.0, False), 0.25),
    "logarithmic": (HParamRange("x", "float", 0.01, 1.0, scale=2), ("float", "x", 0.01, 1.0, True), 0.015),
    "mirrored": (HParamRange("x", "float", 0.01, 1.0, scale=3), ("float", "x (mirrored)", 0.01, 1.0, True), 0.995),
    "whole": (HParamRange("x", "int", 2, 6), ("int", "x", 2, 6, False), 3),
    "whole, logarithmic": (HParamRange("x", "int", 2, 60, scale=2), ("int", "x", 2, 60, True), 3),
    "whole, mirrored": (HParamRange("x", "int", 2, 60, scale=3), ("int", "x (mirrored)", 2, 60, True), 59),
    "points": (HParamRange("x", "discrete", points=(5, 7)), ("points", "x", (5, 7)), 7),
}


@pytest.mark.parametrize(("interval", "asked", "value"), SCALES.values(), ids=SCALES)
def test_scales(interval, asked, value):
    trial = Suggesting()
    assert _sample(trial, interval) == pytest.approx(value) and trial.asked == asked


def test_a_mirrored_number_that_rounding_moves_out_of_its_range():
    trial, interval = Suggesting(), HParamRange("x", "float", 0.5, 0.9, scale=3)
    trial.suggest_float = lambda *arguments, log: 0.5 - 1e-9
    assert _sample(trial, interval) == 0.9


def test_samples_depend_on_the_seed_alone_also_after_a_stop(tmp_path):
    found = sampled(tmp_path / "a", 8)
    assert sampled(tmp_path / "b", 8) == found
    assert sampled(tmp_path / "c", 8, stop=3) == found
    assert sampled(tmp_path / "d", 8, seed=2) != found


def test_a_trial_worse_than_the_median_is_pruned_after_a_quarter_of_the_steps(tmp_path):
    """Five complete trials end at 1.0 … 1.4; the sixth is as good as they, the seventh worse from the beginning."""
    levels = [0.0, 0.1, 0.2, 0.3, 0.4, 0.05, 5.0]
    found, _ = search(tmp_path, lambda call: {step: 1.0 + levels[call] + 1 / step for step in range(1, 9)})
    assert found.run(7)
    *complete, pruned = found.study.trials()
    assert [trial.state for trial in complete] == ["complete"] * 6
    assert [trial.value for trial in complete] == pytest.approx([1.125 + level for level in levels[:6]], rel=1e-5)
    assert (pruned.state, pruned.steps, pruned.best_step) == ("pruned", 2, 2), "steps 1 of 8 are too early"
    assert pruned.reason == "pruned: loss 6.5 is worse than the median of the complete trials at step 2"
    events = [json.loads(line) for line in (tmp_path / "trial-6" / "train.log").read_text().splitlines()]
    assert [line["step"] for line in events] == [1, 2]
    optuna, storage = open_journal(str(tmp_path / STUDY))
    (name,) = optuna.get_all_study_names(storage)
    states = [trial.state.name for trial in optuna.load_study(study_name=name, storage=storage).trials]
    assert states == ["COMPLETE"] * 6 + ["PRUNED"]


def test_a_trial_that_is_bad_at_its_end_is_complete(tmp_path):
    found, _ = search(tmp_path, lambda call: {8: 1.0 + 9 * (call == 5)})
    assert found.run(6) and [trial.state for trial in found.study.trials()] == ["complete"] * 6


def test_a_trial_that_was_killed_before_it_had_hyperparameters_is_left_out(tmp_path):
    found, _ = search(tmp_path, lambda call: {8: 1.0})
    found.study._study.ask()
    assert found.run(1)
    assert [(trial.number, trial.state) for trial in found.study.trials()] == [(1, "complete")]


def test_the_value_of_a_trial_is_that_of_its_best_model(tmp_path):
    found, _ = search(tmp_path, lambda call: {2: 3.0, 4: 1.5, 6: 1.5, 8: 2.0})
    assert found.run(1)
    (trial,) = found.study.trials()
    assert (trial.value, trial.best_step, trial.steps) == (1.5, 4, 8)


def test_an_objective_that_is_maximized(tmp_path):
    """Its best model is not that of the lowest loss, which only breaks ties; the least trial is pruned."""
    levels = [0.5, 0.5625, 0.625, 0.6875, 0.75, 0.125]
    curve = [(2, 0.0, 4.0), (4, 0.0625, 3.0), (8, -0.25, 1.5)]  # step, its part of the accuracy, loss
    found, _ = search(
        tmp_path,
        lambda call: {step: {"token_accuracy": levels[call] + part, "loss": loss} for step, part, loss in curve},
        objective=Objective("token_accuracy", maximize=True),
    )
    assert found.run(6)
    *complete, pruned = found.study.trials()
    assert [(one.value, one.best_step, one.steps, one.loss) for one in complete] == [
        (level + 0.0625, 4, 8, 3.0) for level in levels[:5]
    ]
    assert (pruned.state, pruned.value, pruned.steps) == ("pruned", 0.125, 2)
    assert "token_accuracy 0.125 is worse" in pruned.reason and "step 2" in pruned.reason


def test_a_signal_ends_the_search_and_its_trial_goes_on_later(tmp_path):
    found, runs = search(tmp_path, lambda call: {8: 1.0} if call == 0 else "signal")
    assert found.run(3) is False and len(runs.calls) == 2
    assert [trial.state for trial in found.study.trials()] == ["complete", "running"]
    assert found.train_winner(found.study.trial(0), 2) is None and len(runs.calls) == 3
    found.train.curves = lambda call: {8: 2.0}
    assert found.run(2) is True
    assert [trial.value for trial in found.study.trials()] == [1.0, 2.0] and len(runs.calls) == 4


def test_an_interrupted_trial_goes_on_and_finished_ones_are_kept(tmp_path):
    """The second run is killed after an evaluation; the same search then trains it, and only the third, anew."""
    killed, runs = search(tmp_path, lambda call: {8: 1.0} if call == 0 else KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        killed.run(3)
    before = killed.study.trials()
    assert [trial.state for trial in before] == ["complete", "running"]
    with open(tmp_path / STUDY, "a") as file:
        file.write('{"op_code": 6, "work')  # what a kill leaves of a line

    resumed, again = search(tmp_path, lambda call: {8: 2.0})
    assert resumed.run(3)
    trials = resumed.study.trials()
    assert [(trial.number, trial.state, trial.value) for trial in trials] == [
        (0, "complete", 1.0), (1, "complete", 2.0), (2, "complete", 2.0)
    ]  # fmt: skip
    assert [trial.hparams for trial in trials[:2]] == [trial.hparams for trial in before]
    assert [call[0] for call in again.calls] == [str(tmp_path / "trial-1"), str(tmp_path / "trial-2")]
    assert again.calls[0][:2] == runs.calls[1][:2]


def test_a_search_that_is_interrupted_at_any_line_goes_on(tmp_path):
    def begin(folder, line):
        with faults.interrupted_at(line, study_module, search_module) as lines:
            found, _ = search(folder, lambda call: {4: 2.0, 8: 1.0})
            assert found.run(2)
        return len(lines)

    count = begin(tmp_path / "whole", 0)
    for line in range(3, count, count // 15):
        with pytest.raises(KeyboardInterrupt):
            begin(tmp_path / str(line), line)
        resumed, _ = search(tmp_path / str(line), lambda call: {4: 2.0, 8: 1.0})
        assert resumed.run(2), line
        assert [(one.state, one.value) for one in resumed.study.trials()] == [("complete", 1.0)] * 2, line


def test_two_searches_share_a_study_and_never_a_trial(tmp_path):
    one, two = (search(tmp_path, lambda call: {8: 1.0})[0] for _ in range(2))
    with one.study.next_trial(2) as first:
        with two.study.next_trial(2) as second:
            assert (first.number, second.number) == (0, 1)
            assert first.hparams != second.hparams
            with one.study.next_trial(2) as third:
                assert third is None
        with two.study.next_trial(2) as again:
            assert again.number == 1, "left behind after one that is not"
    assert two.run(2), "both were left behind"
    assert [trial.state for trial in one.study.trials()] == ["complete"] * 2


def test_failed_trials_count_but_do_not_end_the_search(tmp_path):
    curves = [Failure("the loss is not finite."), UserError("num_heads=3: …"), {8: math.inf}, {8: 1.0}]
    found, _ = search(tmp_path, lambda call: curves[call])
    assert found.run(4)
    trials = found.study.trials()
    assert [trial.state for trial in trials] == ["failed"] * 3 + ["complete"]
    assert [trial.reason for trial in trials] == [
        "the loss is not finite.", "num_heads=3: …", "no evaluation has a finite loss", ""
    ]  # fmt: skip


def test_many_failures_in_a_row_end_the_search(tmp_path):
    found, runs = search(tmp_path, lambda call: Failure("the disk is full."))
    with pytest.raises(Failure, match=r"5 consecutive trials have failed\. The last error: the disk is full"):
        found.run(100)
    assert len(runs.calls) == 5


def test_a_success_between_failures_begins_their_count_anew(tmp_path):
    found, _ = search(tmp_path, lambda call: {8: 1.0} if call == 4 else Failure("the loss is not finite."))
    assert found.run(9)
    assert [trial.state for trial in found.study.trials()] == ["failed"] * 4 + ["complete"] + ["failed"] * 4


def test_the_seed_of_the_trials_is_none_of_the_winner_s_further_ones(tmp_path):
    """Chosen as the best of all, its own value is too good to count."""
    found, runs = search(tmp_path, lambda call: {8: float(call)})
    assert found.run(1)
    found.random_seed = 2
    summary = found.train_winner(*found.study.trials(), 3)
    assert [call[2] for call in runs.calls[1:]] == [1, 3, 4]
    assert summary["mean"] == {"loss": (1 + 2 + 3) / 3}


def test_a_search_is_not_continued_with_other_settings(tmp_path):
    study(tmp_path, train_steps=8, hparams={"hidden_size": 8, "num_heads": 2})
    with pytest.raises(UserError, match=r"begun with hparams=\{'num_heads': 2\}, but now has \{'num_heads': 4\}"):
        study(tmp_path, train_steps=8, hparams={"hidden_size": 8, "num_heads": 4})


@pytest.mark.parametrize(
    "text",
    ["my notes", '{"op_code":99}\n', '{"op_code":0}\n', '{"op_code":-1,"worker_id":"a"}\n',
     f'{{"op_code":{"[" * 99_999}\n'],
    ids=["notes", "unknown", "no study", "negative", "deep"],
)  # fmt: skip
def test_a_file_of_something_else_is_not_touched(tmp_path, text):
    (tmp_path / STUDY).write_text(text)
    with pytest.raises(UserError, match="is not a journal of Optuna"):
        study(tmp_path)
    assert (tmp_path / STUDY).read_text() == text


def test_a_process_waits_while_another_takes_a_trial(tmp_path):
    one, entered = study(tmp_path), []

    def wait():
        with one._alone():
            entered.append(time.monotonic())

    with one._alone():
        other = threading.Thread(target=wait, daemon=True)
        other.start()
        time.sleep(0.2)
        left = time.monotonic()
    other.join(10)
    assert entered and entered[0] >= left


def test_processes_cannot_share_a_search_without_locks(tmp_path, monkeypatch):
    """Every one of them would take all unfinished trials for abandoned ones."""

    def unsupported(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    one = study(tmp_path)
    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(UserError, match=r"study\.lock: this file system does not support locks\. Choose"), one._alone():
        pass
