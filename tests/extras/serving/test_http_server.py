"""What clients may do to the server's connections: nothing, half a request, too many, or go. The model is a sleep."""

import contextlib
import http.client
import re
import signal
import socket
import sys
import time

import pytest

from tests.processes import owned, wait_for

MOST = 8
CODE = """
import sys, time
from t2t_lite.extras.serving import http_server
from t2t_lite.extras.serving.http_server import address_of, open_listener, serve

http_server.IDLE_SECONDS, http_server._REQUEST_SECONDS = float(sys.argv[1]), float(sys.argv[2])
seen = []


def application(environ, start_response):
    path, body = environ["PATH_INFO"], environ["wsgi.input"].read()
    if path == "/sleep":
        end = time.monotonic() + 60
        seen.append("begun")
        while not environ["waitress.client_disconnected"]() and time.monotonic() < end and "stop" not in seen:
            time.sleep(0.01)
        seen.append("gone" if environ["waitress.client_disconnected"]() else "ended")
    if path == "/stop-sleeping":
        seen.append("stop")
    answer = b"a" * 10**7 if path == "/large" else ",".join([*seen, str(len(body))]).encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


with open_listener("127.0.0.1", 0) as listener:
    print(address_of(listener), flush=True)
    serve(application, listener, 10**6, int(sys.argv[3]), float(sys.argv[4]), lambda: seen.append("stopping"))
"""


class Server:
    """A running server; `port`, and `process`."""

    def __init__(self, process):
        self.process = process
        self.port = int(re.search(r":(\d+)\n", process.stdout.readline())[1])

    def connect(self, sent=b""):
        connection = socket.create_connection(("127.0.0.1", self.port), 20)
        connection.sendall(sent)
        return connection

    def ask(self, path="/"):
        """Returns (status, text, headers)."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers

    def seen(self):
        return self.ask()[1]


@contextlib.contextmanager
def serving(idle=60.0, request=60.0, most=MOST, drain=0.0):
    words = [sys.executable, "-c", CODE, *map(str, (idle, request, most, drain))]
    with owned(words, 120, stdout=-1, text=True) as process:
        yield Server(process)


@pytest.fixture(scope="module")
def patient():
    """A server that waits long."""
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def impatient():
    """A server that waits for a second."""
    with serving(idle=1.0, request=1.0) as server:
        yield server


def received(connection):
    """Returns all that a connection still has to say."""
    with contextlib.suppress(ConnectionResetError):
        return b"".join(iter(lambda: connection.recv(2**16), b""))
    return b""


HALF = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\na: ",
    "half a body": b"POST / HTTP/1.1\r\nContent-Length: 900\r\n\r\n{",
    "half a chunk": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n99\r\na",
}


@pytest.mark.parametrize("sent", HALF.values(), ids=HALF)
def test_connections_that_ask_nothing_make_room_for_one_that_does(patient, sent):
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(patient.connect(sent)) for _ in range(3 * MOST)]
        begin = time.monotonic()
        assert patient.ask()[0] == 200 and time.monotonic() - begin < 5
        assert b"503" in received(held[0]) if sent else received(held[0]) == b""
        held[-1].sendall((b"" if sent else b"GET / HTTP/1.1\r\na: ") + b"b" * 1000 + b"\r\n\r\n")
        assert b"HTTP/1.1 " in held[-1].recv(2**16), "the newest ones are kept"


@pytest.mark.parametrize("sent", HALF.values(), ids=HALF)
def test_a_request_that_does_not_come_to_its_end_is_ended(impatient, sent):
    """Although a byte comes now and then."""
    with impatient.connect(sent) as connection:
        connection.settimeout(0.2)
        end, answer = time.monotonic() + 15, None
        while answer is None and time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(2**16)
            with contextlib.suppress(OSError):
                connection.sendall(b"a" if sent else b"")
    assert answer.startswith(b"HTTP/1.1 408 ") and b'{"error": ' in answer if sent else answer == b""


def test_a_client_that_reads_nothing_is_let_go(impatient):
    with impatient.connect(b"GET /large HTTP/1.1\r\n\r\n") as connection:
        time.sleep(4)
        assert 0 < len(received(connection)) < 10**7
    assert impatient.ask()[0] == 200


def test_an_upload_that_is_slow_but_goes_on_is_read(impatient):
    """5,000 bytes a second are enough, whatever they take together."""
    with impatient.connect(b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 15000\r\n\r\n") as connection:
        for _ in range(30):
            connection.sendall(b"a" * 500)
            time.sleep(0.1)
        assert b" 200 OK" in (answer := received(connection)) and answer.endswith(b"15000")


def test_when_all_are_answered_another_one_is_refused_at_once():
    with serving(most=3) as server, contextlib.ExitStack() as stack:

        def refused():
            stack.enter_context(server.connect(b"GET /sleep HTTP/1.0\r\n\r\n"))
            time.sleep(0.1)
            found = server.ask()
            return found[0] == 503 and found

        _, text, headers = wait_for(refused, 20)
        assert headers["Retry-After"] == "1" and text == '{"error": "all connections of the server are in use"}'
        stack.close()  # the clients have gone, so that their connections are free
        wait_for(lambda: server.ask()[0] == 200, 20)
        wait_for(lambda: server.seen().count("gone") == 3, 20)


def test_who_only_closes_his_own_side_is_answered(patient):
    with patient.connect(b"GET / HTTP/1.1\r\n\r\n") as connection:
        connection.shutdown(socket.SHUT_WR)
        assert received(connection).startswith(b"HTTP/1.1 200 OK")


def test_requests_are_accepted_for_a_while_after_sigterm():
    with serving(drain=3.0) as server:
        assert "stopping" not in server.seen()
        with server.connect(b"GET /sleep HTTP/1.0\r\n\r\n") as sleeper:
            wait_for(lambda: "begun" in server.seen(), 20)
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: "stopping" in server.seen(), 2)
            assert server.ask("/stop-sleeping")[0] == 200
            assert b"ended" in received(sleeper)
        assert server.process.wait(20) == 0
        with pytest.raises(OSError):
            server.ask()
