import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from t2t_lite.errors import UserError
from t2t_lite.training import cluster as cluster_module
from t2t_lite.training.cluster import Cluster, lost_worker, read_cluster, wait_for_names

BOTH = {"worker": ["a:1", "b:2"]}


def config(cluster, **task):
    return json.dumps({"cluster": cluster, "task": task})


def test_every_worker_knows_its_place():
    for index in (0, 1):
        cluster = read_cluster(config(BOTH, type="worker", index=index))
        assert (cluster.workers, cluster.index, cluster.is_chief) == (("a:1", "b:2"), index, index == 0)
        assert read_cluster(cluster.tf_config()) == cluster


def test_a_chief_is_the_first_worker():
    hosts = {"chief": ["a:1"], "worker": ["b:2", "c:3"]}
    assert read_cluster(config(hosts, type="chief", index=0)) == Cluster(("a:1", "b:2", "c:3"), 0)
    assert read_cluster(config(hosts, type="worker", index=1)) == Cluster(("a:1", "b:2", "c:3"), 2)


@pytest.mark.parametrize("text", ["", "{}", '{"task": {"type": "worker", "index": 0}}', config({"worker": ["a:1"]})])
def test_one_machine_is_no_cluster(text):
    assert read_cluster(text) is None


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "cannot be read"),
        ("[1]", "cannot be read"),
        (config({"worker": 3}), "cannot be read"),
        (config(BOTH, type="worker", index=2), "there is no worker 2"),
        (config(BOTH, type="worker", index=-1), "there is no worker -1"),
        (config({**BOTH, "ps": ["c:3"]}, index=0), "has ps: every machine is a worker"),
        (config(BOTH, type="evaluator", index=0), "has evaluator"),
        (config({"worker": ["a:1", "b"]}, index=0), "'b' is not host:port"),
        (config({"worker": ["a:1", "a:1"]}, index=0), "an address comes twice"),
        (config({"worker": ["a:1", "b:65536"]}, index=0), "'b:65536' is not host:port, with a port from 1 to 65535"),
        (config({"worker": ["a:1", "b:0"]}, index=0), "'b:0' is not host:port"),
        (config({"worker": ["a:1", "b:1_0"]}, index=0), "is not host:port"),
        (config({"worker": ["a:1", "http://b:1"]}, index=0), "is not host:port"),
        (config({"worker": ["a:1", "b c:1"]}, index=0), "is not host:port"),
        (config({"worker": ["a:1", "::1:1"]}, index=0), "is not host:port"),
        (config({"worker": ["a:1", None]}, index=0), "cannot be read"),
        (config({"worker": [["a:1"]]}, index=0), "cannot be read"),
        (config([], index=0), "cannot be read"),
        (config(BOTH, index="one"), "cannot be read"),
        (config(BOTH, index=None), "cannot be read"),
        (config(BOTH, index=1.5), "cannot be read"),
        (config(BOTH, index=True), "cannot be read"),
        (config(BOTH, index=10**400), "cannot be read|there is no worker"),
        (config(BOTH, type=["worker"], index=0), "cannot be read"),
        ('{"cluster": null}', "cannot be read"),
        ('{"cluster": {}, "task": []}', "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"cluster": {"worker": ["a:1"]}, "cluster": {}}', "cannot be read"),
        ("null", "cannot be read"),
    ],
)
def test_mistakes_are_named(text, words, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UserError, match=words) as error:
        read_cluster()
    assert "t2t-make-tf-configs" in str(error.value)


def test_names_are_waited_for_but_not_for_ever(monkeypatch, caplog):
    caplog.set_level("INFO", "t2t_lite")
    monkeypatch.setattr(cluster_module, "SECONDS_BETWEEN_TRIES", 0.05)
    tries = []

    def look_up(host, port):
        tries.append(host)
        if host == "late" and len(tries) < 4:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if host == "never":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if host == "slow":
            time.sleep(2)
        return [1]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    wait_for_names(Cluster(("here:1", "late:2"), 0), 30)
    assert "waiting at most 30 s until the name late can be looked up" in caplog.text and len(tries) == 4
    for name in ("never", "slow"):
        begin = time.monotonic()
        with pytest.raises(UserError, match=f"TF_CONFIG: {name}: no machine of this name was found in 0.3 s"):
            wait_for_names(Cluster(("here:1", f"{name}:2"), 0), 0.3)
        assert time.monotonic() - begin < 1.5


def test_machines_are_waited_for_but_not_for_ever():
    """In a process of its own, which it ends although nothing of Python runs: `PyDLL` keeps the interpreter's lock."""
    program = (
        "import ctypes\nfrom t2t_lite.training.cluster import ended_after\n"
        "with ended_after(5, 'a:1'): print('in time', flush=True)\n"
        "with ended_after(0.3, 'one of a:1, b:2'): ctypes.PyDLL(None).sleep(30)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (1, "in time\n")
    assert "TF_CONFIG: one of a:1, b:2 did not join within 0.3 s. Start the same command" in done.stderr


def test_signals_have_their_effect_while_machines_are_waited_for_and_after():
    """SIGINT at once; SIGTERM, for which TensorFlow leaves a handler, afterwards."""
    program = (
        "import ctypes, os, signal, sys\nfrom t2t_lite.training.cluster import ended_after\n"
        "libc = ctypes.PyDLL(None)\n"
        "with ended_after(20, 'a:1'):\n"
        "    libc.signal(signal.SIGTERM, 1)\n"  # as TensorFlow's, which ends nothing
        "    if sys.argv[1] == '2': os.kill(os.getpid(), signal.SIGINT)\n"
        "    print('meanwhile', flush=True)\n"
        "os.kill(os.getpid(), int(sys.argv[1]))\n"
        "print('afterwards', flush=True)\n"
    )
    for number, said in ((signal.SIGINT, ""), (signal.SIGTERM, "meanwhile\n")):
        argv = [sys.executable, "-c", program, str(int(number))]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
        assert (done.returncode, done.stdout, done.stderr) == (-number, said, "")


@pytest.mark.long
@pytest.mark.slow  # imports TensorFlow
def test_the_wait_for_machines_ends_in_tensorflow_itself():
    task = {"cluster": {"worker": ["127.0.0.1:1", f"127.0.0.1:{_free_port()}"]}, "task": {"type": "worker", "index": 1}}
    program = (
        "import tensorflow as tf\nfrom t2t_lite.training.cluster import ended_after\n"
        "with ended_after(2, '127.0.0.1:1'): tf.distribute.MultiWorkerMirroredStrategy()\n"
    )
    environment = os.environ | {"TF_CONFIG": json.dumps(task)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("TF_CONFIG: 127.0.0.1:1 did not join within 2 s.")


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_the_worker_that_an_error_speaks_of():
    cluster = Cluster(("a:1", "b:2", "c:3"), 0)
    message = "/job:worker/replica:0/task:0: Collective ops is aborted by: /job:worker/replica:0/task:2 is down"
    assert lost_worker(message, cluster) == "c:3"
    assert lost_worker("something else", cluster) is None
    frozen = "Collective ops is aborted by: Deadline Exceeded RPC: /tensorflow.CoordinationService/Heartbeat"
    assert lost_worker(frozen, Cluster(("a:1", "b:2", "c:3"), 1)) == "a:1", "the first worker has that service"
    assert lost_worker("something else", Cluster(("a:1", "b:2"), 1)) == "a:1", "there is no other"
