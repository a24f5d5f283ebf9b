"""Serves a WSGI application by waitress until SIGTERM or Ctrl-C, then answers the requests that have arrived."""

import functools
import logging
import os
import socket
import time

from t2t_lite.cli.console import stop_on_signal
from t2t_lite.errors import UserError, needs

with needs("waitress", "web", "a server"):
    import waitress
    from waitress import wasyncore

    from t2t_lite.extras.serving.http_connections import Connection

_LOGGER = logging.getLogger("t2t_lite")
_LONGEST_DRAIN = 60.0  # seconds; a client that does not read its answer must not delay the server


def open_listener(host, port):
    """Returns a listening socket. Raises `UserError` for a port in use, or a host that is not this machine.

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
            f"--host={host} --port={port}: cannot listen there: {why}. Choose another port, or stop what uses this one."
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

    After the signal, connections are accepted for another `drain_seconds`; then only requests that have begun to arrive
    are answered. A second signal ends the process at once.

    Args:
        application: WSGI callable. waitress itself answers requests that are not HTTP.
        listener: a listening socket, which is closed at the end.
        longest_body: int. The application itself refuses longer bodies, so that its clients can read the reason;
            waitress closes the connection if a body is four times as long.
        most_connections: int. A further connection replaces the longest idle one, or one whose request arrives slowly;
            if all are being answered, it gets a 503.
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
        threads=most_connections,  # one each, so that no request waits for a thread: most only wait for a batch
        connection_limit=2 * most_connections + 100,  # never reached, since waitress would accept none: see `make_room`
        channel_timeout=2**30,  # never reached: see `check_time`
        channel_request_lookahead=1,  # detects a client that leaves while it is answered
        recv_bytes=2**18,  # of a request at a time; each time all connections are polled
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
        wasyncore.dispatcher.close(server)  # the listener alone: `server.close` would end the wake-up calls of threads
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
    """Accepts several waiting connections, since one per poll of all others would be slow when many arrive."""
    # They are few compared to the open ones, so that none of these makes room before its request has been read.
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
