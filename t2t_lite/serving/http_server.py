"""Serves a WSGI application by waitress until SIGTERM or Ctrl-C, then answers the requests that have come."""

import logging
import os
import socket
import time

from t2t_lite.errors import UserError
from t2t_lite.stop_signal import stop_on_signal

try:
    import waitress
    from waitress import wasyncore
except ImportError:
    raise UserError("waitress is not installed: pip install 't2t_lite[web]'.") from None

_LOGGER = logging.getLogger("t2t_lite")
_THREADS = 64  # requests that are parsed, wait for a batch, or are written; more wait for a thread
_CONNECTIONS = 512
_LONGEST_DRAIN = 60.0  # seconds; a client that does not read its answer must not hold the server up


def open_listener(host, port):
    """Returns a socket that listens. Raises `UserError` for a port that is taken, or a host that is not this machine.

    Args:
        host: str, name or address.
        port: int; 0: any that is free.
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


def serve(application, listener, longest_body):
    """Serves until the process gets a signal, see `stop_on_signal`. Must be called in the main thread.

    From the signal on, no connection is accepted; requests that have begun to arrive are answered. A second signal ends
    the process at once.

    Args:
        application: WSGI callable. waitress answers by itself what is not HTTP.
        listener: a listening socket, which is closed at the end.
        longest_body: int. The application itself refuses longer bodies, so that its clients can read why; waitress
            closes the connection of those that are four times as long.
    """
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # that requests wait is no news
    sockets = {}
    server = waitress.create_server(
        application,
        map=sockets,
        sockets=[listener],
        threads=_THREADS,
        connection_limit=_CONNECTIONS,
        recv_bytes=2**18,  # of a request at a time; each time costs a look at every connection
        max_request_body_size=4 * longest_body,
        asyncore_use_poll=True,
        log_socket_errors=False,
        ident=None,
    )
    with stop_on_signal(server.pull_trigger) as stopped:
        while not stopped.is_set():
            wasyncore.loop(timeout=1, use_poll=True, map=sockets, count=1)
        channels = server.active_channels
        _LOGGER.info(f"Stopping; requests in progress: {sum(map(_is_busy, channels.values()))}.")
        wasyncore.dispatcher.close(server)  # the listener alone: `server.close` would end the wake-up calls of threads
        end = time.monotonic() + _LONGEST_DRAIN
        while channels and time.monotonic() < end:
            for channel in list(channels.values()):
                channel.will_close = channel.will_close or not _is_busy(channel)  # no further request on it
            wasyncore.loop(timeout=0.1, use_poll=True, map=sockets, count=1)
    wasyncore.close_all(sockets)


def _is_busy(channel):
    """Whether a connection has a request that is not yet answered to its end."""
    return bool(channel.request or channel.requests or channel.total_outbufs_len)
