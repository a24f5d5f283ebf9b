import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.training import cluster as cluster_module
from t2t_lite.training.cluster import Cluster, lost_worker, meet, read_cluster, wait_for_names

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


WRONG = [  # (TF_CONFIG, words of what is said)
    *((text, "TF_CONFIG cannot be read ") for text in ("{", "[1]", "null", "[" * 100_000, '{"cluster": null}')),
    ('{"cluster": {}, "task": []}', "'task'"),
    ('{"cluster": {"worker": ["a:1"]}, "cluster": {}}', "'cluster'"),
    (config([], index=0), "'cluster'"),
    *((config({"worker": hosts}, index=0), "'worker'") for hosts in (3, ["a:1", None], [["a:1"]])),
    *((config(BOTH, index=index), "'index'|index") for index in (None, 1.5, True)),
    *((config(BOTH, index=index), "TF_CONFIG cannot be read ") for index in ("one", 10**400)),
    (config(BOTH, type=["worker"], index=0), "'type'"),
    *((config(BOTH, type="worker", index=index), f"worker {index} ") for index in (2, -1)),
    (config({**BOTH, "ps": ["c:3"]}, index=0), "lists ps[,:]"),
    (config(BOTH, type="evaluator", index=0), "lists evaluator[,:]"),
    (config({"worker": ["a:1", "a:1"]}, index=0), "a:1, a:1"),
    *(
        (config({"worker": ["a:1", address]}, index=0), f"'{address}' is not host:port")
        for address in ("b", "b:65536", "b:0", "b:1_0", "http://b:1", "b c:1", "::1:1")
    ),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_mistakes_are_named(text, words, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UserError, match=words) as error:
        read_cluster()
    assert "t2t-make-tf-configs" in str(error.value) and "\n" not in str(error.value)


def test_the_highest_port_and_addresses_in_brackets_are_right():
    hosts = ["a:65535", "[::1]:1"]
    assert read_cluster(config({"worker": hosts}, index=0)).workers == tuple(hosts)


def test_names_are_waited_for_but_not_for_ever(monkeypatch, caplog):
    monkeypatch.setattr(cluster_module, "SECONDS_BETWEEN_TRIES", 0.05)
    tries = []

    def look_up(host, port):
        tries.append(host)
        if host == "never" or (host == "late" and len(tries) < 4):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [1]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    wait_for_names(Cluster(("here:1", "late:2"), 0), 30)
    assert caplog.text.count("waiting at most 30 s until the name late ") == 1 and len(tries) == 4
    with pytest.raises(UserError, match=r"TF_CONFIG: never: .* 0\.3 s"):
        wait_for_names(Cluster(("here:1", "never:2"), 0), 0.3)


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


def test_the_worker_that_an_error_speaks_of():
    cluster = Cluster(("a:1", "b:2", "c:3"), 0)
    message = "/job:worker/replica:0/task:0: Collective ops is aborted by: /job:worker/replica:0/task:2 is down"
    assert lost_worker(message, cluster) == "c:3"
    third = Cluster(cluster.workers, 2)
    assert lost_worker("something else", cluster) is lost_worker("something else", third) is None
    assert lost_worker("CoordinationService: /job:worker/replica:0/task:1 is down", third) == "b:2"
    frozen = "Collective ops is aborted by: Deadline Exceeded RPC: /tensorflow.CoordinationService/Heartbeat"
    assert lost_worker(frozen, Cluster(("a:1", "b:2", "c:3"), 1)) == "a:1", "the first worker has that service"
    assert lost_worker("something else", Cluster(("a:1", "b:2"), 1)) == "a:1", "there is no other"


@pytest.fixture
def workers():
    """Addresses of three machines, of which the first one's port is free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return f"127.0.0.1:{port}", "b:1", "c:1"


class Machine(threading.Thread):
    """One that waits for the others; `result` is None or its error."""

    def __init__(self, workers, index, seconds=20):
        super().__init__(daemon=True)
        self.cluster, self.seconds, self.result = Cluster(workers, index), seconds, "still waiting"
        self.start()

    def run(self):
        try:
            self.result = meet(self.cluster, self.seconds)
        except (Failure, UserError) as error:
            self.result = str(error)

    def end(self):
        self.join(30)
        return self.result


def hello(workers, message):
    host, port = workers[0].split(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(message)
    return connection


def test_all_meet_in_whatever_order_they_come(workers):
    late = Machine(workers, 2)
    first = Machine(workers, 0)
    time.sleep(0.3)
    assert late.result == first.result == "still waiting"
    assert [machine.end() for machine in (Machine(workers, 1), first, late)] == [None] * 3
    with socket.create_server(("127.0.0.1", int(workers[0].split(":")[1]))):
        pass  # the port is TensorFlow's now


def test_a_machine_that_never_comes_is_named_to_all(workers):
    first, second = Machine(workers, 0, 1), Machine(workers, 1)
    expected = "TF_CONFIG: c:1 did not join within 1 s. Start the same command on all machines."
    assert first.end() == expected
    assert second.end() == expected.replace("1 s", "20 s")
    assert f"{workers[0]} did not join within 0.3 s" in Machine(workers, 1, 0.3).end()


def test_who_goes_or_says_something_else_is_not_there(workers):
    first = Machine(workers, 0, 3)
    time.sleep(0.3)
    strangers = [
        hello(workers, message) for message in (b"GET / HTTP/1.1\r\n\r\n", b"t2t_lite 7\n", b"t2t_lite 0\n", b"")
    ]
    gone = hello(workers, b"t2t_lite 2\n")
    time.sleep(0.3)
    gone.close()
    with hello(workers, b"t2t_lite 1\n") as second:
        assert "TF_CONFIG: c:1 did not join" in first.end()
        assert second.recv(100) == b"t2t_lite missing c:1\n"
    for stranger in strangers:
        stranger.close()


@pytest.mark.parametrize("is_first_open", [True, False])
def test_a_machine_that_comes_again_is_there(workers, is_first_open):
    first = Machine(workers, 0, 2)
    time.sleep(0.3)
    with hello(workers, b"t2t_lite 1\n") as before:
        if not is_first_open:
            before.close()
        with hello(workers, b"t2t_lite 1\n") as again:
            before.close()
            assert "TF_CONFIG: c:1 did not join" in first.end()
            assert again.recv(100) == b"t2t_lite missing c:1\n"


def test_where_tensorflow_answers_already_nobody_waits(workers):
    with socket.create_server(("127.0.0.1", int(workers[0].split(":")[1]))) as listener:
        late = Machine(workers, 1)
        connection, _ = listener.accept()
        connection.sendall(b"\0\0\x12\4\0\0\0\0\0")  # settings of HTTP/2
        assert late.end() is None
        connection.close()


def test_a_port_that_is_taken_is_an_error(workers):
    with socket.create_server(("", int(workers[0].split(":")[1]))):
        assert f"TF_CONFIG: cannot listen on {workers[0]}" in Machine(workers, 0).end()


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait(workers, index, kind):
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "from t2t_lite.training.cluster import Cluster\nfrom t2t_lite.training.cluster import meet\n"
        f"print('waiting', flush=True); meet(Cluster({workers}, {index}), 60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout.readline() == b"waiting\n"
        time.sleep(0.2)
        process.send_signal(kind)
        assert process.wait(10) == -kind
