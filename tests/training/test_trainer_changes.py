"""Settings of a run cannot change unnoticed; what may change is recorded, and the rest of the run stays the same."""

# Nearest tests of: t2t_lite/training/trainer.py

import json
import shutil

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.training import run_context
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import open_training_data
from tests.training.runs import EXAMPLES, HPARAMS, PROBLEM, log, small_trainer, state

FLOAT16 = HPARAMS + ",dtype_policy=mixed_float16"


def nested(batch):
    return [batch[side].numpy().tolist() for side in sorted(batch)]


@pytest.fixture
def taken(monkeypatch):
    """What every step takes: (index of its first batch, its batches as nested lists)."""
    steps = []

    class Spied(TrainStep):
        def __call__(self, placed, *more):
            steps.append((int(placed.first), [nested(batch) for batch in placed.batches]))
            return super().__call__(placed, *more)

    monkeypatch.setattr(run_context, "TrainStep", Spied)
    return steps


def distance(one, other):
    """Of the weights of two states."""
    return np.sqrt(sum(((one[key] - other[key]) ** 2).sum() for key in one if key.startswith("model/")))


@pytest.mark.long
def test_other_settings_change_only_when_allowed_and_are_recorded(data_dir, tmp_path, taken):
    small_trainer(data_dir, tmp_path).train(3)
    changed = HPARAMS.replace("batch_size=256", "batch_size=200")
    with pytest.raises(UserError, match=r"batch_size: 256 -> 200.*--allow_hparams_change"):
        small_trainer(data_dir, tmp_path, changed).train(5)
    small_trainer(data_dir, tmp_path, changed, allow_hparams_change=True).train(5)
    [line] = log(tmp_path, "hparams_change")
    assert line["step"] == 3 and line["changed"] == {"batch_size": [256, 200]}
    # Of a stream that begins anew; the masks and the count of batches go on.
    fresh = open_training_data(PROBLEM, registry.hparams("transformer_tiny").parse(changed), data_dir).batches
    assert taken[3:] == [(3 + at, [nested(batch)]) for at, batch in enumerate(fresh.take(2))]
    assert json.loads((tmp_path / "hparams.json").read_text())["hparams"]["batch_size"] == 200


@pytest.mark.slow
def test_other_records_are_read_only_when_allowed_and_from_their_beginning(data_dir, tmp_path, taken):
    run, moved, other = tmp_path / "run", tmp_path / "moved", tmp_path / "other"
    small_trainer(data_dir, run).train(3)
    small_trainer(str(shutil.copytree(data_dir, moved)), run).train(4)
    problem = registry.problem(PROBLEM)
    problem.max_cases = EXAMPLES // 2
    problem.generate_data(str(other), str(tmp_path))
    with pytest.raises(UserError, match="training records in --data_dir differ"):
        small_trainer(str(other), run).train(6)
    small_trainer(str(other), run, allow_hparams_change=True).train(6)
    [line] = log(run, "hparams_change")
    assert line["step"] == 4 and [*line["changed"]] == ["records_sha256"]
    fresh = open_training_data(PROBLEM, registry.hparams("transformer_tiny").parse(HPARAMS), str(other)).batches
    assert taken[4:] == [(4 + at, [nested(batch)]) for at, batch in enumerate(fresh.take(2))]


@pytest.mark.long
@pytest.mark.slow
def test_a_run_that_changes_to_float16_begins_with_the_first_scale(data_dir, tmp_path, caplog):
    small_trainer(data_dir, tmp_path).train(3)
    with pytest.raises(UserError, match=r"dtype_policy: float32 -> mixed_float16.*--allow_hparams_change"):
        small_trainer(data_dir, tmp_path, FLOAT16).train(6)
    small_trainer(data_dir, tmp_path, FLOAT16, allow_hparams_change=True).train(6)
    assert "model.ckpt-3 was not trained in float16: the loss scale starts at 32,768" in caplog.text
    small_trainer(data_dir, tmp_path, allow_hparams_change=True).train(7)
    assert "loss_scale" not in log(tmp_path)[-2], "back in float32"


@pytest.mark.slow
def test_another_number_of_replicas_keeps_the_batches_of_a_step(data_dir, tmp_path, taken, caplog):
    small_trainer(data_dir, tmp_path / "one", HPARAMS + ",gradient_accumulation_steps=2").train(4)
    expected = taken.copy()
    taken.clear()
    changing = tmp_path / "changing"
    small_trainer(data_dir, changing, logical_cpus=2).train(2)
    with pytest.raises(UserError, match=r"3 replicas cannot equally share the batches of a step, 2 in .*: 1, 2\."):
        small_trainer(data_dir, changing, logical_cpus=3).train(4)
    small_trainer(data_dir, changing).train(4)
    assert taken == expected
    whole, early, after = state(tmp_path / "one", 4), state(tmp_path / "one", 3), state(changing, 4)
    assert distance(whole, after) <= 1e-3 * distance(whole, early)
    assert "1 replica, accumulation 2 (same batches per step)" in caplog.text
    begun = [line for line in log(changing) if line["event"] in ("start", "resume")]
    assert [(line["replicas"], line["gradient_accumulation_steps"]) for line in begun] == [(2, 1), (1, 2)]
    # As `--hparams=gradient_accumulation_steps=1 --allow_hparams_change` does.
    small_trainer(data_dir, changing, allow_hparams_change=True, keep_batches_a_step=False).train(5)
    assert [len(batches) for _, batches in taken[4:]] == [1]
    [change] = log(changing, "hparams_change")
    assert change["step"] == 4 and change["changed"] == {"batches_a_step": [2, 1]}


@pytest.mark.slow
def test_the_best_model_is_chosen_among_evaluations_of_the_same_examples(data_dir, tmp_path):
    hparams = HPARAMS.replace("learning_rate_warmup_steps=10", "learning_rate_constant=0")  # all models are the same

    def best_steps(train_steps, **settings):
        settings |= {"evaluates": True, "best_checkpoint_metric": "loss"}
        small_trainer(data_dir, tmp_path, hparams, **settings).train(train_steps)
        return [line["best_step"] for line in log(tmp_path, "best")]

    assert best_steps(3) == [3]
    assert best_steps(4, eval_steps=1, remembers=False) == [3]  # as with --schedule=test
    assert best_steps(6, eval_steps=2) == [3, 6]
    assert [line["settings"]["eval_steps"] for line in log(tmp_path, "evaluation")] == [0, 1, 2]
