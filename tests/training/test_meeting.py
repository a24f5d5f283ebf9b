"""Machines that wait for each other: all come, one never does, one goes and comes again, and a signal ends the wait."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.training.cluster import Cluster, meet


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
    strangers = [hello(workers, message) for message in (b"GET / HTTP/1.1\r\n\r\n", b"t2t_lite 7\n", b"t2t_lite 0\n")]
    gone = hello(workers, b"t2t_lite 2\n")
    time.sleep(0.3)
    gone.close()
    with hello(workers, b"t2t_lite 1\n") as second:
        assert "TF_CONFIG: c:1 did not join" in first.end()
        assert second.recv(100) == b"t2t_lite missing c:1\n"
    for stranger in strangers:
        stranger.close()


def test_where_tensorflow_answers_already_nobody_waits(workers):
    with socket.create_server(("127.0.0.1", int(workers[0].split(":")[1]))) as listener:
        late = Machine(workers, 1)
        connection, _ = listener.accept()
        connection.sendall(b"\0\0\x12\4\0\0\0\0\0")  # settings of HTTP/2
        assert late.end() is None
        connection.close()


def test_a_port_that_is_taken_is_an_error(workers):
    with socket.create_server(("", int(workers[0].split(":")[1]))):
        assert f"TF_CONFIG: {workers[0]}: cannot listen there" in Machine(workers, 0).end()


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
