"""Serves a WSGI application by waitress until SIGTERM or Ctrl-C, then answers the requests that have arrived.

Connections have time limits and a maximum number, and notice clients that have left.
"""

import contextlib
import functools
import json
import logging
import os
import socket
import time

from t2t_lite.cli.console import stop_on_signal
from t2t_lite.errors import UserError, needs
from t2t_lite.extras.serving.refusals import RETRY_AFTER, http_status

with needs("waitress", "web", "a server"):
    import waitress
    from waitress import wasyncore
    from waitress.channel import HTTPChannel

_LOGGER = logging.getLogger("t2t_lite")
_LONGEST_DRAIN = 60.0  # seconds; a client that does not read its answer must not delay the end of the server
IDLE_SECONDS = 60.0  # limit without a request, or with an answer that the client does not read
_REQUEST_SECONDS, _BYTES_PER_SECOND = 20.0, 500  # limit for a request's head, plus a second per 500 bytes of its body
_NEW_SECONDS = 1.0  # in which a new connection counts as busy
_LINGER_SECONDS, _MOST_LINGERING = 2.0, 64  # connections that were refused, until their clients have read why


class Connection(HTTPChannel):
    """A client's connection. waitress calls its methods in the main thread, except for `service` and `write_soon`.

    A client that has closed its side counts as gone, so that its requests need not be computed; an answer is sent
    nevertheless, since the client may still read.
    """

    _has_ended = False  # the client's side
    _begin, _bytes = 0.0, 0  # start time and bytes so far of the arriving request
    refused_at = None  # time at which `refuse` answered

    def __init__(self, server, sock, addr, adj, map=None):
        super().__init__(server, sock, addr, adj, map)
        make_room(server.active_channels.values(), self, server.most_connections)

    def check_client_disconnected(self):
        """Returns whether nobody waits for the answer: `waitress.client_disconnected` of the WSGI environment."""
        return self._has_ended or not self.connected

    def readable(self):
        """Tells waitress to wait for data."""
        return not self._has_ended and (self.refused_at is not None or super().readable())

    def writable(self):
        """Tells waitress to wait until data can be sent, or the connection can be closed."""
        if self._has_ended and not self.requests:
            self.close_when_flushed = True
        return super().writable()

    def handle_read(self):
        """Reads a part of a request."""
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
        """Accepts a part of an answer, in another thread."""
        self.last_activity = time.time()
        return super().write_soon(data)

    @property
    def is_answered(self):
        """Whether a request is being answered."""
        return bool(self.requests or self.total_outbufs_len)

    @property
    def is_busy(self):
        """Whether a request has begun to arrive and is not yet completely answered."""
        return self.refused_at is None and (self.is_answered or self.request is not None)

    def refuse(self, message, code):
        """Answers instead of the application, and closes the connection when the client has read the answer."""
        body = json.dumps({"error": message}).encode()
        lines = [f"HTTP/1.1 {http_status(code)}", "Connection: close", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}"] + [f"Retry-After: {RETRY_AFTER}"] * (code == "UNAVAILABLE")
        self.refused_at, self.request = time.time(), None
        with contextlib.suppress(OSError):
            self.socket.send("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body)
            self.socket.shutdown(socket.SHUT_WR)  # closing with unread data would discard what was sent

    def check_time(self, now):
        """Closes the connection if a request arrives too slowly, an answer is not read, or no request arrives."""
        if self.request is not None and not self.is_answered:
            body_bytes = self._bytes if self.request.headers_finished else 0
            if now > self._begin + _REQUEST_SECONDS + body_bytes / _BYTES_PER_SECOND:
                self.refuse("the request took too long to arrive", "REQUEST_TIMEOUT")
            return
        is_waiting = not self.requests or self.total_outbufs_len > self.adj.outbuf_high_watermark
        if (
            self.will_close  # still open because its socket accepts no data
            or (self.refused_at is not None and now > self.refused_at + _LINGER_SECONDS)
            or (is_waiting and now > self.last_activity + IDLE_SECONDS)
        ):
            self.handle_close()

    def precedence(self, now):
        """Returns a sort key: connections with the lowest are closed first to make room. None: must stay open.

        Connections that have long been idle come first. A new one may look idle before its request is read.
        """
        if self.requests:
            return None
        is_busy = self.request is not None or self.total_outbufs_len > 0
        since = self._begin if is_busy else self.last_activity
        return is_busy or now < since + _NEW_SECONDS, since


def make_room(connections, newest, most):
    """If there are too many connections, closes the longest idle or slowest one, or else refuses the newest.

    Args:
        connections: iterable of Connection.
        newest: the newly accepted Connection.
        most: int, the maximum number.
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
        victim.refuse("the server needs the connection for others", "UNAVAILABLE")
    else:
        victim.will_close = True


def open_listener(host, port):
    """Returns a listening socket. Raises `UserError` if the port is in use or the host is not this machine.

    Args:
        host: str, name or address.
        port: int; 0: any free port.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "errno", None) and os.strerror(error.errno)
        if isinstance(error, socket.gaierror | UnicodeError):
            why = "no such host"
        raise UserError(
            f"--host={host} --port={port}: cannot listen there: {why}. Choose another port, or stop the program that "
            "uses this one."
        ) from None


def address_of(listener):
    """Returns the address of a listening socket, such as http://127.0.0.1:8501."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    application,
    listener,
    longest_body,
    most_connections=512,
    drain_seconds=0.0,
    on_stop=lambda: None,
    on_last=lambda: None,
):
    """Serves until the process gets a signal, see `stop_on_signal`. Must be called in the main thread.

    After the signal, connections are accepted for another `drain_seconds`. Then only requests that have begun to arrive
    are answered. A second signal ends the process at once.

    Args:
        application: WSGI callable. waitress itself answers requests that are not HTTP.
        listener: a listening socket, which is closed at the end.
        longest_body: int. The application itself refuses longer bodies, so that its clients can read the reason;
            waitress closes the connection if a body is four times as long.
        most_connections: int. A further connection replaces the longest idle one, or one whose request arrives slowly;
            if all are being answered, it is refused with 503.
        drain_seconds: float, time for load balancers to notice that this server stops.
        on_stop: function called at the signal.
        on_last: function called when no further requests are accepted.
    """
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # waiting requests are normal
    sockets = {}
    server = waitress.create_server(
        application,
        map=sockets,
        sockets=[listener],
        threads=most_connections,  # one per connection: most of them only wait for a batch
        connection_limit=2 * most_connections + 100,  # never reached, since waitress would accept none: see `make_room`
        channel_timeout=2**30,  # never reached: see `check_time`
        channel_request_lookahead=1,  # detects a client that leaves while it is answered
        recv_bytes=2**18,  # at a time, since all connections are polled each time
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
            _LOGGER.info(f"Stopping; requests are accepted for another {drain_seconds:g} s.")
            end = time.monotonic() + drain_seconds
            _loop(server, sockets, lambda: time.monotonic() >= end)
        connections = server.active_channels
        _LOGGER.info(
            f"Stopping; requests in progress: {sum(connection.is_busy for connection in connections.values())}."
        )
        wasyncore.dispatcher.close(
            server
        )  # only the listener: `server.close` would also end the wake-up calls of threads
        on_last()
        end = time.monotonic() + _LONGEST_DRAIN

        def is_done():
            for connection in connections.values():
                connection.will_close = connection.will_close or not connection.is_busy  # accept no further request
            return not connections or time.monotonic() >= end

        _loop(server, sockets, is_done)
        if connections:
            _LOGGER.warning(f"Requests that were not answered within {_LONGEST_DRAIN:g} s: {len(connections)}.")
    wasyncore.close_all(sockets)


def _accept_waiting(server, accept):
    """Accepts several waiting connections at once: one per poll would be slow when many arrive."""
    # Few compared to the open connections, so that none is closed to make room before its request has been read.
    for _ in range(max(1, server.most_connections // 8)):
        num_channels = len(server.active_channels)
        accept()
        if len(server.active_channels) == num_channels:
            return


def _loop(server, sockets, is_done):
    """Runs waitress' loop until `is_done()`."""
    checked = 0.0
    while not is_done():
        wasyncore.loop(timeout=0.1 if not server.accepting else 1, use_poll=True, map=sockets, count=1)
        if (now := time.time()) >= checked + 1:
            checked = now
            for connection in list(server.active_channels.values()):
                connection.check_time(now)
