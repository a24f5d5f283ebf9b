"""The machines of a run, which the environment variable TF_CONFIG lists (see "TF_CONFIG" in TensorFlow's guides).

TF_CONFIG='{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}'

The machines wait for each other before TensorFlow connects them. While TensorFlow waits, it holds the interpreter's
lock and blocks SIGTERM, so only SIGKILL could end it. Therefore, all machines first connect to the address of the first
machine and send it their worker indices. Once all machines are present, the first machine closes the connections. Then
TensorFlow uses the same port to connect machines that are known to be present.
"""

import contextlib
import dataclasses
import faulthandler
import json
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time

from t2t_lite.errors import LOGGER, Failure, UserError, shown
from t2t_lite.files.safe_json import parse_json

# How long to wait for machines (documented in docs/clusters.md). In some clusters, the name of a machine can only be
# resolved once the machine runs.
SECONDS_FOR_NAMES = 120
SECONDS_FOR_MACHINES = 600
SECONDS_TO_JOIN = 180  # how long TensorFlow may take to connect the machines; with eight GPUs, it takes 30 s
SECONDS_BETWEEN_TRIES = 2
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})")
_SCHEMA = {"cluster?": {str: [str]}, "task?": {"type?": str, "index?": int | str}}

_EXPECTED = (
    'Expected {"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": N}}, as '
    "t2t-make-tf-configs prints it."
)
SECONDS_BETWEEN_KNOCKS = 0.5
_OURS = b"t2t_lite "  # the beginning of each message between machines
_HELLO = re.compile(_OURS + rb"([0-9]{1,6})\n")
_GO = b"go\n"
_MISSING = b"missing "
_LONGEST_HELLO, _LONGEST = 2**5, 2**16  # the largest numbers of bytes in messages


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The workers of a run, and the index of this process among them.

    Attributes:
        workers: tuple of "host:port". The first worker is the chief, which writes checkpoints and logs.
        index: int, the index of this process in `workers`.
    """

    workers: tuple
    index: int

    @property
    def is_chief(self):
        """Whether this process writes checkpoints and logs."""
        return self.index == 0

    def tf_config(self):
        """Returns the value of the environment variable TF_CONFIG for this worker."""
        task = {"type": "worker", "index": self.index}
        return json.dumps({"cluster": {"worker": list(self.workers)}, "task": task})


def read_cluster(text=None):
    """Returns the Cluster described by TF_CONFIG, or None if TF_CONFIG is not set or lists a single machine.

    Args:
        text: str, the value of TF_CONFIG. Defaults to the environment variable.

    Raises:
        UserError: if the text is not JSON or is malformed, or it lists parameter servers or an evaluator.
    """
    text = os.environ.get("TF_CONFIG", "") if text is None else text
    if not text.strip():
        return None
    try:
        config = parse_json(text, "TF_CONFIG", schema=_SCHEMA)
        hosts, task = config.get("cluster", {}), config.get("task", {})
        kind, index = task.get("type", "worker"), int(task.get("index", 0))
    except ValueError as error:  # also UserError
        reason = str(error).removeprefix("TF_CONFIG: ").removesuffix(" Copy the file again.").rstrip(".")
        raise UserError(f"TF_CONFIG cannot be read ({reason}). {_EXPECTED}") from None
    if unused := sorted({*hosts, kind} - {"chief", "worker"}):
        raise UserError(f"TF_CONFIG lists {', '.join(unused)}, but every machine must be a worker. {_EXPECTED}")
    chief, workers = hosts.get("chief", []), hosts.get("worker", [])
    if index < 0 or index >= len(hosts.get(kind, [])):
        if not hosts:
            return None
        raise UserError(f"TF_CONFIG: there is no {kind} {shown(index)} among {shown(hosts)}. {_EXPECTED}")
    everyone = (*chief, *workers)
    try:
        check_addresses(everyone)
    except UserError as error:
        raise UserError(f"TF_CONFIG: {error} {_EXPECTED}") from None
    return Cluster(everyone, index + (len(chief) if kind == "worker" else 0)) if len(everyone) > 1 else None


def check_addresses(addresses):
    """Raises `UserError` unless all addresses have the form host:port and differ."""
    for address in addresses:
        match = _ADDRESS.fullmatch(address)
        if not match or not 0 < int(match[2]) < 2**16:
            raise UserError(f"{shown(address)} is not host:port, with a port from 1 to 65535.")
    if len(set(addresses)) < len(addresses):
        raise UserError(f"an address occurs twice in {', '.join(addresses)}.")


def wait_for_names(cluster, seconds):
    """Waits until the names of all machines can be resolved.

    Args:
        cluster: Cluster.
        seconds: float, the longest wait.

    Raises:
        UserError: if a name still cannot be resolved after that time.
    """
    end, was_logged = time.monotonic() + seconds, False
    for address in cluster.workers:
        host, _, port = address.rpartition(":")
        while not _is_known(host.strip("[]"), int(port)):
            if time.monotonic() >= end:
                raise UserError(
                    f"TF_CONFIG: {host}: no machine of this name was found within {seconds:g} s. Check the name, and "
                    "whether this machine can resolve the name."
                )
            if not was_logged:
                LOGGER.info(f"waiting at most {seconds:g} s until the name {host} can be resolved")
                was_logged = True
            time.sleep(min(SECONDS_BETWEEN_TRIES, max(0, end - time.monotonic())))


def _is_known(host, port):
    """Returns whether a machine's name can be resolved. The resolver has a time limit of its own, some seconds."""
    try:
        return bool(socket.getaddrinfo(host, port))
    except (OSError, UnicodeError):
        return False


@contextlib.contextmanager
def ended_after(seconds, what):
    """Context manager that ends this process after `seconds` seconds, with a one-line message and status 1.

    In the context, TensorFlow waits for the other machines in C++ and holds the interpreter's lock, so no Python
    exception, thread or signal handler can run. `faulthandler` does not need the lock, so it can end the process;
    another program reads its output and prints the message. SIGINT ends the process immediately. TensorFlow replaces
    the handler of SIGTERM with a handler that does not end the process; the earlier handler is restored afterwards.
    """
    printer = ["sh", "-c", 'read -r _ && printf "%s\\n" "$0" >&2; cat > /dev/null', _missing(what, seconds)]
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)} if main else {}
    with subprocess.Popen(printer, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        faulthandler.dump_traceback_later(seconds, exit=True, file=process.stdin)
        if main:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            for number, handler in before.items():
                signal.signal(number, handler)


def lost_worker(message, cluster):
    """Returns the "host:port" of the worker named in an error from TensorFlow's collective operations, or None."""
    numbers = [int(number) for number in re.findall(r"/job:worker/replica:0/task:(\d+)", message)]
    others = [number for number in numbers if number != cluster.index and number < len(cluster.workers)]
    if not others and "CoordinationService" in message:  # this service runs in the first worker
        others = [0] if cluster.index else []
    if not others and len(cluster.workers) == 2:
        others = [1 - cluster.index]
    return cluster.workers[others[0]] if others else None


def meet(cluster, seconds):
    """Waits until all machines of a cluster are present.

    Args:
        cluster: Cluster.
        seconds: float, the longest wait.

    Raises:
        UserError: if the first machine's port is not free.
        Failure: if a machine did not connect in time. The error message names the machine.
    """
    end = time.monotonic() + seconds
    (_host if cluster.is_chief else _visit)(cluster, end, seconds)


def _host(cluster, end, seconds):
    """Waits for all other machines; called on the first machine."""
    present = {}  # {worker index: connection}
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listener(cluster.workers[0]))
        listener.settimeout(SECONDS_BETWEEN_KNOCKS)
        while len(present) < len(cluster.workers) - 1:
            if time.monotonic() >= end:
                names = ", ".join(cluster.workers[i] for i in range(1, len(cluster.workers)) if i not in present)
                _tell(present.values(), _MISSING + f"{names}\n".encode())
                raise Failure(_missing(names, seconds))
            with contextlib.suppress(OSError):
                connection = stack.enter_context(listener.accept()[0])
                if (index := _index_of(connection)) in range(1, len(cluster.workers)):
                    present[index] = connection  # replaces the connection of a process that was restarted
                else:
                    connection.close()
            # A waiting machine sends no data, so a connection with something to read has been closed by the peer.
            closed, *_ = select.select(present.values(), [], [], 0)
            present = {i: connection for i, connection in present.items() if connection not in closed}
        _tell(present.values(), _GO)


def _index_of(connection):
    """Returns the worker index that a new peer sends, or None if it sends something else or nothing."""
    connection.settimeout(SECONDS_BETWEEN_KNOCKS)
    with contextlib.suppress(OSError):
        hello = _HELLO.fullmatch(connection.makefile("rb").readline(_LONGEST_HELLO))
        return hello and int(hello[1])


def _visit(cluster, end, seconds):
    """Waits for the first machine's message that all machines are present; called on all other machines."""
    host, _, port = cluster.workers[0].rpartition(":")
    missing = cluster.workers[0]
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), 5) as connection:
            connection.sendall(_OURS + f"{cluster.index}\n".encode())
            missing = f"one of {', '.join(cluster.workers)}"
            connection.settimeout(max(SECONDS_BETWEEN_KNOCKS, end - time.monotonic()))
            answer = connection.makefile("rb")
            if answer.read(len(_OURS)) not in (_OURS, b""):
                return  # TensorFlow already uses the port, so this machine is late or was restarted
            received = answer.readline(_LONGEST)
            if received.startswith(_MISSING):
                raise Failure(_missing(received.removeprefix(_MISSING).decode(errors="replace").strip(), seconds))
            if received == _GO:
                return
            missing = cluster.workers[0]  # the first machine has disconnected
        time.sleep(min(SECONDS_BETWEEN_KNOCKS, max(0, end - time.monotonic())))
    raise Failure(_missing(missing, seconds))


def _listener(address):
    """Returns a socket that listens on the port of an address, on all interfaces of this machine."""
    port = int(address.rpartition(":")[2])
    try:
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
        return socket.create_server(("", port), backlog=1024)
    except OSError as error:
        raise UserError(
            f"TF_CONFIG: cannot listen on {address}: {error.strerror}. Expected a free port on this machine."
        ) from None


def _tell(connections, message):
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(_OURS + message)


def _missing(names, seconds):
    return f"TF_CONFIG: {names} did not join within {seconds:g} s. Start the same command on all machines."
