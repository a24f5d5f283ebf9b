"""The numbers that a Trainer takes: each has a range, and is refused before anything is opened."""

import dataclasses
import math

import pytest

from t2t_lite.errors import UserError
from t2t_lite.training.early_stopping import EarlyStopping
from t2t_lite.training.trainer import Trainer

NUMBERS = [field.name for field in dataclasses.fields(Trainer) if field.type in (int, float)]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 2**63, 10**400, "many", None, [1], True], ids=str)
def test_a_number_out_of_range(name, value):
    with pytest.raises(UserError, match=f"^{name}=.*: expected a .*number"):
        Trainer(**{name: value})


@pytest.mark.parametrize("value", [-1, math.nan, 2**63, "x", 1.5])
def test_a_number_of_steps_out_of_range(value, tmp_path):
    with pytest.raises(UserError, match=r"^train_steps="):
        Trainer(output_dir=str(tmp_path / "run")).train(value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name, value", [("steps", -1), ("steps", 1.5), ("delta", -0.1), ("delta", math.nan)])
def test_early_stopping_out_of_range(name, value):
    with pytest.raises(UserError, match=f"^{name}="):
        EarlyStopping(**{name: value})


def test_all_numbers_are_looked_at():
    assert {"worker_gpu", "logical_cpus", "local_eval_frequency", "keep_checkpoint_every_n_hours"} <= set(NUMBERS)
    assert Trainer(keep_checkpoint_max=0, local_eval_frequency="1e3").local_eval_frequency == 1000
