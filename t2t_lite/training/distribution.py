"""The devices of a run: a single device, or replicas on this machine or on all machines listed in TF_CONFIG."""

import collections
import contextlib
import dataclasses
import hashlib
import itertools
import json
import os

import tensorflow as tf

from t2t_lite.errors import LOGGER, Failure, UserError, counted, first_line
from t2t_lite.training.cluster import (
    SECONDS_FOR_MACHINES,
    SECONDS_FOR_NAMES,
    SECONDS_TO_JOIN,
    Cluster,
    ended_after,
    lost_worker,
    meet,
    read_cluster,
    wait_for_names,
)

# The XLA flags for GPU steps, unless the user's XLA_FLAGS override them. All numbers are for the paper's base model on
# an H200. Command buffers record kernels with memory addresses. TensorFlow changes these addresses in each step, and
# updating the buffers would take 12 % of a step. Autotuning Triton's matrix products takes half of the compile time.
# With deterministic operations, XLA does not autotune them, and a step takes 21 times as long as with cuBLAS.
_XLA_FLAGS = {"xla_gpu_enable_command_buffer": "", "xla_gpu_enable_triton_gemm": "false"}


@dataclasses.dataclass
class Replicas:
    """The replicas of a run, across all machines.

    Attributes:
        strategy: tf.distribute.MirroredStrategy, MultiWorkerMirroredStrategy, or None for one device.
        count: int, the total number of replicas across all machines.
        description: str, a line for the log that names the devices and says why no more devices are used.
        cluster: the Cluster of machines, or None for a single machine.
    """

    strategy: tf.distribute.Strategy | None
    count: int
    description: str
    cluster: Cluster | None = None

    @property
    def is_chief(self):
        """Whether this process writes checkpoints and logs, which only the first machine does."""
        return self.cluster is None or self.cluster.is_chief

    @property
    def devices(self):
        """The names of this machine's devices, one device per replica."""
        if self.strategy is not None:
            return self.strategy.extended.worker_devices
        return [device.name for device in tf.config.list_logical_devices("GPU")[:1]] or ["CPU:0"]

    @property
    def first_replica(self):
        """The index of this machine's first replica, counted across all machines."""
        return 0 if self.cluster is None else self.cluster.index * len(self.devices)

    def run(self, function, *args):
        """Calls a function on every replica. Arguments and results may have a separate value for each replica."""
        return function(*args) if self.strategy is None else self.strategy.run(function, args=args)

    def all_reduce(self, values):
        """Sums over replicas in one collective operation per dtype (NCCL between GPUs); must be called in a graph.

        Args:
            values: any structure of tensors with one value per replica, as returned by `run`.

        Returns:
            The same structure of sums, each of which has a copy on every replica's device.
        """
        if self.strategy is None:
            return values
        flat, places = tf.nest.flatten(values), collections.defaultdict(list)
        for place, value in enumerate(flat):  # a collective operation concatenates tensors of one dtype
            places[self.first(value).dtype].append(place)
        for group in places.values():
            sums = self.strategy.extended.batch_reduce_to("SUM", [(flat[place],) * 2 for place in group])
            for place, value in zip(group, sums, strict=True):
                flat[place] = value
        return tf.nest.pack_sequence_as(values, flat)

    def first(self, value):
        """Returns the value of a per-replica result on this machine's first replica."""
        return value if self.strategy is None else self.strategy.experimental_local_results(value)[0]

    def in_turn(self, values):
        """Returns the values of this machine's replicas, in order, from a list that `run` returned."""
        if self.strategy is None:
            return values
        local_results = self.strategy.experimental_local_results
        count = len(self.devices)
        return [tf.nest.map_structure(lambda v, i=i: local_results(v)[i], one) for i in range(count) for one in values]

    def sum(self, value):
        """Returns the sum of a scalar tensor over the replicas of all machines; requires several replicas."""
        return self.strategy.reduce("SUM", self.strategy.run(tf.identity, args=(value,)), axis=None)

    def check_same(self, value, part):
        """Waits for all machines, and raises `UserError` on all machines if a JSON value is not the same everywhere.

        If the values are dicts with the same keys, the message names the keys whose values differ.
        """
        if self.cluster is None:
            return
        names, differing = sorted(value) if isinstance(value, dict) else [], []
        (is_same,) = self._have_same([names or value])
        if is_same:  # otherwise the machines have different numbers of values, which TensorFlow cannot gather
            are_same = self._have_same([value[name] for name in names])
            differing = [name for name, same in zip(names, are_same, strict=True) if not same]
        if not is_same or differing:
            which = f" ({', '.join(differing)})" if differing else ""
            raise UserError(
                f"TF_CONFIG: the machines have different {part}{which}. Expected the same command, files and version "
                "of t2t_lite on all machines."
            )

    def _have_same(self, values):
        """Waits for all machines; returns a list of bool, whether each JSON value is the same on all machines."""
        numbers = [hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()[:7] for value in values]
        numbers = tf.constant([[int.from_bytes(number) for number in numbers]], tf.int64)
        if not numbers.shape[1]:
            return []

        @tf.function(autograph=False)
        def of_all():
            return self.strategy.gather(self.strategy.run(tf.identity, args=(numbers,)), axis=0)

        with self.naming_lost_worker():
            digests = of_all().numpy()
        return (digests == digests[0]).all(axis=0).tolist()

    @contextlib.contextmanager
    def naming_lost_worker(self):
        """Context manager that converts TensorFlow's errors to a `Failure` that names the lost machine."""
        try:
            yield
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError, tf.errors.InternalError,
                tf.errors.DeadlineExceededError) as error:  # fmt: skip
            if self.cluster is None:
                raise
            lost = lost_worker(str(error), self.cluster)
            raise Failure(
                f"{lost or 'another worker'} is gone; this is worker {self.cluster.index}. Start the same command on "
                "all machines again to continue from the last checkpoint."
            ) from error

    def scope(self):
        """Returns the context manager in which the variables of a model must be created."""
        return self.strategy.scope() if self.strategy else contextlib.nullcontext()


def set_threads(inter_op=0, intra_op=0):
    """Sets the numbers of TensorFlow's threads; must be called before TensorFlow is initialized.

    Args:
        inter_op: int, the number of operations that run in parallel; 0 leaves the choice to TensorFlow.
        intra_op: int, the number of threads per operation; 0 leaves the choice to TensorFlow.
    """
    for name, count in (("inter", inter_op), ("intra", intra_op)):
        if count:
            getattr(tf.config.threading, f"set_{name}_op_parallelism_threads")(count)


def choose_replicas(worker_gpu=1, logical_cpus=0):
    """Chooses the devices of a run, on this machine or on all machines of TF_CONFIG.

    Args:
        worker_gpu: int, the number of GPUs per machine, with one replica each. If no GPU is visible, 1 means the CPU,
            and the description says so.
        logical_cpus: int, the number of CPU replicas to use instead of GPUs; 0 to use GPUs.

    Returns:
        Replicas.

    Raises:
        UserError: if there are fewer GPUs than `worker_gpu`, or TF_CONFIG is invalid.
    """
    cluster = read_cluster()
    if cluster and logical_cpus > 1:
        raise UserError(
            f"--logical_cpus={logical_cpus}: each machine in TF_CONFIG has only one CPU replica. Remove the flag, or "
            "unset TF_CONFIG."
        )
    if not cluster:
        devices, description = choose_devices(worker_gpu, logical_cpus)
        strategy = _MirroredStrategy(devices) if len(devices) > 1 else None
        return Replicas(strategy, max(len(devices), 1), description)
    return _over_workers(cluster, [] if logical_cpus else _visible_gpus(worker_gpu)[:worker_gpu])


def choose_devices(worker_gpu=1, logical_cpus=0):
    """Chooses devices on this machine; returns (names, description).

    Args:
        worker_gpu, logical_cpus: see `choose_replicas`.

    Returns:
        (names, description). The names are a list, which is empty for the CPU. The description is a line for the log
        that names the devices and says why no more devices are used.

    Raises:
        UserError: if there are fewer GPUs than `worker_gpu`.
    """
    if logical_cpus:
        hide_gpus()
        devices = _logical_cpus(logical_cpus)
        note = f"{logical_cpus} logical CPU replicas" if logical_cpus > 1 else "1 CPU"
        return devices, f"devices: {note} (--logical_cpus); GPUs are not used"
    gpus = _visible_gpus(worker_gpu)
    if worker_gpu == 0:
        hide_gpus()
        return [], f"devices: CPU (--worker_gpu=0; {counted(len(gpus), 'GPU')} visible)"
    if not gpus:
        built = "" if tf.test.is_built_with_cuda() else ", and this TensorFlow is built without CUDA"
        return [], f"devices: CPU: no GPU is visible{built} (for GPUs: pip install 't2t_lite[cuda]', then nvidia-smi)"
    names = [gpu.name.removeprefix("/physical_device:") for gpu in gpus[:worker_gpu]]
    unused = f"; {len(gpus) - worker_gpu} more visible (see --worker_gpu)" if len(gpus) > worker_gpu else ""
    return [f"/{name}" for name in names], f"devices: {', '.join(names)}{unused}"


def _visible_gpus(worker_gpu):
    gpus = gpus_as_needed()
    if worker_gpu > max(len(gpus), 1):  # the default of 1 falls back to the CPU
        there = f"{counted(len(gpus), 'GPU')} {'is' if len(gpus) == 1 else 'are'} visible"
        instead = f"at most {len(gpus)}" if gpus else f"1, which falls back to the CPU, or --logical_cpus={worker_gpu}"
        raise UserError(f"--worker_gpu={worker_gpu}: {there}. Expected {instead}.")
    return gpus


def gpus_as_needed():
    """Returns the GPUs, a list of `tf.config.PhysicalDevice`, and makes TensorFlow allocate their memory as needed."""
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        with contextlib.suppress(RuntimeError, ValueError):  # raised if GPUs are initialized or split
            tf.config.experimental.set_memory_growth(gpu, True)
    return gpus


def set_xla_flags():
    """Adds flags for compiling GPU steps to XLA_FLAGS; must be called before XLA compiles a function."""
    flags = os.environ.get("XLA_FLAGS", "")
    ours = [f"--{name}={value}" for name, value in _XLA_FLAGS.items() if name not in flags]
    os.environ["XLA_FLAGS"] = " ".join([flags, *ours]).strip()


def hide_gpus(except_for=()):
    """Hides all GPUs, or all but some `tf.config.PhysicalDevice`s; without GPUs, this process computes on the CPU."""
    with contextlib.suppress(RuntimeError):  # raised after TensorFlow is initialized, when devices are fixed
        tf.config.set_visible_devices(list(except_for), "GPU")


class _MirroredStrategy(tf.distribute.MirroredStrategy):
    """A MirroredStrategy whose collective operations have unique keys.

    TensorFlow assigns the same keys to the groups of all strategies, and remembers the devices of a key until the
    process ends. Without unique keys, a run on two replicas would make a later run on eight replicas fail.
    """

    _groups = itertools.count(step=100)  # a strategy has far fewer than 100 groups

    def __init__(self, devices):
        self._collective_key_base = next(self._groups)
        super().__init__(devices)


def _over_workers(cluster, gpus):
    """Waits for the other machines and creates replicas across all machines."""
    hide_gpus(except_for=gpus)
    wait_for_names(cluster, SECONDS_FOR_NAMES)
    others = ", ".join(cluster.workers)
    LOGGER.info(
        f"worker {cluster.index} of {len(cluster.workers)}: waiting at most {SECONDS_FOR_MACHINES} s for {others}"
    )
    meet(cluster, SECONDS_FOR_MACHINES)
    try:
        with ended_after(min(SECONDS_TO_JOIN, SECONDS_FOR_MACHINES), f"one of {others}"):
            strategy = tf.distribute.MultiWorkerMirroredStrategy()
    except (tf.errors.OpError, RuntimeError) as error:
        reason = first_line(error)
        raise UserError(
            f"TF_CONFIG: the cluster did not start ({reason}). Expected a free port on this machine, and t2t-trainer "
            "started on all machines before anything else uses TensorFlow."
        ) from error
    count = strategy.num_replicas_in_sync
    devices_each = f"{counted(count // len(cluster.workers), 'GPU')} each" if gpus else "the CPU of each"
    description = f"devices: {counted(len(cluster.workers), 'machine')}, {devices_each}; this is worker {cluster.index}"
    return Replicas(strategy, count, description, cluster)


def _logical_cpus(count):
    """Splits the CPU into `count` logical devices; returns their names."""
    if count > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        # The number cannot be changed after TensorFlow is initialized; the check below reports this.
        with contextlib.suppress(RuntimeError):
            if len(tf.config.get_logical_device_configuration(cpu) or ()) < count:
                tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    available = len(tf.config.list_logical_devices("CPU"))
    if available < count:
        raise UserError(
            f"--logical_cpus={count}: TensorFlow was started with {available} logical CPUs in this process. "
            "Set the number before the first tensor is created."
        )
    return [f"/CPU:{i}" for i in range(count)]


def update_locally(optimizer, strategy):
    """Makes a built optimizer apply summed gradients on each replica under a `tf.distribute` strategy.

    Keras would sum the gradients again, which fails if they have one value per replica. It would also compute the
    moving averages of the weights on the first replica and send them to the other replicas. Instead, `apply` takes
    summed gradients, with a copy on each replica, and each replica averages its own weights.

    Args:
        optimizer: a built keras.optimizers.Optimizer.
        strategy: the tf.distribute.Strategy under which the variables were created.
    """
    optimizer._all_reduce_sum_gradients = list

    def average(variables):
        momentum = tf.where(tf.equal(optimizer.iterations.value, 0), 0.0, optimizer.ema_momentum)

        def mix(average, variable):
            share = tf.cast(momentum, average.dtype)
            average.assign(share * average + (1.0 - share) * variable)

        pairs = zip(variables, optimizer._model_variables_moving_average, strict=True)
        for variable, moving in pairs:
            strategy.extended.update(moving.value, mix, args=(variable.value,), group=False)

    if optimizer.use_ema:
        optimizer._update_model_variables_moving_average = average
