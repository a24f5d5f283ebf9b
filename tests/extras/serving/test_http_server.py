"""What clients may do to the server's connections: nothing, half a request, too many, or go. The model is a sleep."""

import contextlib
import http.client
import re
import signal
import socket
import sys
import time
import types

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.serving.http_server import Connection, address_of, make_room, open_listener
from tests.processes import owned, wait_for

MOST = 8
CODE = """
import logging, sys, time
from t2t_lite.extras.serving import http_server
from t2t_lite.extras.serving.http_server import address_of, open_listener, serve

http_server.IDLE_SECONDS, http_server._REQUEST_SECONDS = float(sys.argv[1]), float(sys.argv[2])
http_server._LONGEST_DRAIN = float(sys.argv[5])
logging.basicConfig(level="INFO", format="%(message)s")
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
    answer = b"a" * 4 * 10**7 if path == "/large" else ",".join([*seen, str(len(body))]).encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


with open_listener("127.0.0.1", 0) as listener:
    print(address_of(listener), flush=True)
    serve(application, listener, 10**6, float(sys.argv[4]), lambda: seen.append("stopping"),
          lambda: print("last", flush=True), int(sys.argv[3]))
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
def serving(idle=60.0, request=60.0, most=MOST, drain=0.0, longest_drain=60.0):
    words = [sys.executable, "-c", CODE, *map(str, (idle, request, most, drain, longest_drain))]
    with owned(words, 120, stdout=-1, stderr=-1, text=True) as process:
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
    assert b"Retry-After" not in answer


def test_a_request_that_ends_at_any_byte_is_not_answered_as_a_whole_one(patient):
    """A whole one is, after which the connection ends, although the client has closed its own side alone."""
    request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789"
    for end in range(len(request) + 1):
        with patient.connect(request[:end]) as connection:
            connection.shutdown(socket.SHUT_WR)
            answer = received(connection)
        whole = end == len(request)
        assert (b" 200 OK" in answer and answer.endswith(b"9")) if whole else b" 200 " not in answer, end
    assert patient.ask()[0] == 200


def test_a_client_that_reads_nothing_is_let_go(impatient):
    with impatient.connect(b"GET /large HTTP/1.1\r\n\r\n") as connection:
        time.sleep(4)
        assert 0 < len(received(connection)) < 4 * 10**7
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


def test_requests_are_accepted_for_a_while_after_sigterm():
    with serving(drain=3.0) as server:
        assert "stopping" not in server.seen()
        with server.connect(b"GET /sleep HTTP/1.0\r\n\r\n") as sleeper:
            wait_for(lambda: "begun" in server.seen(), 20)
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: "stopping" in server.seen(), 2)
            assert server.ask("/stop-sleeping")[0] == 200
            assert b"ended" in received(sleeper)
        assert server.process.wait(20) == 0 and server.process.stdout.read() == "last\n"
        assert "Stopping. Requests are accepted for another 3 s." in server.process.stderr.read()
        with pytest.raises(OSError):
            server.ask()


def test_a_request_that_takes_long_does_not_hold_up_the_end_for_long():
    with serving(longest_drain=0.5) as server, server.connect(b"GET /sleep HTTP/1.0\r\n\r\n"):
        wait_for(lambda: "begun" in server.seen(), 20)
        server.process.send_signal(signal.SIGTERM)
        # The last request of `seen` is answered, but the server may still be putting its connection away.
        assert re.fullmatch(r"Stopping; requests in progress: [12]\.\n", server.process.stderr.readline())
        assert server.process.stderr.readline() == "Connections not finished within 0.5 s: 1.\n"


def test_where_a_server_cannot_listen():
    with open_listener("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener) == f"http://127.0.0.1:{port}"
        for host, taken, why in (
            ("127.0.0.1", port, r"in use\. Choose another port"),
            ("no.such.host.invalid", 8501, r"no such host\. Choose a name or an address of this machine"),
            ("192.0.2.1", 8501, r"\. Choose a name or an address of this machine"),  # reserved for documentation
        ):
            with pytest.raises(UserError, match=rf"--host={host} --port={taken}: .*{why}"):
                open_listener(host, taken)
    sixth = types.SimpleNamespace(getsockname=lambda: ("::1", 8501, 0, 0))
    assert address_of(sixth) == "http://[::1]:8501"


def connection(now=1000.0, **state):
    """Returns a Connection without a socket, in a state; `done` lists how it was ended."""
    one = object.__new__(Connection)
    adj = types.SimpleNamespace(outbuf_high_watermark=100)
    times = {"last_activity": now, "_begin": now, "_bytes": 0, "refused_at": None}
    vars(one).update(times | {"request": None, "requests": [], "total_outbufs_len": 0, "will_close": False} | state)
    one.adj, one.done = adj, []
    one.refuse, one.handle_close = lambda message, code: one.done.append(code), lambda: one.done.append("closed")
    return one


HEAD, BODY = (types.SimpleNamespace(headers_finished=has_head) for has_head in (False, True))
LIMITS = {  # state, the last second at which nothing happens, what happens then
    "a head": ({"request": HEAD, "_bytes": 5000}, 20, ["REQUEST_TIMEOUT"]),
    "a body": ({"request": BODY, "_bytes": 5000}, 30, ["REQUEST_TIMEOUT"]),
    "no request": ({}, 60, ["closed"]),
    "an answer that is computed": ({"requests": [1], "total_outbufs_len": 100}, 10**6, []),
    "an answer that is not read": ({"requests": [1], "total_outbufs_len": 101}, 60, ["closed"]),
    "the rest of an answer": ({"total_outbufs_len": 1}, 60, ["closed"]),
    "a refusal": ({"refused_at": 1000.0}, 2, ["closed"]),
}


@pytest.mark.parametrize(("state", "seconds", "expected"), LIMITS.values(), ids=LIMITS)
def test_time_limits(state, seconds, expected):
    one = connection(**state)
    one.check_time(1000.0 + seconds)
    assert one.done == []
    one.check_time(1000.0 + seconds + 0.25)
    assert one.done == expected
    one.will_close = True  # its socket has not taken the rest
    one.check_time(1000.0)
    assert one.done[len(expected) :] == ["closed"] * (state.get("request") is None)


ROOM = {  # states of the connections, the last of them the newest; which one has to go, and how
    "the one that has been idle longest": ([{"now": 970.0}, {"now": 940.0}, {"now": 990.0}, {}], 1, "closes"),
    "an idle one before slow ones": ([{"now": 900.0, "request": BODY}, {"now": 990.0}, {}], 1, "closes"),
    "the slowest": ([{"now": 980.0, "request": BODY}, {"now": 960.0, "request": HEAD}, {}], 1, "UNAVAILABLE"),
    "one that is slow to read": ([{"now": 980.0, "total_outbufs_len": 9}, {"requests": [1]}, {}], 0, "closes"),
    "not one that has just come": ([{"now": 999.5}, {"now": 900.0, "request": BODY}, {}], 1, "UNAVAILABLE"),
    "the newest where all are answered": ([{"requests": [1]}, {"requests": [1]}, {}], 2, "UNAVAILABLE"),
    "none of those that end": ([{"now": 1.0, "will_close": True}, {"now": 2.0, "refused_at": 3.0}, {}], None, ""),
}


@pytest.mark.parametrize(("states", "victim", "how"), ROOM.values(), ids=ROOM)
def test_room_for_one_more(clock, states, victim, how):
    clock.now = 1000.0
    connections = [connection(**state) for state in states]
    before = [one.will_close for one in connections]
    make_room(connections, connections[-1], len(states))
    assert [one.will_close for one in connections] == before, "there is room"
    make_room(connections, connections[-1], len(states) - 1)
    ends = [
        "closes" if one.will_close > was else "".join(one.done) for one, was in zip(connections, before, strict=True)
    ]
    assert ends == [how if at == victim else "" for at in range(len(states))]


def test_few_refused_connections_linger(clock):
    """64 of them, since each holds memory until its client has read why."""
    connections = [connection(refused_at=clock.now) for _ in range(66)]
    make_room(connections, connections[-1], 8)
    assert [one.will_close for one in connections] == [True] * 2 + [False] * 64
