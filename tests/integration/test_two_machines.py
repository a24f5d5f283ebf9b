"""Two t2t-trainers on this machine, joined by TF_CONFIG, against one that accumulates two batches."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.runs.checkpoints import checkpoint_step
from tests.training.runs import wait_for_checkpoint

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
def start_workers(tmp_path, call_command, start):
    """Starts the trainer on two "machines"; returns the processes. `of_second`: further flags of that one."""

    def start_workers(*flags, of_second=()):
        addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
        configs = call_command("t2t-make-tf-configs", f"--workers={addresses}").stdout.splitlines()
        program, started = pathlib.Path(sys.executable).with_name("t2t-trainer"), []
        for index, config in enumerate(configs):
            environment = {**os.environ, "TF_CONFIG": config.strip("'")}
            given = [*flags, *(of_second if index else ())]
            names = {flag.partition("=")[0] for flag in given}
            words = [program, *(flag for flag in FLAGS if flag.partition("=")[0] not in names), *given]
            with open(tmp_path / f"worker{index}.log", "w") as log:
                started.append(start(words, cwd=tmp_path, env=environment, stdout=log, stderr=log))
        return started

    return start_workers


def weights(path):
    reader = tf.train.load_checkpoint(str(path))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name.startswith("model/")}


def distance(one, other):
    return np.sqrt(sum(((one[name] - other[name]) ** 2).sum() for name in one))


@pytest.mark.long
@pytest.mark.slow  # processes of their own import TensorFlow
def test_two_machines_take_the_step_of_one_and_end_early_at_the_same_step(tmp_path, data, start_workers, call_command):
    """Only the first one evaluates; what it makes of it holds for both."""
    processes = start_workers(
        "--output_dir=two",
        "--train_steps=200",
        f"--hparams={HPARAMS}",
        "--schedule=continuous_train_and_eval",
        "--local_eval_frequency=5",
        "--eval_early_stopping_steps=5",
        "--eval_early_stopping_metric_delta=100",  # no move is large enough: the second evaluation ends the run
    )
    assert [process.wait(timeout=900) for process in processes] == [0, 0], (tmp_path / "worker1.log").read_text()
    first, second = ((tmp_path / f"worker{index}.log").read_text() for index in (0, 1))
    assert "stopped early at step 10: loss improved by less than 100 in 5 steps: it was" in first
    assert checkpoint_step(tf.train.latest_checkpoint(str(tmp_path / "two"))) == 10
    assert "this is worker 1" in second
    assert "step 5/200" in first and "step 5/200" not in second, "one log is enough"
    alone = call_command(
        "t2t-trainer",
        *FLAGS,
        f"--hparams={HPARAMS},gradient_accumulation_steps=2",
        "--output_dir=one",
        "--train_steps=10",
        "--local_eval_frequency=5",
    )
    assert alone.status == 0, alone.stderr
    two, one, early = (
        weights(tmp_path / path) for path in ("two/model.ckpt-10", "one/model.ckpt-10", "one/model.ckpt-5")
    )
    assert distance(two, one) < 1e-5 * distance(one, early)


STEP = """
from tests.training.steps import make_step, moved_between_devices, settings

graph = make_step(settings("adam", more=",ema_decay=0.9")).graph()
kinds = [operation.type for operation in graph.get_operations()]
sizes = {size for size in moved_between_devices(graph).values() if size != 1}
print("collectives:", kinds.count("CollectiveReduceV2"), "moved otherwise:", sizes or "nothing")
"""


@pytest.mark.long
def test_two_machines_exchange_gradients_in_one_collective(start):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    environments = [
        {
            **os.environ,
            "TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}),
        }
        for i in (0, 1)
    ]
    words = [sys.executable, "-c", STEP]
    root = pathlib.Path(__file__).parents[2]
    processes = [
        start(words, cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for env in environments
    ]
    said = [process.communicate(timeout=900) for process in processes]
    for out, err in said:
        assert out.splitlines()[-1:] == ["collectives: 1 moved otherwise: nothing"], err


def wait_for_step(tmp_path, step, processes):
    """Returns once train.log has a checkpoint at or after a step."""
    logs = [tmp_path / f"worker{index}.log" for index in (0, 1)]
    wait_for_checkpoint(tmp_path / "dead", step, processes, lambda: "".join(path.read_text() for path in logs))


@pytest.mark.long
def test_a_machine_that_is_gone_is_named_and_the_run_goes_on(tmp_path, data, start_workers):
    """The other one ends within 15 s; then both go on, and a signal to one ends both after the same step."""
    flags = "--output_dir=dead", "--train_steps=1000000", f"--hparams={HPARAMS}", "--local_eval_frequency=20"
    chief, worker = start_workers(*flags)
    wait_for_step(tmp_path, 20, (chief, worker))
    worker.send_signal(signal.SIGKILL)
    assert chief.wait(timeout=15) == 1
    last = (tmp_path / "worker0.log").read_text().strip().splitlines()[-1]
    address = f"127.0.0.1:{_port_of_worker_1(tmp_path)}"
    assert f"t2t-trainer: error: {address} is gone; this is worker 0" in last
    saved = checkpoint_step(tf.train.latest_checkpoint(str(tmp_path / "dead")))

    chief, worker = start_workers(*flags)
    wait_for_step(tmp_path, saved + 20, (chief, worker))
    worker.send_signal(signal.SIGTERM)
    assert [process.wait(timeout=300) for process in (chief, worker)] == [0, 0], (
        "neither waits for the other's next step"
    )
    said = (tmp_path / "worker0.log").read_text()
    assert f"resumed at step {saved}, data batch {2 * saved}" in said and "stopped by a signal at step" in said
    assert "signal received" not in said, "it was the other one's"
    events = [json.loads(line) for line in (tmp_path / "dead" / "train.log").read_text().splitlines()]
    assert (events[-1]["event"], events[-1]["finished"]) == ("end", False)
    assert events[-1]["step"] == checkpoint_step(tf.train.latest_checkpoint(str(tmp_path / "dead")))


@pytest.mark.long
@pytest.mark.parametrize(
    ("of_second", "differs"),
    [
        pytest.param(
            ["--hp_num_encoder_layers=2"], "problem, model and hyperparameters (num_encoder_layers)", id="layers"
        ),
        pytest.param(["--train_steps=300"], "settings (train_steps)", id="train_steps"),
    ],
)
def test_machines_with_different_settings_are_refused(tmp_path, data, start_workers, of_second, differs):
    flags = "--output_dir=mixed", f"--hparams={HPARAMS}", *(["--train_steps=5"] if "hp" in of_second[0] else [])
    processes = start_workers(*flags, of_second=of_second)
    assert [process.wait(timeout=900) for process in processes] == [2, 2]
    for index in (0, 1):
        last = (tmp_path / f"worker{index}.log").read_text().strip().splitlines()[-1]
        assert last.startswith(f"t2t-trainer: error: TF_CONFIG: the machines have different {differs}.")
    assert not (tmp_path / "mixed" / "hparams.json").exists()


def _port_of_worker_1(tmp_path):
    waiting = (tmp_path / "worker1.log").read_text().splitlines()[0]
    return waiting.rsplit(":", 1)[1]
