"""Streams over sockets: several clients at once, those that go, and the end of the server."""
# Nearest tests of: extras/serving/completions.py, extras/serving/http_server.py

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from t2t_lite.extras.serving import completions
from t2t_lite.extras.serving.http_server import open_listener, serve
from tests.extras.serving.doubles import events_of, rest_server
from tests.processes import wait_for


def served(server, story):
    """Serves while `story`, a function of a port, runs in another thread; returns its result."""
    with open_listener("127.0.0.1", 0) as listener, ThreadPoolExecutor(1) as thread:

        def run():
            try:
                return story(listener.getsockname()[1])
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        result = thread.submit(run)
        serve(server, listener, 2000, on_last=server.end_streams)
    return result.result(20)


def asked(port, **request):
    """Returns a connection that has asked for a stream."""
    body = json.dumps({"stream": True, **request}).encode()
    head = f"POST {completions.PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    connection = socket.create_connection(("127.0.0.1", port), 20)
    connection.sendall(head + body)
    return connection


def read_until(connection, words):
    """Returns what a connection says up to and with some bytes."""
    data = b""
    while words not in data:
        part = connection.recv(1)
        assert part, data
        data += part
    return data


def test_clients_at_once_over_sockets_and_one_that_goes(generator):
    """One that closes its connection half-way frees its place, and no more is computed for it."""
    server, generator.permits = rest_server(generator, most_streams=3), threading.Semaphore(0)
    places = server._completions

    def story(port):
        with contextlib.ExitStack() as stack:
            gone = asked(port, prompt="x" * 400)
            generator.permits.release(5)
            read_until(gone, b'"text": "x"')
            gone.close()
            begin = time.monotonic()
            while places.num_open:  # it computes one more id before it looks
                assert time.monotonic() < begin + 20
                generator.permits.release()
                time.sleep(0.02)
            assert generator.computed < 300
            generator.permits.release(10_000)
            texts = [f"{number} Gr\u00fcn\u2028 w\u00e4re" for number in range(3)]
            clients = [stack.enter_context(asked(port, prompt=text)) for text in texts]
            answers = []
            for client in clients:
                answer = http.client.HTTPResponse(client)
                answer.begin()
                assert answer.getheader("Transfer-Encoding") == "chunked"
                answers.append(events_of(answer.read())[-1]["generated_text"])
            assert answers == texts
            wait_for(lambda: places.num_open == 0, 20)
            return True

    assert served(server, story)


def test_a_client_that_goes_during_a_first_step_frees_its_place(generator):
    """A first step may take long, since it is traced."""
    server, generator.permits = rest_server(generator, most_streams=1), threading.Semaphore(0)
    places = server._completions

    def answer_to(port, prompt):
        with asked(port, prompt=prompt) as connection:
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return answer.status, answer.read()

    def story(port):
        for count in (1, 2):
            gone = asked(port, prompt="long")
            wait_for(lambda count=count: len(generator.asked) == count, 20)  # its first step has begun
            gone.close()
            wait_for(lambda: places.num_open == 0, 20)
        assert generator.computed == 0 and len(generator.asked) == 2
        status, text = answer_to(port, "abc")  # the model is as busy as it may be
        assert status == 503 and b"all 1 streams of the server are in use" in text
        generator.permits.release(100)
        status, text = wait_for(lambda: (found := answer_to(port, "abc"))[0] == 200 and found, 20)
        assert events_of(text)[-1]["generated_text"] == "abc"
        wait_for(lambda: generator.computed == 2 + 3, 20)
        return True

    assert served(server, story)


def test_each_event_is_sent_when_it_is_made_and_the_end_of_the_server_ends_a_stream(generator, monkeypatch):
    monkeypatch.setattr(completions, "_LAST_SECONDS", -1.0)
    server, generator.permits = rest_server(generator), threading.Semaphore(0)
    connections = []

    def story(port):
        connections.append(asked(port, prompt="abcdef"))
        for letter in b"abc":
            generator.permits.release()
            read_until(connections[0], b'"text": "%c"' % letter)

    end = server.end_streams
    server.end_streams = lambda: (end(), generator.permits.release(9))
    served(server, story)
    with connections[0] as connection:
        rest = b"".join(iter(lambda: connection.recv(2**16), b""))
    assert b'"finish_reason": "abort"' in rest and b"[DONE]" in rest and rest.endswith(b"0\r\n\r\n")
