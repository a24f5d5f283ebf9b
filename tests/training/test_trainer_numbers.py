"""The numbers that a Trainer takes: each has a range, and is refused before anything is opened."""

import dataclasses
import math

import pytest

from t2t_lite.errors import UserError
from t2t_lite.training import (
    CheckpointSettings,
    DeviceSettings,
    EarlyStopping,
    EvaluationSettings,
    LogSettings,
    Trainer,
)

NUMBERS = {
    field.name: settings
    for settings in (CheckpointSettings, DeviceSettings, EvaluationSettings, LogSettings)
    for field in dataclasses.fields(settings)
    if field.type in (int, float)
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 2**63, 10**400, "many", None, [1], True], ids=str)
def test_a_number_out_of_range(name, value):
    with pytest.raises(UserError, match=f"^{name}=.*: expected a .*number"):
        NUMBERS[name](**{name: value})


@pytest.mark.parametrize("value", [-1, math.nan, 2**63, "x", 1.5])
def test_a_number_of_steps_out_of_range(value, tmp_path):
    with pytest.raises(UserError, match=r"^train_steps="):
        Trainer(output_dir=str(tmp_path / "run")).train(value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "name, value", [("steps", -1), ("steps", 1.5), ("metric_delta", -0.1), ("metric_delta", math.nan)]
)
def test_early_stopping_out_of_range(name, value):
    with pytest.raises(UserError, match=f"^{name}="):
        EarlyStopping(**{name: value})


def test_all_numbers_are_looked_at():
    assert {"worker_gpu", "logical_cpus", "local_eval_frequency", "keep_checkpoint_every_n_hours"} <= set(NUMBERS)
    assert CheckpointSettings(keep_checkpoint_max=0, local_eval_frequency="1e3").local_eval_frequency == 1000
