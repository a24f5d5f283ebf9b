"""Connections of an HTTP server: their time limits, their maximum number, and the detection of clients that left."""

import contextlib
import json
import socket
import time

from waitress.channel import HTTPChannel

from t2t_lite.extras.serving.refusals import RETRY_AFTER, http_status

IDLE_SECONDS = 60.0  # without a request, or with an answer that the client does not read
_REQUEST_SECONDS, _BYTES_PER_SECOND = 20.0, 500  # for a request's head; one more second for each 500 bytes of a body
_NEW_SECONDS = 1.0
_LINGER_SECONDS, _MOST_LINGERING = 2.0, 64


class Connection(HTTPChannel):
    """A client's connection. waitress calls its methods in the main thread, except for `service` and `write_soon`.

    A client that has closed its side counts as gone, so that its requests need not be computed; an answer is sent
    nevertheless, since the client may still read.
    """

    _has_ended = False  # the client's side
    _begin, _bytes = 0.0, 0  # of the arriving request: its start time and the bytes so far
    refused_at = None  # when `refuse` answered

    def __init__(self, server, sock, addr, adj, map=None):
        super().__init__(server, sock, addr, adj, map)
        make_room(server.active_channels.values(), self, server.most_connections)

    def check_client_disconnected(self):
        """Returns whether nobody waits for the answer: `waitress.client_disconnected` of the WSGI environment."""
        return self._has_ended or not self.connected

    def readable(self):
        """Returns whether to wait for data."""
        return not self._has_ended and (self.refused_at is not None or super().readable())

    def writable(self):
        """Returns whether to wait until data can be sent, or the connection can be closed."""
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
        """Takes a part of an answer, in another thread."""
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
        """Answers in place of the application, and closes the connection when the client has read the answer."""
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
            self.will_close  # and still open, since its socket accepts no data
            or (self.refused_at is not None and now > self.refused_at + _LINGER_SECONDS)
            or (is_waiting and now > self.last_activity + IDLE_SECONDS)
        ):
            self.handle_close()

    def precedence(self, now):
        """Returns the priority for being closed to make room, lowest first; None if it must not be closed.

        Connections that have long been idle come first. A new one may look idle before its request is read.
        """
        if self.requests:
            return None
        is_busy = self.request is not None or self.total_outbufs_len > 0
        since = self._begin if is_busy else self.last_activity
        return is_busy or now < since + _NEW_SECONDS, since


def make_room(connections, newest, most):
    """Closes a connection if there are too many: the longest idle or slowest one; or else refuses the newest.

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
