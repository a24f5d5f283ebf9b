"""The numbers that a Trainer takes: each has a range, and is refused before anything is opened."""

import ast
import csv
import dataclasses
import json
import math
import pathlib

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.training import (
    CheckpointSettings,
    DeviceSettings,
    EarlyStopping,
    EvaluationSettings,
    LogSettings,
    Trainer,
)
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.optimization.schedules import describe_other_length, last_learning_rate
from t2t_lite.training.settings import EARLY, NOT_GIVEN, LengthSettings, RememberedFlags
from tests.training.runs import HPARAMS, PROBLEM, assert_same, killed_after, log, state

DOCS = pathlib.Path(__file__).parents[2] / "docs"
NUMBERS = {
    field.name: settings
    for settings in (CheckpointSettings, DeviceSettings, EarlyStopping, EvaluationSettings, LogSettings)
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


def test_all_numbers_are_looked_at():
    assert {"worker_gpu", "logical_cpus", "local_eval_frequency", "keep_checkpoint_every_n_hours"} <= set(NUMBERS)
    assert CheckpointSettings(keep_checkpoint_max=0, local_eval_frequency="1e3").local_eval_frequency == 1000


SETTINGS = {
    "evaluation": EvaluationSettings(
        eval_steps=3,
        best_checkpoint_metric="loss",
        early_stopping=EarlyStopping(steps=7, metric_delta=0.5),
        search={"beam_size": 2},
        translate_all=True,
    ),
    "checkpoints": CheckpointSettings(local_eval_frequency=3, keep_checkpoint_max=2),
    "devices": NOT_GIVEN["devices"],
    "log": LogSettings(log_step_count_steps=1),
}


def test_defaults_are_tensor2tensors_unless_the_table_of_flags_says_otherwise():
    """What tensor2tensor does not have is off."""
    with open(DOCS / "tensor2tensor_flags.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    theirs = {row["flag"]: row for row in rows if "trainer" in row["commands"].split()}
    ours = {f"{EARLY}{field.name}": field.default for field in dataclasses.fields(EarlyStopping)}
    for settings in (LengthSettings, CheckpointSettings, DeviceSettings, EvaluationSettings, LogSettings):
        ours |= {field.name: field.default for field in dataclasses.fields(settings)}
    assert len(ours.keys() & theirs.keys()) > 12
    for name, value in ours.items():
        if name not in theirs:
            assert not value or name in ("deterministic", "early_stopping"), name
        elif "default" in (difference := theirs[name]["difference"].lower()):
            assert value == (0 if "default 0" in difference else None), name
        else:
            expected = ast.literal_eval(theirs[name]["default"])
            assert value == expected or (value is None and expected is False), name  # None: as in the earlier run


def test_settings_come_back_from_a_plan_and_names_are_those_of_flags():
    plan = json.loads(json.dumps(RememberedFlags().updated(16, **SETTINGS).values))
    assert RememberedFlags("run", plan).settings() == SETTINGS | {"train_steps": 16}
    assert plan["eval_early_stopping_steps"] == 7 and plan["schedule"] == "train_eval_and_decode"
    assert plan["keep_checkpoint_max"] == 2 and "profile" not in plan and "xla_compile" not in plan
    assert RememberedFlags().updated(16, **SETTINGS | {"evaluation": None}).settings()["evaluation"] is None
    assert RememberedFlags().settings() == NOT_GIVEN | {"train_steps": 250_000}
    assert str(RememberedFlags().updated(16, **NOT_GIVEN, warm_start_from="a", keep_checkpoint_max=0)) == (
        "train_steps=16, keep_checkpoint_max=0, warm_start_from=a"
    )


@pytest.mark.parametrize("wrong", [{"train_steps": -1}, {"keep_checkpoint_max": "many"}, {"best_checkpoint_metric": 1}])
def test_a_plan_that_is_none_is_named(wrong):
    with pytest.raises(UserError, match=rf"^run/hparams\.json: {next(iter(wrong))}="):
        RememberedFlags("run", RememberedFlags().updated(16, **NOT_GIVEN).values | wrong).settings()


def test_a_schedule_that_depends_on_the_steps_says_how_it_changes():
    hparams = registry.hparams("transformer_tiny").parse("learning_rate_warmup_steps=2,learning_rate_constant=1")
    hparams.learning_rate_schedule = "constant*linear_warmup*single_cycle_cos_decay"
    optimizer = make_optimizer(hparams, 32)
    optimizer.build([])
    optimizer.iterations.assign(8)
    said = describe_other_length(optimizer, 16)
    assert "train_steps, which was 16 and is now 32: the learning rate of the next update is 8.716e-01" in said
    # Of eight updates the last one was the eighth: (1 + cos(π · 6 / 30)) / 2.
    assert last_learning_rate(optimizer) == pytest.approx(0.904508)
    hparams.learning_rate_schedule = "constant*linear_warmup*rsqrt_decay"
    optimizer = make_optimizer(hparams, 32)
    optimizer.build([])
    assert describe_other_length(optimizer, 16) is None
    assert last_learning_rate(optimizer) == pytest.approx(0.5 / 2**0.5), "before the first update that of the first"


def test_what_is_asked_for_now_is_told_from_what_was_before(caplog):
    hparams = HParams().parse("learning_rate_schedule=linear_decay,learning_rate_decay_steps=30")
    optimizer = make_optimizer(hparams, 32)
    optimizer.build([])
    before = RememberedFlags("run", {"train_steps": 16, "logical_cpus": 2, "search": None})
    now = before.updated(32, **SETTINGS)
    expected = {"train_steps": [16, 32], "logical_cpus": [2, 0], "search": [None, {"beam_size": 2}]}
    assert before.log_changes(now, optimizer) == expected
    changes = "train_steps: 16 -> 32, logical_cpus: 2 -> 0, decode_hparams: None -> beam_size=2"
    assert str(now).startswith("train_steps=32, decode_hparams=beam_size=2, schedule=")
    assert caplog.messages[0] == f"changed settings: {changes}"
    assert "depends on train_steps, which was 16 and is now 32:" in caplog.messages[1]
    caplog.clear()
    assert now.log_changes(now, optimizer) == {} and not caplog.messages


@pytest.mark.slow
def test_a_run_goes_on_as_it_was_asked_to(data_dir, tmp_path, caplog):
    cosine = "learning_rate_schedule=constant*linear_warmup*single_cycle_cos_decay,learning_rate_warmup_steps=1"
    hparams = registry.hparams("transformer_tiny").parse(HPARAMS.replace("learning_rate_warmup_steps=10", cosine))

    def trainer(folder, **settings):
        return Trainer(data_dir=data_dir, output_dir=str(tmp_path / folder), **settings)

    whole = {"problem": PROBLEM, "model": "runs_small", "hparams": hparams, **SETTINGS, "evaluation": None}
    trainer("whole", **whole | {"checkpoints": CheckpointSettings(3, keep_checkpoint_max=0)}).train(6)
    killed_after(tmp_path / "whole", 3, tmp_path / "parts")
    trainer("parts").train()
    assert_same(state(tmp_path / "parts", 6), state(tmp_path / "whole", 6))
    assert "flags of the run: train_steps=6, keep_checkpoint_max=0, local_eval_frequency=3" in caplog.text
    assert "instead of" not in caplog.text and "changed" not in log(tmp_path / "parts", "resume")[0]
    trainer("parts", checkpoints=CheckpointSettings(1, keep_checkpoint_max=2)).train(8)
    assert "train_steps: 6 -> 8" in caplog.text and "instead of" in caplog.text
    change = log(tmp_path / "parts", "resume")[-1]
    assert change["step"] == 6 and change["changed"]["keep_checkpoint_max"] == [0, 2]
    trainer("parts", remembers=False, checkpoints=CheckpointSettings(5)).train(9)
    plan = json.loads((tmp_path / "parts" / "hparams.json").read_text())["plan"]
    assert (plan["train_steps"], plan["local_eval_frequency"]) == (8, 1), "a trial of the set-up changes nothing"
