"""The machines of a run, as the environment variable TF_CONFIG names them (docs: tf.distribute, "TF_CONFIG").

TF_CONFIG='{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}'

They wait for each other before TensorFlow joins them. TensorFlow's own wait keeps the interpreter's lock and SIGTERM to
itself, so that nothing but SIGKILL would end it. So the machines meet here first, at the first one's address: each
connects and says its number, and once all are there the first one closes the connections. Then TensorFlow takes the
same port, and joins machines that are there.
"""

import contextlib
import dataclasses
import faulthandler
import json
import logging
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time

from t2t_lite.errors import Failure, UserError, shown
from t2t_lite.files.safe_json import parse_json

_LOGGER = logging.getLogger("t2t_lite")
# How long to wait for machines, as in docs/clusters.md. Names may become resolvable only after machines have started.
SECONDS_FOR_NAMES = 120
SECONDS_FOR_MACHINES = 600
SECONDS_TO_JOIN = 180  # for TensorFlow, once all machines are there; on eight GPUs it takes half a minute to start
SECONDS_BETWEEN_TRIES = 2
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})")
_SCHEMA = {"cluster?": {str: [str]}, "task?": {"type?": str, "index?": int | str}}

_EXPECTED = (
    'Expected {"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": N}}, as '
    "t2t-make-tf-configs prints it."
)
SECONDS_BETWEEN_KNOCKS = 0.5
_OURS = b"t2t_lite "  # begins each message
_HELLO = re.compile(_OURS + rb"([0-9]{1,6})\n")
_GO = _OURS + b"go\n"
_MISSING = _OURS + b"missing "
_LONGEST = 2**16  # bytes of a message


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The workers of a run and which one this process is.

    Attributes:
        workers: tuple of "host:port"; the first one is the chief, which writes checkpoints and logs.
        index: int, this process' place among them.
    """

    workers: tuple
    index: int

    @property
    def is_chief(self):
        """Whether this process writes checkpoints and logs."""
        return self.index == 0

    def tf_config(self):
        """Returns the value of TF_CONFIG for this worker."""
        task = {"type": "worker", "index": self.index}
        return json.dumps({"cluster": {"worker": list(self.workers)}, "task": task})


def read_cluster(text=None):
    """Returns the Cluster that TF_CONFIG describes; None if it is not set or names one machine.

    Args:
        text: str, its value; None: the environment's.

    Raises:
        UserError: it is not JSON or is malformed, or it has parameter servers or an evaluator, which are not used.
    """
    text = os.environ.get("TF_CONFIG", "") if text is None else text
    if not text.strip():
        return None
    try:
        config = parse_json(text, "TF_CONFIG", schema=_SCHEMA)
        hosts, task = config.get("cluster", {}), config.get("task", {})
        kind, index = task.get("type", "worker"), int(task.get("index", 0))
    except ValueError as error:  # UserError too
        reason = str(error).removeprefix("TF_CONFIG: ").removesuffix(" Copy the file again.").rstrip(".")
        raise UserError(f"TF_CONFIG: cannot be read ({reason}). {_EXPECTED}") from None
    if unused := sorted({*hosts, kind} - {"chief", "worker"}):
        raise UserError(f"TF_CONFIG: has {', '.join(unused)}: every machine is a worker here. {_EXPECTED}")
    chief, workers = hosts.get("chief", []), hosts.get("worker", [])
    if index < 0 or index >= len(hosts.get(kind, [])):
        if not hosts:
            return None
        raise UserError(f"TF_CONFIG: there is no {kind} {shown(index)} among {shown(hosts)}. {_EXPECTED}")
    everyone = (*chief, *workers)
    for address in everyone:
        found = _ADDRESS.fullmatch(address)
        if not found or not 0 < int(found[2]) < 2**16:
            raise UserError(f"TF_CONFIG: {shown(address)} is not host:port, with a port from 1 to 65535. {_EXPECTED}")
    if len(set(everyone)) < len(everyone):
        raise UserError(f"TF_CONFIG: an address comes twice in {', '.join(everyone)}. {_EXPECTED}")
    return Cluster(everyone, index + (len(chief) if kind == "worker" else 0)) if len(everyone) > 1 else None


def wait_for_names(cluster, seconds=None):
    """Waits until every machine's name can be resolved.

    Args:
        cluster: Cluster.
        seconds: float, the longest wait; None: `SECONDS_FOR_NAMES`.

    Raises:
        UserError: a name still cannot be resolved after that time.
    """
    seconds = SECONDS_FOR_NAMES if seconds is None else seconds
    end, said = time.monotonic() + seconds, False
    for address in cluster.workers:
        host, _, port = address.rpartition(":")
        while not _is_known(host.strip("[]"), int(port), end):
            if time.monotonic() >= end:
                raise UserError(
                    f"TF_CONFIG: {host}: no machine of this name was found in {seconds:g} s. Check the name, and that "
                    "this machine can look it up."
                )
            if not said:
                _LOGGER.info(f"waiting at most {seconds:g} s until the name {host} can be looked up")
                said = True
            time.sleep(min(SECONDS_BETWEEN_TRIES, max(0, end - time.monotonic())))


def _is_known(host, port, end):
    """Whether a name can be resolved before a given time; the resolution may take longer, and cannot be stopped."""
    found = []

    def look_up():
        with contextlib.suppress(OSError, UnicodeError):
            found.extend(socket.getaddrinfo(host, port))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(max(0.1, end - time.monotonic()))
    return bool(found)


@contextlib.contextmanager
def ended_after(seconds, what):
    """Context manager that ends this process, with one line and status 1, if it takes longer than `seconds`.

    In it TensorFlow waits for the other machines in C++, and keeps the interpreter's lock: no exception, thread or
    handler of Python's comes to its turn. So `faulthandler`, which needs no lock, ends the process, and a program that
    reads what it writes prints the line. SIGINT ends it at once. For SIGTERM TensorFlow sets a handler of its own,
    which ends nothing; afterwards the one before is in its place again.
    """
    line = f"TF_CONFIG: {what} did not join within {seconds:g} s. Start the same command on all machines."
    printer = ["sh", "-c", 'read -r _ && printf "%s\\n" "$0" >&2; cat > /dev/null', line]
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
    """Returns "host:port" of the worker that an error of TensorFlow's collective operations names, or None."""
    found = [int(number) for number in re.findall(r"/job:worker/replica:0/task:(\d+)", message)]
    others = [number for number in found if number != cluster.index and number < len(cluster.workers)]
    if not others and "CoordinationService" in message:  # the first worker has it
        others = [0] if cluster.index else []
    if not others and len(cluster.workers) == 2:
        others = [1 - cluster.index]
    return cluster.workers[others[0]] if others else None


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
        listener.settimeout(SECONDS_BETWEEN_KNOCKS)  # who knocked may be gone when it is let in
        silent = {}  # connections that have not said who they are -> what they have said
        while len(present) < len(cluster.workers) - 1:
            if time.monotonic() >= end:
                names = ", ".join(cluster.workers[i] for i in range(1, len(cluster.workers)) if i not in present)
                _tell(present.values(), _MISSING + f"{names}\n".encode())
                raise Failure(_missing(names, seconds))
            ready, *_ = select.select([listener, *silent, *present.values()], [], [], SECONDS_BETWEEN_KNOCKS)
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
                if not select.select([connection], [], [], SECONDS_BETWEEN_KNOCKS)[0]:
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
        time.sleep(min(SECONDS_BETWEEN_KNOCKS, max(0, end - time.monotonic())))
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
