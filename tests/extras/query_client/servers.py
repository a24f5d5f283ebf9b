"""Servers of a single answer, and what tests of the client of servers share."""

import contextlib
import json
import re
import socket
import threading

import numpy as np
import pytest

from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client.addresses import ServerError

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


class Model:
    """A transport to a model in place of a server: it answers in capitals, and notes what it is asked.

    By the signature n_best a text of some words has one output more than words, but three at most; a blank one has one.
    Texts with the word "cut" are truncated.

    Args:
        has_sentences: bool, whether the model expects single sentences.
        reads_one: bool, whether the model only answers to the first sentence of a text.
    """

    address, servable = "localhost:1", query.Servable("model")

    def __init__(self, has_sentences=False, reads_one=False):
        self.has_sentences, self.reads_one, self.asked = has_sentences, reads_one, []

    def signatures(self):
        names = ["serving_default", "n_best", "with_options", "__saved_model_init_op"]
        names += ["sentences"] * self.has_sentences
        options = {"alpha": "float", "extra_length": "int32"}
        return {name: {"inputs": "string"} | (options if name == "with_options" else {}) for name in names}

    def predict(self, signature, inputs):
        assert {type(value) for values in inputs.values() for value in values} <= {str, int, float}
        self.asked.append((signature, inputs))
        if signature not in self.signatures():
            raise ServerError("INVALID_ARGUMENT", f"no {signature}")
        texts = inputs["inputs"]
        truncated = ["cut" in text for text in texts]
        if signature != "n_best":
            read = [text.partition(".")[0] if self.reads_one else text for text in texts]
            return {"outputs": [*map(str.upper, read)], "scores": [-1.0] * len(texts), "truncated": truncated}
        counts = [min(len(text.split()) + 1, 3) if text.strip() else 1 for text in texts]
        rows = [[f"{t.upper()}{n}" if t.strip() else "" for n in range(c)] for t, c in zip(texts, counts, strict=True)]
        padded = [row + [""] * (3 - len(row)) for row in rows]
        scores = [[0.0 - n for n in range(count)] + [-3.4028235e38] * (3 - count) for count in counts]
        return {"outputs": padded, "scores": scores, "truncated": truncated}


def echo(signature, inputs):
    """A model that answers with the text itself, in capitals."""
    texts = [text if isinstance(text, str) else text.decode() for text in np.array(inputs["inputs"], object).tolist()]
    return {
        "outputs": np.array([text.upper().encode() for text in texts], object),
        "scores": np.arange(len(texts), dtype=np.float32),
        "truncated": np.zeros(len(texts), bool),
    }
