"""The trainer as a process that is killed, stopped and started again."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.integration.conftest import replaced

PROBLEM = "algorithmic_reverse_decimal40"
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
    from t2t_lite import registry

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


def wait_for_checkpoint(process, output_dir, step):
    """Returns once `train.log` holds a checkpoint at or after `step`."""
    path, deadline = output_dir / "train.log", time.monotonic() + 900
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists():
            for line in path.read_text().splitlines():
                if '"checkpoint"' in line and json.loads(line)["step"] >= step:
                    return
        time.sleep(0.02)
    raise AssertionError(f"no checkpoint at step {step}: {finish(process)}")


def state(output_dir):
    import tensorflow as tf

    reader = tf.train.load_checkpoint(os.path.join(output_dir, f"model.ckpt-{STEPS}"))
    keys = [k for k in reader.get_variable_to_shape_map() if k.startswith(("model/", "optimizer/"))]
    return {key: reader.get_tensor(key) for key in keys}


def wait_for_save(process, output_dir, step):
    """Returns as soon as there is a file of a checkpoint that the list of checkpoints does not have."""
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline and process.poll() is None:
        if any(output_dir.glob(f"model.ckpt-{step}[._]*")):
            listed = output_dir / "checkpoint"
            assert not listed.exists() or f"model.ckpt-{step}" not in listed.read_text(), "too late"
            return
        time.sleep(0.0005)
    raise AssertionError(f"no save at step {step}: {finish(process)}")


@pytest.mark.long  # four processes that train
def test_killed_while_saving_and_while_evaluating_ends_as_if_never_killed(start_trainer, tmp_path):
    """In the save of step 40, then in the evaluation after it, which is long: it is traced."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    more = ["--logical_cpus=2", "--schedule=continuous_train_and_eval", "--eval_steps=1"]
    assert finish(start_trainer(whole, *more))[0] == 0
    for wait in (wait_for_save, wait_for_checkpoint):
        process = start_trainer(killed, *more)
        wait(process, killed, 40)
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
    expected, got = state(whole), state(killed)
    assert expected.keys() == got.keys()
    for key in expected:
        np.testing.assert_array_equal(got[key], expected[key], err_msg=key)


@pytest.mark.long
def test_a_signal_saves_and_a_second_trainer_is_refused(
    start_trainer, data_dir, call_command, assert_user_error, tmp_path
):
    process = start_trainer(tmp_path, "--train_steps=100000")
    wait_for_checkpoint(process, tmp_path, 20)
    second = call_command("t2t-trainer", *FLAGS, f"--data_dir={data_dir}", f"--output_dir={tmp_path}")
    assert_user_error(second, "another trainer")
    process.send_signal(signal.SIGINT)  # SIGTERM: test_two_machines.py
    status, stderr = finish(process)
    assert status == 0
    assert "stopped by a signal at step" in stderr
    lines = [json.loads(line) for line in (tmp_path / "train.log").read_text().splitlines()]
    assert lines[-1]["event"] == "end" and not lines[-1]["finished"]
    assert lines[-1]["step"] == [line["step"] for line in lines if line["event"] == "checkpoint"][-1]
