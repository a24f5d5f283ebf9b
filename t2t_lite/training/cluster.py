"""The machines of a run, as the environment variable TF_CONFIG names them (docs: tf.distribute, "TF_CONFIG").

TF_CONFIG='{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}'
"""

import dataclasses
import json
import os
import re

from t2t_lite.errors import UserError

_EXPECTED = (
    'Expected {"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": N}}, as '
    "t2t-make-tf-configs prints it."
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The workers of a run and which one this process is.

    Attributes:
        workers: tuple of "host:port"; the first one is the chief, who writes checkpoints and logs.
        index: int, this process' place among them.
    """

    workers: tuple
    index: int

    @property
    def is_chief(self):
        """Whether this process writes what a run leaves."""
        return self.index == 0

    def tf_config(self):
        """Returns the value of TF_CONFIG for this worker."""
        task = {"type": "worker", "index": self.index}
        return json.dumps({"cluster": {"worker": list(self.workers)}, "task": task})


def read_cluster(text=None):
    """Returns the Cluster that TF_CONFIG describes; None where it is not set or names one machine.

    Args:
        text: str, its value; None: what the environment has.

    Raises:
        UserError: it is not JSON or of another form; it has parameter servers or an evaluator, which are not used.
    """
    text = os.environ.get("TF_CONFIG", "") if text is None else text
    if not text.strip():
        return None
    try:
        config = json.loads(text)
        hosts = {job: list(addresses) for job, addresses in config.get("cluster", {}).items()}
        task = config.get("task", {})
        kind, index = task.get("type", "worker"), int(task.get("index", 0))
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"TF_CONFIG: cannot be read ({error}). {_EXPECTED}") from None
    if unused := sorted({*hosts, kind} - {"chief", "worker"}):
        raise UserError(f"TF_CONFIG: has {', '.join(unused)}: every machine is a worker here. {_EXPECTED}")
    chief, workers = hosts.get("chief", []), hosts.get("worker", [])
    if index < 0 or index >= len(hosts.get(kind, [])):
        if not hosts:
            return None
        raise UserError(f"TF_CONFIG: there is no {kind} {index} among {json.dumps(hosts)}. {_EXPECTED}")
    everyone = (*chief, *workers)
    for address in everyone:
        if not (isinstance(address, str) and re.fullmatch(r"\S+:\d+", address)):
            raise UserError(f"TF_CONFIG: {address!r} is not host:port. {_EXPECTED}")
    if len(set(everyone)) < len(everyone):
        raise UserError(f"TF_CONFIG: an address comes twice in {', '.join(everyone)}. {_EXPECTED}")
    return Cluster(everyone, index + (len(chief) if kind == "worker" else 0)) if len(everyone) > 1 else None


def lost_worker(message, cluster):
    """Returns "host:port" of the worker that an error of TensorFlow's collective operations speaks of, or None."""
    found = [int(number) for number in re.findall(r"/job:worker/replica:0/task:(\d+)", message)]
    others = [number for number in found if number != cluster.index and number < len(cluster.workers)]
    if not others and "CoordinationService" in message:  # the first worker has it
        others = [0] if cluster.index else []
    if not others and len(cluster.workers) == 2:
        others = [1 - cluster.index]
    return cluster.workers[others[0]] if others else None
