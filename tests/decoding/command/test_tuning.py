import pytest

from t2t_lite.decoding.command import tuning
from t2t_lite.decoding.command.decode_hparams import DEFAULT_GRID
from t2t_lite.decoding.command.tuning import GridTrial, parse_grid
from t2t_lite.errors import UserError


def test_every_combination_comes_once():
    assert parse_grid("beam_size=1,4;alpha=0,0.6") == [
        {"beam_size": 1},  # of one hypothesis alpha chooses nothing
        {"beam_size": 4, "alpha": 0.0},
        {"beam_size": 4, "alpha": 0.6},
    ]
    assert parse_grid("alpha=1,1,0 extra_length=9") == [{"alpha": a, "extra_length": 9} for a in (1.0, 0.0)]
    assert len(parse_grid(DEFAULT_GRID)) == 7


@pytest.mark.parametrize(
    "grid, word",
    [("", "nothing"), ("beam=1", "beam=1"), ("beam_size", "name=value"), ("beam_size=0", "beam_size=0"),
     ("beam_size=two", "two"), ("alpha=1;alpha=2", "twice"), ("length_penalty=hf", "hf")],
)  # fmt: skip
def test_mistakes_are_named(grid, word):
    with pytest.raises(UserError, match=word) as caught:
        parse_grid(grid)
    assert str(caught.value).startswith("--tune: ")


def test_the_table_and_the_best():
    scores = {1: 30.0, 4: 31.001, 8: 31.004}
    trials = list(
        tuning.tune(
            lambda s: s["beam_size"],
            lambda beam: {"sacreBLEU": scores[beam], "BP": 1},
            [{"beam_size": b} for b in scores],
        )
    )
    assert tuning.best_trial(trials).settings == {"beam_size": 4}  # as good as 8 to two decimals, and quicker
    constant = [
        GridTrial({"beam_size": b}, {"sacreBLEU": 0.0, "chrF2": {1: 9.0, 4: 9.5, 8: 9.5}[b]}, 0.0) for b in scores
    ]
    assert tuning.best_trial(constant).settings == {"beam_size": 4}
    lines = tuning.table([*trials[:1], GridTrial({"beam_size": 4, "alpha": 0.6}, trials[1].scores, 12.34)])
    assert [line.split() for line in lines] == [
        ["beam_size", "alpha", "sacreBLEU", "BP", "seconds"],
        ["1", "-", "30.00", "1.000", "0.0"],
        ["4", "0.6", "31.00", "1.000", "12.3"],
    ]
    assert len(set(map(len, lines))) == 1


def test_what_is_done_once_is_done_before_the_clock_runs(monkeypatch):
    done, now = [], [0.0]
    monkeypatch.setattr(tuning.time, "monotonic", lambda: now[0])

    def warm_up(settings):
        done.append(("warm", settings["beam_size"]))
        now[0] += 60

    def translate(settings):
        done.append(("translate", settings["beam_size"]))
        now[0] += settings["beam_size"]

    combinations = [{"beam_size": 1}, {"beam_size": 4}]
    trials = list(tuning.tune(translate, lambda outputs: {"BLEU": 1.0}, combinations, warm_up))
    assert done == [("warm", 1), ("translate", 1), ("warm", 4), ("translate", 4)]
    assert [trial.seconds for trial in trials] == [1.0, 4.0]
