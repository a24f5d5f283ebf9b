"""The command that began a run, or a part of it, goes on with it; what contradicts it is named."""

import json

import pytest

from t2t_lite import registry
from tests.training.conftest import runs_on_the_same_records_share_their_streams  # noqa: F401  a fixture for all here
from tests.training.runs import PROBLEM

SMALL = "--model=runs_small"
SET = "--hparams_set=transformer_tiny"
CHANGES = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,eval_decode_examples=0"


@pytest.fixture
def train(call_command, tmp_path):
    """Calls t2t-trainer on a run of one step: what comes after the first call has nothing left to train."""
    problem = registry.problem(PROBLEM)
    problem.max_cases = 60
    (tmp_path / "data").mkdir()
    problem.generate_data(str(tmp_path / "data"), str(tmp_path))

    def call(*flags):
        common = "--data_dir=data", "--output_dir=run", "--train_steps=1", "--schedule=train"
        return call_command("t2t-trainer", *common, *flags)

    return call


@pytest.fixture
def remembered(tmp_path):
    """Returns a function that reads what the run remembers."""
    return lambda: json.loads((tmp_path / "run" / "hparams.json").read_text())


@pytest.mark.slow
def test_what_contradicts_a_run_is_named(train, remembered, tmp_path, assert_user_error, call_command):
    begun = f"--problem={PROBLEM}", SMALL, SET, f"--hparams={CHANGES}"
    assert train(*begun).status == 0
    config, log = remembered(), (tmp_path / "run" / "train.log").read_text()
    for flags, words in (
        ((SET, "--hparams=batch_size=512"), ["batch_size: 256 -> 512.", "--allow_hparams_change"]),
        (("--hparams_set=transformer_small",), ["hparams_set: transformer_tiny -> transformer_small"]),
        (("--problem=algorithmic_identity_decimal40",), [PROBLEM, "algorithmic_identity_decimal40"]),
    ):
        assert_user_error(train(*flags), "run", *words)
        assert remembered() == config
    assert (tmp_path / "run" / "train.log").read_text() == log
    assert train("--hparams=batch_size=128", "--allow_hparams_change").status == 0
    [change] = [line for line in (tmp_path / "run" / "train.log").read_text().splitlines() if "hparams_change" in line]
    assert json.loads(change)["changed"] == {"batch_size": [256, 128]}
    short = call_command("t2t-trainer", "--data_dir=data", "--output_dir=run")
    assert short.status == 0 and "nothing to train: the run is at step 1 and train_steps=1." in short.stderr
    assert "flags of the run: train_steps=1, schedule=train\n" in short.stderr
    (tmp_path / "run" / "hparams.json").unlink()
    assert_user_error(train(*begun), "run", "model.ckpt-1", "no hparams.json")


@pytest.mark.slow
def test_a_run_that_does_not_evaluate_needs_no_dev_set(train, tmp_path, assert_user_error, call_command):
    for path in (tmp_path / "data").glob("*-dev-*"):
        path.unlink()
    assert train(f"--problem={PROBLEM}", SMALL, SET, f"--hparams={CHANGES}").status == 0
    common = "t2t-trainer", "--data_dir=data", "--output_dir=run"
    assert call_command(*common).status == 0  # the run remembers --schedule=train
    assert_user_error(call_command(*common, "--schedule=train_and_evaluate"), "data", "-dev-", "no such records")
