"""The trainer as a process that is killed, stopped and started again."""

import json
import pathlib
import signal
import subprocess
import sys

import pytest

from t2t_lite import registry
from tests.integration.conftest import replaced
from tests.processes import wait_for
from tests.training.runs import PROBLEM, assert_same, state, wait_for_checkpoint

STEPS = 60
FLAGS = [
    f"--problem={PROBLEM}",
    "--hparams_set=transformer_tiny",
    "--hparams=num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,eval_decode_examples=0",
    f"--train_steps={STEPS}",
    "--local_eval_frequency=20",
    "--schedule=train",
]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("data"))
    problem = registry.problem(PROBLEM)
    problem.max_cases = 200
    problem.generate_data(folder, folder)
    return folder


@pytest.fixture
def start_trainer(start, data_dir):
    """Starts the command in a folder, with further flags."""

    def start_trainer(output_dir, *more):
        program = pathlib.Path(sys.executable).with_name("t2t-trainer")
        words = [program, *replaced(FLAGS, *more), f"--data_dir={data_dir}", f"--output_dir={output_dir}"]
        return start(words, stderr=subprocess.PIPE, text=True)

    return start_trainer


def finish(process, timeout=900):
    _, stderr = process.communicate(timeout=timeout)
    return process.returncode, stderr


def wait_for_save(output_dir, step, processes):
    """Returns as soon as there is a file of a checkpoint that the list of checkpoints does not have."""
    (process,) = processes
    wait_for(lambda: process.poll() is not None or any(output_dir.glob(f"model.ckpt-{step}[._]*")), 900, pause=0.0005)
    assert process.poll() is None, finish(process)
    listed = output_dir / "checkpoint"
    assert not listed.exists() or f"model.ckpt-{step}" not in listed.read_text(), "too late"


@pytest.mark.long  # four processes that train
def test_killed_while_saving_and_while_evaluating_ends_as_if_never_killed(start_trainer, tmp_path):
    """In the save of step 40, then in the evaluation after it, which is long: it is traced."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    more = ["--logical_cpus=2", "--schedule=continuous_train_and_eval", "--eval_steps=1"]
    assert finish(start_trainer(whole, *more))[0] == 0
    for wait in (wait_for_save, wait_for_checkpoint):
        process = start_trainer(killed, *more)
        wait(killed, 40, [process])
        process.send_signal(signal.SIGKILL)
        assert finish(process)[0] == -signal.SIGKILL
    status, stderr = finish(start_trainer(killed, *more))
    assert status == 0
    events = [json.loads(line) for line in (killed / "train.log").read_text().splitlines()]
    resumed = [(event["step"], event["data_batch"]) for event in events if event["event"] == "resume"]
    assert resumed == [(20, 40), (40, 80)]
    assert "resumed at step 40, data batch 80" in stderr.splitlines()
    evaluated = [event["step"] for event in events if event["event"] == "evaluation"]
    assert evaluated == list(range(20, STEPS + 1, 20)), "that of step 40 was made up for"
    assert not list(killed.glob("*_temp")), "what the killed save left is gone"
    assert_same(state(killed, STEPS), state(whole, STEPS))


@pytest.mark.long
def test_a_signal_saves_and_a_second_trainer_is_refused(
    start_trainer, data_dir, call_command, assert_user_error, tmp_path
):
    process = start_trainer(tmp_path, "--train_steps=100000")
    wait_for_checkpoint(tmp_path, 20, [process])
    second = call_command("t2t-trainer", *FLAGS, f"--data_dir={data_dir}", f"--output_dir={tmp_path}")
    assert_user_error(second, "another trainer")
    process.send_signal(signal.SIGINT)  # SIGTERM: test_two_machines.py
    status, stderr = finish(process)
    assert status == 0
    assert "stopped by a signal at step" in stderr
    lines = [json.loads(line) for line in (tmp_path / "train.log").read_text().splitlines()]
    assert lines[-1]["event"] == "end" and not lines[-1]["finished"]
    assert lines[-1]["step"] == [line["step"] for line in lines if line["event"] == "checkpoint"][-1]
