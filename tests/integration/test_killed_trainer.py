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

PROBLEM = "algorithmic_reverse_decimal40"
STEPS = 100
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


def start(data_dir, output_dir, *more):
    program = pathlib.Path(sys.executable).with_name("t2t-trainer")
    return subprocess.Popen(
        [program, *FLAGS, f"--data_dir={data_dir}", f"--output_dir={output_dir}", *more],
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process, timeout=240):
    _, stderr = process.communicate(timeout=timeout)
    return process.returncode, stderr


def wait_for_checkpoint(process, output_dir, step):
    """Returns once `train.log` holds a checkpoint at or after `step`."""
    path, deadline = output_dir / "train.log", time.monotonic() + 240
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "more, kills", [([], (20, 60)), (["--logical_cpus=2"], (40,))], ids=["one replica", "two replicas"]
)
def test_killed_and_started_again_ends_as_if_never_killed(data_dir, tmp_path, more, kills):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert finish(start(data_dir, whole, *more))[0] == 0
    for step in kills:
        process = start(data_dir, killed, *more)
        wait_for_checkpoint(process, killed, step)
        process.send_signal(signal.SIGKILL)
        finish(process)
    status, stderr = finish(start(data_dir, killed, *more))
    assert status == 0
    resumed = [line for line in stderr.splitlines() if line.startswith("resumed at step ")]
    assert len(resumed) == 1 and int(resumed[0].split()[3].rstrip(",")) >= kills[-1]
    expected, got = state(whole), state(killed)
    assert expected.keys() == got.keys()
    for key in expected:
        np.testing.assert_array_equal(got[key], expected[key], err_msg=key)


@pytest.mark.slow
def test_sigterm_saves_and_a_second_trainer_is_refused(data_dir, tmp_path):
    process = start(data_dir, tmp_path, "--train_steps=100000")
    wait_for_checkpoint(process, tmp_path, 20)
    status, stderr = finish(start(data_dir, tmp_path, "--train_steps=100000"))
    assert status == 2 and "another trainer" in stderr and len(stderr.strip().splitlines()) == 1
    process.send_signal(signal.SIGTERM)
    status, stderr = finish(process)
    assert status == 0
    assert "stopped by a signal at step" in stderr
    lines = [json.loads(line) for line in (tmp_path / "train.log").read_text().splitlines()]
    assert lines[-1]["event"] == "end" and not lines[-1]["finished"]
    assert lines[-1]["step"] == [line["step"] for line in lines if line["event"] == "checkpoint"][-1]
