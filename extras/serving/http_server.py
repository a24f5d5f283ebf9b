"""Serves a WSGI application with waitress until SIGTERM or Ctrl-C, then finishes the pending requests.

The number of connections is limited, each has time limits, and disconnected clients are detected.
"""

import contextlib
import errno
import functools
import json
import logging
import os
import socket
import time

from t2t_lite.cli.console import stop_on_signal
from t2t_lite.errors import LOGGER, UserError, needs
from t2t_lite.extras.serving.refusals import RETRY_AFTER, http_status

with needs("waitress", "web", "a server"):
    import waitress
    from waitress import wasyncore
    from waitress.channel import HTTPChannel

_LONGEST_DRAIN = 60.0  # maximum time in seconds that a shutdown waits for clients to read their answers
IDLE_SECONDS = 60.0  # how long to wait for a request, and for a client to read the response
_REQUEST_SECONDS, _BYTES_PER_SECOND = 20.0, 500  # time limit for a request, plus a second per 500 bytes of body
_NEW_SECONDS = 1.0  # seconds for which a new connection counts as busy
_LINGER_SECONDS, _MOST_LINGERING = 2.0, 64  # seconds that refused connections stay open, and their maximum number


class Connection(HTTPChannel):
    """A client's connection. waitress calls all methods except `service` and `write_soon` in the main thread.

    A client that has closed its sending side counts as disconnected, so that its requests need not be computed. If
    there is an answer, it is still sent, because the client may still read.
    """

    _has_ended = False  # whether the client has closed its sending side
    _begin, _bytes = 0.0, 0  # start time of the arriving request, and the number of its bytes so far
    refused_at = None  # time at which `refuse` sent its answer

    def __init__(self, server, sock, addr, adj, map=None):
        super().__init__(server, sock, addr, adj, map)
        make_room(server.active_channels.values(), self, server.most_connections)

    def check_client_disconnected(self):
        """Returns whether the client has disconnected: `waitress.client_disconnected` in the WSGI environment."""
        return self._has_ended or not self.connected

    def readable(self):
        """Returns whether waitress should wait for data from the client."""
        return not self._has_ended and (self.refused_at is not None or super().readable())

    def writable(self):
        """Returns whether waitress should wait until it can send data or close the connection."""
        if self._has_ended and not self.requests:
            self.close_when_flushed = True
        return super().writable()

    def handle_read(self):
        """Receives data of a request."""
        try:
            data = self.socket.recv(self.adj.recv_bytes)
        except BlockingIOError:
            return
        except OSError:
            self.handle_close()
            return
        if not data:
            self._has_ended = True
            if not self.is_answered:
                self.handle_close()
            return
        self.last_activity = time.time()
        if self.refused_at is None:
            request = self.request
            self.received(data)
            self._bytes += len(data)
            if self.request is not request:
                self._begin, self._bytes = time.time(), 0

    def write_soon(self, data):
        """Queues a part of an answer; called in a worker thread."""
        self.last_activity = time.time()
        return super().write_soon(data)

    @property
    def is_answered(self):
        """Whether a request is being answered."""
        return bool(self.requests or self.total_outbufs_len)

    @property
    def is_busy(self):
        """Whether a request has begun to arrive but has not been fully answered yet."""
        return self.refused_at is None and (self.is_answered or self.request is not None)

    def refuse(self, message, code):
        """Sends an error instead of the application's answer, and closes the connection once the client has read it."""
        body = json.dumps({"error": message}).encode()
        lines = [f"HTTP/1.1 {http_status(code)}", "Connection: close", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}"] + [f"Retry-After: {RETRY_AFTER}"] * (code == "UNAVAILABLE")
        self.refused_at, self.request = time.time(), None
        with contextlib.suppress(OSError):
            self.socket.send("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body)
            self.socket.shutdown(socket.SHUT_WR)  # closing while data is unread would discard the answer

    def check_time(self, now):
        """Closes the connection if a request arrives too slowly or not at all, or if an answer is not read."""
        if self.request is not None and not self.is_answered:
            body_bytes = self._bytes if self.request.headers_finished else 0
            if now > self._begin + _REQUEST_SECONDS + body_bytes / _BYTES_PER_SECOND:
                self.refuse("the request took too long to arrive", "REQUEST_TIMEOUT")
            return
        is_waiting = not self.requests or self.total_outbufs_len > self.adj.outbuf_high_watermark
        if (
            self.will_close  # the connection is still open because its socket accepts no data
            or (self.refused_at is not None and now > self.refused_at + _LINGER_SECONDS)
            or (is_waiting and now > self.last_activity + IDLE_SECONDS)
        ):
            self.handle_close()

    def precedence(self, now):
        """Returns a sort key, or None if the connection must stay open.

        To make room, the connection with the lowest key is closed first, that is, the one that has been idle longest. A
        new connection counts as busy for a moment, because its request may not have been read yet.
        """
        if self.requests:
            return None
        is_busy = self.request is not None or self.total_outbufs_len > 0
        since = self._begin if is_busy else self.last_activity
        return is_busy or now < since + _NEW_SECONDS, since


def make_room(connections, newest, most):
    """If there are too many connections, closes one that is idle or slow, or else refuses the newest.

    Args:
        connections: iterable of Connection.
        newest: the newly accepted Connection.
        most: int, the maximum number of connections.
    """
    connections = [connection for connection in connections if not connection.will_close]
    lingering = [connection for connection in connections if connection.refused_at is not None]
    for connection in lingering[:-_MOST_LINGERING]:
        connection.will_close = True
    if len(connections) - len(lingering) <= most:
        return
    others = [connection for connection in connections if connection is not newest and connection.refused_at is None]
    now = time.time()
    precedences = [(connection.precedence(now), connection) for connection in others]
    _, victim = min((pair for pair in precedences if pair[0]), key=lambda pair: pair[0], default=(None, None))
    if victim is None:
        newest.refuse("all connections of the server are in use", "UNAVAILABLE")
    elif victim.is_busy and not victim.is_answered:
        victim.refuse("the server needs the connection for other clients", "UNAVAILABLE")
    else:
        victim.will_close = True


def open_listener(host, port):
    """Returns a listening socket. Raises `UserError` if the port is in use or the host is not this machine.

    Args:
        host: str, a host name or address.
        port: int. If 0, any free port is chosen.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except (OSError, UnicodeError) as error:
        is_unknown = isinstance(error, socket.gaierror | UnicodeError)
        why = "no such host" if is_unknown else os.strerror(error.errno)
        advice = "Choose another port, or stop the program that uses this port."
        if is_unknown or error.errno == errno.EADDRNOTAVAIL:
            advice = "Choose a name or an address of this machine, such as 127.0.0.1."
        raise UserError(f"--host={host} --port={port}: cannot listen there: {why}. {advice}") from None


def address_of(listener):
    """Returns the address of a listening socket, such as http://127.0.0.1:8501."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    application,
    listener,
    longest_body,
    drain_seconds=0.0,
    on_stop=lambda: None,
    on_last=lambda: None,
    most_connections=512,
):
    """Serves until the process receives a signal (see `stop_on_signal`). Must be called in the main thread.

    After the signal, connections are accepted for another `drain_seconds`. Then only requests that have begun to arrive
    are answered. A second signal ends the process immediately.

    Args:
        application: WSGI callable. waitress itself answers requests that are not valid HTTP.
        listener: a listening socket; it is closed at the end.
        longest_body: int, maximum size of a body in bytes. The application itself refuses longer bodies, so that
            clients can read the reason; waitress closes the connection if a body is more than four times as long.
        drain_seconds: float, time for load balancers to notice that this server is stopping.
        on_stop: function called when the signal arrives.
        on_last: function called when requests are no longer accepted.
        most_connections: int, the maximum number of connections. An additional connection replaces the connection that
            has been idle longest, or one whose request arrives slowly. If all connections are waiting for answers, the
            new connection is refused with 503.
    """
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # hides its warnings about waiting requests
    sockets = {}
    server = waitress.create_server(
        application,
        map=sockets,
        sockets=[listener],
        threads=most_connections,  # one thread per connection, because most threads only wait for a batch
        connection_limit=2 * most_connections + 100,  # this limit is never reached: see `make_room`
        channel_timeout=2**30,  # this timeout is never reached: see `check_time`
        channel_request_lookahead=1,  # detects a client that disconnects while its request is answered
        recv_bytes=2**18,  # large, because each read polls all connections
        max_request_body_size=4 * longest_body,
        asyncore_use_poll=True,
        log_socket_errors=False,
        ident=None,
    )
    server.channel_class, server.most_connections = Connection, most_connections
    server.handle_accept = functools.partial(_accept_waiting, server, server.handle_accept)
    with stop_on_signal(server.pull_trigger) as stopped:
        _loop(server, sockets, stopped.is_set)
        on_stop()
        if drain_seconds:
            LOGGER.info(f"Stopping. Requests are accepted for another {drain_seconds:g} s.")
            end = time.monotonic() + drain_seconds
            _loop(server, sockets, lambda: time.monotonic() >= end)
        connections = server.active_channels
        LOGGER.info(f"Stopping; requests in progress: {sum(one.is_busy for one in connections.values())}.")
        # closes only the listener: `server.close` would also disable wake-ups by threads
        wasyncore.dispatcher.close(server)
        on_last()
        end = time.monotonic() + _LONGEST_DRAIN

        def is_done():
            for connection in connections.values():
                connection.will_close = connection.will_close or not connection.is_busy  # idle connections are closed
            return not connections or time.monotonic() >= end

        _loop(server, sockets, is_done)
        if connections:
            LOGGER.warning(f"Connections not finished within {_LONGEST_DRAIN:g} s: {len(connections)}.")
    wasyncore.close_all(sockets)


def _accept_waiting(server, accept):
    """Accepts several waiting connections per poll, because a single one would be slow when many arrive."""
    # Only a small share of the possible connections is accepted at a time, so that no connection is closed to make
    # room before its request has been read.
    for _ in range(max(1, server.most_connections // 8)):
        num_channels = len(server.active_channels)
        accept()
        if len(server.active_channels) == num_channels:
            return


def _loop(server, sockets, is_done):
    """Runs waitress' event loop until `is_done()`, and checks time limits every second."""
    checked = 0.0
    while not is_done():
        wasyncore.loop(timeout=0.1 if not server.accepting else 1, use_poll=True, map=sockets, count=1)
        if (now := time.time()) >= checked + 1:
            checked = now
            for connection in list(server.active_channels.values()):
                connection.check_time(now)
