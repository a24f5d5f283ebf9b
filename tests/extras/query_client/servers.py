"""Servers of a single answer, and what tests of the client of servers share."""

import contextlib
import json
import re
import socket
import threading

import numpy as np
import pytest

from t2t_lite.extras.query_client import client as query

COMMAND = "t2t-query-server"
GOOD = {"outputs": ["A", "B"], "scores": [-1.5, 0], "truncated": [False, True]}
both = pytest.mark.parametrize("protocol", query.PROTOCOLS)


@contextlib.contextmanager
def answering(answer):
    """Serves one connection: `answer` is bytes to send, or a function of the connection.

    Yields:
        str, "127.0.0.1:port"; `requests` is a list of what has been received, bytes.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = _Address(f"127.0.0.1:{server.getsockname()[1]}")
        address.requests = []

        def serve():
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                server.close()  # or a second one would wait for an answer
                connection.settimeout(20)
                address.requests.append(_request(connection))
                answer(connection) if callable(answer) else connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield address
        thread.join(20)
        assert not thread.is_alive(), "the client has not let go"


class _Address(str):
    pass


def _request(connection):
    """Returns the bytes of a request: its head, and as much of a body as that announces."""
    data = connection.recv(2**16)
    length = re.search(rb"Content-Length: (\d+)", data)
    while length and len(data.partition(b"\r\n\r\n")[2]) < int(length[1]):
        data += connection.recv(2**16)
    return data


def sending(data):
    """Returns an answer for `answering` that reads all of the request: closing before would discard what was sent."""

    def answer(connection):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(2**16):
            pass

    return answer


def http_answer(content, status="200 OK", headers=""):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{headers}\r\n".encode() + content


def client(server, timeout=10, name="translate", **servable):
    return query.open_client(f"http://{server}", query.Servable(name, **servable), timeout=timeout, retries=0)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def asker(call_command):
    """Returns a function that calls the command for `server`, "host:port", over a protocol."""

    def ask(server, protocol, *flags, name="translate"):
        address = [f"--server={server}", f"--protocol={protocol}", f"--servable_name={name}", "--retries=0"]
        return call_command(COMMAND, *address, *flags)

    return ask


def assert_failure(result, *words):
    """Status 1, and one line that names all of `words`."""
    assert (result.status, result.stdout) == (1, ""), result
    assert result.stderr.count("\n") == 1 and result.stderr.startswith(f"{COMMAND}: error: "), result.stderr
    for word in words:
        assert word in result.stderr


def echo(signature, inputs):
    """A model that answers with the text itself, in capitals."""
    texts = [text if isinstance(text, str) else text.decode() for text in np.array(inputs["inputs"], object).tolist()]
    if "with_options" in signature:
        options = zip(texts, inputs["seed"], inputs["extra_length"], strict=True)
        texts = [f"{text} {seed} {extra_length}" for text, seed, extra_length in options]
    return {
        "outputs": np.array([text.upper().encode() for text in texts], object),
        "scores": np.arange(len(texts), dtype=np.float32),
        "truncated": np.zeros(len(texts), bool),
    }
