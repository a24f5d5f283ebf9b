"""Learning rates: the paper's formula, and tensor2tensor's figures."""

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.optimization.schedules import ProductSchedule, describe_short_run


def rate(hparams, step, train_steps=100_000):
    return float(ProductSchedule(hparams, train_steps)(step - 1))


@pytest.mark.parametrize("step", [1, 100, 3999, 4000, 4001, 100_000])
def test_equation_3_of_the_paper(step):
    expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert rate(registry.hparams("transformer_base_v1"), step) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "schedule, step, expected",
    [
        ("constant", 7, 3.0),
        ("constant * linear_warmup", 50, 1.5),
        ("rsqrt_normalized_decay", 400, 0.5),
        ("linear_decay", 900, 0.5),
        ("linear_decay", 100, 1.0),
        ("exp_decay", 300, 0.5),
        ("cosdecay", 200, (1 + np.cos(np.pi)) / 2),
        ("cosdecay", 100, 1.0),  # up to the end of the warm-up
        ("cosdecay", 101, (1 + np.cos(np.pi * 101 / 200)) / 2),
        ("single_cycle_cos_decay", 550, 0.5),
        ("multi_cycle_cos_decay", 200, 0.5),
        ("slanted_triangular", 50, (1 + 0.5 * 31) / 32),
        ("slanted_triangular", 100, 1.0),
        ("slanted_triangular", 1000, 1 / 32),
    ],
)
def test_each_factor(schedule, step, expected):
    numbers = {"constant": 3, "warmup_steps": 100, "decay_steps": 200, "decay_rate": 0.5, "schedule": schedule}
    hparams = HParams(**{f"learning_rate_{name}": value for name, value in numbers.items()})
    assert rate(hparams, step, train_steps=1000) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("step, steps_down", [(100, 0), (299, 0), (300, 1), (499, 1), (500, 2)])
def test_an_exponential_decay_may_go_down_in_steps(step, steps_down):
    words = "learning_rate_schedule=exp_decay,learning_rate_warmup_steps=100,learning_rate_decay_steps=200,"
    hparams = HParams().parse(f"{words}learning_rate_decay_rate=0.5,learning_rate_decay_staircase=True")
    assert rate(hparams, step) == pytest.approx(0.5**steps_down)


@pytest.mark.parametrize("factor", ["linear_warmup", "rsqrt_decay", "rsqrt_normalized_decay", "slanted_triangular"])
def test_without_a_warm_up_the_first_step_has_the_whole_rate(factor):
    assert rate(HParams().parse(f"learning_rate_schedule={factor},learning_rate_warmup_steps=0"), 1, 1000) > 0.99


def test_unknown_factor_names_the_nearest():
    with pytest.raises(UserError, match=r"unknown factor 'rsqrt_decai'. Nearest: rsqrt_decay"):
        ProductSchedule(HParams().parse("learning_rate_schedule=constant*rsqrt_decai"), 100)


def rates(schedule, train_steps, warmup, decay=5):
    words = f"learning_rate_schedule={schedule},learning_rate_warmup_steps={warmup},learning_rate_decay_steps={decay}"
    made = ProductSchedule(HParams().parse(words), train_steps)
    return made.cut, [float(made(step)) for step in range(train_steps)]


WARMUP, DECAY = "learning_rate_warmup_steps", "learning_rate_decay_steps"


@pytest.mark.parametrize(
    ("schedule", "cut", "expected"),
    [
        ("linear_warmup*single_cycle_cos_decay", {WARMUP: 4}, [0.25, 0.5, 0.75, 1.0, 0.0]),
        ("slanted_triangular", {WARMUP: 4}, [(1 + 31 * h) / 32 for h in (0.25, 0.5, 0.75, 1, 0)]),
        ("linear_decay", {DECAY: 5}, [0.8, 0.6, 0.4, 0.2, 0.0]),
        ("linear_warmup*linear_decay", {WARMUP: 4, DECAY: 5}, [0.2, 0.3, 0.3, 0.2, 0.0]),
        ("linear_warmup*rsqrt_normalized_decay", {}, [0.01, 0.02, 0.03, 0.04, 0.05]),  # it may be trained for longer
        ("linear_warmup*cosdecay", {}, [0.01, 0.02, 0.03, 0.04, 0.05]),
    ],
)
def test_a_warm_up_and_a_decay_that_end_with_the_run_are_cut_to_it(schedule, cut, expected):
    found = rates(schedule, 5, 100, 1000)
    assert found[0] == cut
    assert found[1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("schedule", ["single_cycle_cos_decay", "slanted_triangular", "linear_decay"])
def test_what_fits_is_not_cut_and_no_run_is_too_short(schedule):
    assert rates(schedule, 5, 4)[0] == {}
    for steps in (0, 1, 2):
        cut, found = rates(f"linear_warmup*{schedule}", steps, 100)
        assert cut[WARMUP] == max(steps - 1, 0) and np.isfinite(found).all()


def test_a_short_run_is_told_what_is_cut_and_what_it_does_not_reach():
    def told(words, train_steps):
        hparams = HParams().parse(f"learning_rate_warmup_steps=1000,learning_rate_decay_steps=20000,{words}")
        return describe_short_run(make_optimizer(hparams, train_steps))

    linear = "learning_rate_schedule=constant*linear_warmup*linear_decay"
    assert told(linear, 50) == [
        "learning_rate_warmup_steps=1,000 is longer than the run of 50 steps, and is reduced to 49.",
        "learning_rate_decay_steps=20,000 is longer than the run of 50 steps, and is reduced to 50.",
    ]
    assert told("", 50) == [
        "learning_rate_warmup_steps=1,000 is longer than the run of 50 steps, which ends at 5.0% of the highest "
        "learning rate. Train longer, or shorten the warm-up."
    ]
    assert told("", 1000) == told(linear, 20_000) == told("learning_rate_schedule=constant", 50) == []


def test_saved_with_its_settings():
    schedule = ProductSchedule(registry.hparams("transformer_tiny"), 1000)
    assert float(ProductSchedule.from_config(schedule.get_config())(99)) == float(schedule(99))
