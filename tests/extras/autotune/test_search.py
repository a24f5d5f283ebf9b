"""What a search says at its end."""

import dataclasses

import pytest

from t2t_lite.errors import Failure
from t2t_lite.extras.autotune import search
from t2t_lite.extras.autotune.study import Objective, Trial

LOSS = Objective("loss", maximize=False)
TRIALS = [
    Trial(0, "complete", {"num_heads": 4, "label_smoothing": 0.123456}, 1.30, 200, 400),
    Trial(1, "failed", {"num_heads": 3, "label_smoothing": 0.1}, reason="3 heads do not divide 128."),
    Trial(2, "complete", {"num_heads": 8, "label_smoothing": 0.0}, 1.20, 1000, 1000),
    Trial(3, "pruned", {"num_heads": 1, "label_smoothing": 0.2}, 1.90, 200, 200, "pruned: …"),
    Trial(4, "complete", {"num_heads": 2, "label_smoothing": 0.1}, 1.25, 800, 1000),
]
SUMMARY = {"runs": [{}, {}, {}], "mean": {"loss": 1.26}, "standard_deviation": {"loss": 0.03}}


def test_the_table_has_complete_trials_first_and_the_best_at_its_head():
    assert "\n".join(line.rstrip() for line in search.trials_table(TRIALS, LOSS)).splitlines() == [
        "trial  num_heads  label_smoothing    loss  best_step  steps     state",
        "    2          8                0  1.2000      1,000  1,000  complete",
        "    4          2              0.1  1.2500        800  1,000  complete",
        "    0          4           0.1235  1.3000        200    400  complete",
        "    1          3              0.1       -          -      -    failed",
        "    3          1              0.2  1.9000        200    200    pruned",
    ]


def test_the_best_is_that_of_the_objective_and_the_first_on_a_tie():
    assert [trial.number for trial in search.ranked(TRIALS, LOSS)] == [2, 4, 0]
    assert [trial.number for trial in search.ranked(TRIALS, Objective("bleu", maximize=True))] == [0, 4, 2]
    tie = [Trial(number, "complete", {}, 1.0, 1, 1) for number in (0, 1)]
    assert search.ranked(tie, LOSS)[0].number == 0
    tie[1] = dataclasses.replace(tie[1], loss=0.5)
    assert search.ranked(tie, Objective("bleu", maximize=True))[0].number == 1
    with pytest.raises(Failure, match=r"no trial is complete; the last trial: pruned: …"):
        search.ranked(TRIALS[1:2] + TRIALS[3:4], LOSS)


def test_trials_within_two_deviations_are_named():
    order = search.ranked(TRIALS, LOSS)
    assert [trial.number for trial in search.within_noise(order, 0.03)] == [4]
    assert search.spread_text(order, LOSS, SUMMARY) == [
        "3 other seeds: loss 1.2600, standard deviation 0.0300; the best of 3 trials reached 1.2000",
        "within two standard deviations of trial-2, so perhaps as good: trial-4",
    ]
    few = {**SUMMARY, "standard_deviation": {"loss": 0.001}}
    assert search.spread_text(order, LOSS, few)[1].endswith("so perhaps as good: no other complete trial")
    edge = [Trial(n, "complete", {}, value, 1, 1) for n, value in enumerate((1.25, 1.5, 1.0, 1.5625))]
    assert [trial.number for trial in search.within_noise(edge, 0.125)] == [1, 2], "exactly two deviations count"


def test_the_contents_of_tuning_json():
    found = search.as_json(TRIALS, LOSS, {"train_steps": 1000}, "search", SUMMARY, "t2t-trainer …")
    assert found["seeds"] == {**SUMMARY, "within_two_deviations": ["trial-4"]}
    winner = {
        "trial": "trial-2", "state": "complete", "hparams": {"num_heads": 8, "label_smoothing": 0.0}, "value": 1.2,
        "best_step": 1000, "steps": 1000, "reason": "", "folder": "search/trial-2", "command": "t2t-trainer …",
    }  # fmt: skip
    assert found["winner"] == winner and found["train_steps"] == 1000
    assert found["objective"] == {"metric": "loss", "maximize": False} and len(found["trials"]) == 5
    assert found["trials"][2] == {name: value for name, value in winner.items() if name not in ("folder", "command")}
    steps = [(one["best_step"], one["steps"]) for one in found["trials"]]
    assert steps == [(200, 400), (None, None), (1000, 1000), (200, 200), (800, 1000)]
    failed = {"trial": "trial-1", "state": "failed", "hparams": TRIALS[1].hparams, "reason": TRIALS[1].reason}
    assert found["trials"][1] == failed | dict.fromkeys(("value", "best_step", "steps"))
    assert "seeds" not in search.as_json(TRIALS, LOSS, {}, "search")
    assert search.describe({"a": 0.000123456, "b": 12, "c": "adam"}) == "a 0.0001235, b 12, c adam"
