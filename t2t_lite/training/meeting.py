"""How the machines of a run wait for each other before TensorFlow joins them.

TensorFlow's own wait keeps the interpreter's lock and SIGTERM to itself, so that nothing but SIGKILL would end it. So
the machines meet here first, at the first one's address: each connects and says its number, and once all are there the
first one closes the connections. Then TensorFlow takes the same port, and joins machines that are there.
"""

import contextlib
import re
import select
import socket
import time

from t2t_lite.errors import Failure, UserError

SECONDS_BETWEEN_TRIES = 0.5
_OURS = b"t2t_lite "  # begins each message
_HELLO = re.compile(_OURS + rb"([0-9]{1,6})\n")
_GO = _OURS + b"go\n"
_MISSING = _OURS + b"missing "
_LONGEST = 2**16  # bytes of a message


def meet(cluster, seconds):
    """Waits until all machines of a `Cluster` are there.

    Args:
        cluster: Cluster.
        seconds: float, the longest wait.

    Raises:
        UserError: the first machine's port is not free.
        Failure: a machine, which is named, did not come.
    """
    end = time.monotonic() + seconds
    (_host if cluster.is_chief else _visit)(cluster, end, seconds)


def _host(cluster, end, seconds):
    """Waits for the others, as the first machine."""
    present = {}  # number of a machine -> its connection
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listener(cluster.workers[0]))
        listener.settimeout(SECONDS_BETWEEN_TRIES)  # who knocked may be gone when it is let in
        silent = {}  # connections that have not said who they are -> what they have said
        while len(present) < len(cluster.workers) - 1:
            if time.monotonic() >= end:
                names = ", ".join(cluster.workers[i] for i in range(1, len(cluster.workers)) if i not in present)
                _tell(present.values(), _MISSING + f"{names}\n".encode())
                raise Failure(_missing(names, seconds))
            ready, *_ = select.select([listener, *silent, *present.values()], [], [], SECONDS_BETWEEN_TRIES)
            for connection in ready:
                if connection is listener:
                    with contextlib.suppress(OSError):
                        silent[stack.enter_context(listener.accept()[0])] = b""
                    continue
                said = _received(connection)
                number = next((i for i, other in present.items() if other is connection), None)
                if number is not None:  # it waits, and says nothing: it is gone
                    del present[number]
                    continue
                silent[connection] += said
                hello = _HELLO.fullmatch(silent[connection])
                if hello and 0 < int(hello[1]) < len(cluster.workers):
                    present[int(hello[1])] = connection  # in place of one before it restarted
                if hello or not said or len(silent[connection]) > _LONGEST:
                    del silent[connection]
        _tell(present.values(), _GO)


def _visit(cluster, end, seconds):
    """Waits at the first machine, as another one."""
    host, _, port = cluster.workers[0].rpartition(":")
    missing = cluster.workers[0]
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), 5) as connection:
            connection.sendall(_OURS + f"{cluster.index}\n".encode())
            missing, said = f"one of {', '.join(cluster.workers)}", b""
            while time.monotonic() < end and not said.endswith(b"\n"):
                if not select.select([connection], [], [], SECONDS_BETWEEN_TRIES)[0]:
                    continue
                if not (more := _received(connection)):
                    missing = cluster.workers[0]  # it was there, and is gone
                    break
                said += more
                if not said.startswith(_OURS[: len(said)]) or len(said) > _LONGEST:
                    return  # TensorFlow answers there already: this machine comes late, or comes again
            if said.startswith(_MISSING):
                raise Failure(_missing(said.removeprefix(_MISSING).decode(errors="replace").strip(), seconds))
            if said == _GO:
                return
        time.sleep(min(SECONDS_BETWEEN_TRIES, max(0, end - time.monotonic())))
    raise Failure(_missing(missing, seconds))


def _listener(address):
    """Returns a socket that listens at the port of an address, at all of this machine's own."""
    port = int(address.rpartition(":")[2])
    try:
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
        return socket.create_server(("", port), backlog=1024)
    except OSError as error:
        raise UserError(
            f"TF_CONFIG: {address}: cannot listen there: {error.strerror}. Expected a free port on this machine."
        ) from None


def _received(connection):
    """Returns what has come; nothing where the other side is gone."""
    try:
        return connection.recv(4096)
    except OSError:
        return b""


def _tell(connections, message):
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(message)


def _missing(names, seconds):
    return f"TF_CONFIG: {names} did not join within {seconds:g} s. Start the same command on all machines."
