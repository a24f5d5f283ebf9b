"""Which devices a run uses: one, or several replicas under MirroredStrategy."""

import contextlib
import dataclasses
import json
import os

import tensorflow as tf

from t2t_lite.errors import UserError


@dataclasses.dataclass
class Replicas:
    """The replicas of a run.

    Attributes:
        strategy: tf.distribute.MirroredStrategy, or None for one device.
        count: int.
        description: one line for the log: the devices, and why not more.
    """

    strategy: tf.distribute.Strategy | None
    count: int
    description: str

    def scope(self):
        """Returns the context in which variables are made."""
        return self.strategy.scope() if self.strategy else contextlib.nullcontext()


def choose_replicas(worker_gpu=1, logical_cpus=0):
    """Chooses the devices.

    Args:
        worker_gpu: int, GPUs to replicate over; where none is visible the CPU is used, and the description says so.
        logical_cpus: int, train on that many replicas of the CPU instead; 0: no.

    Returns:
        Replicas.

    Raises:
        UserError: more GPUs than there are, a negative number, or several workers in TF_CONFIG.
    """
    _refuse_several_workers()
    if worker_gpu < 0 or logical_cpus < 0:
        raise UserError(f"--worker_gpu={worker_gpu}, --logical_cpus={logical_cpus}: expected numbers from 0.")
    if logical_cpus:
        devices = _logical_cpus(logical_cpus)
        note = f"{logical_cpus} logical CPU replicas" if logical_cpus > 1 else "1 CPU"
        return _over(devices, f"devices: {note} (--logical_cpus), GPUs are not used")
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        with contextlib.suppress(RuntimeError):  # already initialised: then it keeps its setting
            tf.config.experimental.set_memory_growth(gpu, True)
    if worker_gpu == 0:
        return Replicas(None, 1, f"devices: CPU (--worker_gpu=0; {len(gpus)} GPUs visible)")
    if worker_gpu > max(len(gpus), 1):  # one that is not there is the default, and falls back to the CPU
        raise UserError(f"--worker_gpu={worker_gpu}: only {len(gpus)} GPUs are visible. Expected at most that many.")
    if not gpus:
        built = "" if tf.test.is_built_with_cuda() else ", and this TensorFlow is built without CUDA"
        return Replicas(
            None, 1, f"devices: CPU: no GPU is visible{built} (for GPUs: pip install 't2t_lite[cuda]', then nvidia-smi)"
        )
    names = [gpu.name.removeprefix("/physical_device:") for gpu in gpus[:worker_gpu]]
    unused = f"; {len(gpus) - worker_gpu} more are visible (--worker_gpu)" if len(gpus) > worker_gpu else ""
    return _over([f"/{name}" for name in names], f"devices: {', '.join(names)}{unused}")


def _over(devices, description):
    if len(devices) == 1:
        return Replicas(None, 1, description)
    return Replicas(tf.distribute.MirroredStrategy(devices), len(devices), description)


def _logical_cpus(count):
    """Splits the CPU into `count` logical devices; returns their names."""
    if count > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        # After TensorFlow is initialised the number is fixed: the check below says so.
        with contextlib.suppress(RuntimeError):
            if len(tf.config.get_logical_device_configuration(cpu) or ()) < count:
                tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    available = len(tf.config.list_logical_devices("CPU"))
    if available < count:
        raise UserError(
            f"--logical_cpus={count}: TensorFlow was started with {available} in this process. "
            "Expected the number to be set before the first tensor is made."
        )
    return [f"/CPU:{i}" for i in range(count)]


def _refuse_several_workers():
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    except ValueError as error:
        raise UserError(f"TF_CONFIG: not JSON: {error}") from error
    if sum(len(hosts) for hosts in cluster.values()) > 1:
        raise UserError("TF_CONFIG: several workers are not available yet. Expected one machine; unset TF_CONFIG.")
