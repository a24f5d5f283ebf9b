"""Two t2t-trainers on this machine, joined by TF_CONFIG, against one that accumulates two batches."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

PROBLEM = "--problem=algorithmic_reverse_decimal40"
HPARAMS = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,eval_decode_examples=0,"
    "learning_rate_warmup_steps=10,layer_prepostprocess_dropout=0.2"
)
FLAGS = (PROBLEM, "--hparams_set=transformer_tiny", "--data_dir=data", "--log_step_count_steps=5", "--schedule=train")


@pytest.fixture
def data(call_command):
    assert call_command("t2t-datagen", PROBLEM, "--max_cases=300", "--data_dir=data").status == 0


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@pytest.fixture
def start_workers(tmp_path, call_command):
    """Starts the trainer on two "machines"; returns the processes."""
    started = []

    def start(*flags):
        addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
        configs = call_command("t2t-make-tf-configs", f"--workers={addresses}").stdout.splitlines()
        program = pathlib.Path(sys.executable).with_name("t2t-trainer")
        for index, config in enumerate(configs):
            log = open(tmp_path / f"worker{index}.log", "w")  # noqa: SIM115  (the process writes to it)
            environment = {**os.environ, "TF_CONFIG": config.strip("'")}
            started.append(
                subprocess.Popen([program, *FLAGS, *flags], cwd=tmp_path, env=environment, stdout=log, stderr=log)
            )
            log.close()
        return started

    yield start
    for process in started:
        process.kill()
        process.wait()


def weights(path):
    reader = tf.train.load_checkpoint(str(path))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name.startswith("model/")}


def distance(one, other):
    return np.sqrt(sum(((one[name] - other[name]) ** 2).sum() for name in one))


@pytest.mark.slow  # processes of their own import TensorFlow
def test_two_machines_take_the_step_of_one(tmp_path, data, start_workers, call_command):
    processes = start_workers(
        "--output_dir=two", "--train_steps=12", f"--hparams={HPARAMS}", "--local_eval_frequency=6"
    )
    assert [process.wait(timeout=240) for process in processes] == [0, 0], (tmp_path / "worker1.log").read_text()
    alone = call_command(
        "t2t-trainer",
        *FLAGS,
        f"--hparams={HPARAMS},gradient_accumulation_steps=2",
        "--output_dir=one",
        "--train_steps=12",
        "--local_eval_frequency=6",
    )
    assert alone.status == 0, alone.stderr
    two, one, early = (
        weights(tmp_path / path) for path in ("two/model.ckpt-12", "one/model.ckpt-12", "one/model.ckpt-6")
    )
    assert distance(two, one) < 1e-5 * distance(one, early)
    said = (tmp_path / "worker1.log").read_text()
    assert "this is worker 1" in said
    assert "step 5/12" not in said, "one log is enough"


@pytest.mark.slow
def test_a_machine_that_is_gone_is_named(tmp_path, data, start_workers):
    flags = "--output_dir=dead", "--train_steps=1000000", f"--hparams={HPARAMS}", "--local_eval_frequency=20"
    chief, worker = start_workers(*flags)
    deadline = time.monotonic() + 240
    while not (tmp_path / "dead" / "model.ckpt-20.index").exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    worker.send_signal(signal.SIGKILL)
    assert chief.wait(timeout=120) == 1
    last = (tmp_path / "worker0.log").read_text().strip().splitlines()[-1]
    address = f"127.0.0.1:{_port_of_worker_1(tmp_path)}"
    assert f"t2t-trainer: error: {address} is gone; this is worker 0" in last
    assert tf.train.latest_checkpoint(str(tmp_path / "dead"))


def _port_of_worker_1(tmp_path):
    waiting = (tmp_path / "worker1.log").read_text().splitlines()[0]
    return waiting.rsplit(":", 1)[1]
