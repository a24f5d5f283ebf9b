"""What several replicas cost: the bytes that a step all-reduces, and the time and scaling that follow from them.

The formulas are in docs/training.md, "What eight GPUs would cost".
"""

import dataclasses

# Of NVIDIA's A100 data sheet: TensorFlow multiplies float32 matrices as TF32 there, 16-bit ones at twice the rate; a
# link's rate is one of its two directions.
TFLOPS = {"float32": 156.0, "mixed": 312.0}
LINKS = {"NVLink 3": 300.0, "PCIe 4.0 x16": 32.0}
# The share of that which training reaches: the paper's base model took 0.4 s per step on P100s (section 5.2), which is
# 0.31 of the 9.5e12 operations per second that the paper reckons with; its big model took 1.0 s, 0.42.
UTILIZATION = 0.3
SCALARS = 3  # summed with the gradients: the objective, the loss in nats, and whether a machine stops


@dataclasses.dataclass(frozen=True)
class Rates:
    """The hardware that an estimate is for.

    Attributes:
        tflops: float, peak of matrix products of one replica, 10^12 operations per second; None: `TFLOPS` of the dtype.
        utilization: float, the share of the peak that training reaches.
        link: float, GB per second that a replica sends while it receives as many; None: each of `LINKS`.
        memory: float, GB of one replica; None: not asked about.
    """

    tflops: float | None = None
    utilization: float = UTILIZATION
    link: float | None = None
    memory: float | None = None

    def peak(self, dtype_policy):
        """Returns the peak in TFLOP/s under a policy such as "float32" or "mixed_bfloat16"."""
        return self.tflops or TFLOPS["float32" if dtype_policy == "float32" else "mixed"]

    def links(self):
        """Returns {name: GB per second}."""
        return LINKS if self.link is None else {"link": self.link}


def all_reduced_bytes(parameters):
    """Returns the size of the one buffer that a step sums over all replicas: float32 under every dtype policy."""
    return 4 * (parameters + SCALARS)


def sent_bytes(size, replicas):
    """Returns the bytes that each replica sends, and receives, while a ring sums `size` bytes over all of them.

    Every replica passes on a piece of 1/N in each of 2 (N - 1) turns: N - 1 to sum it, N - 1 to hand out the sum
    (Patarasuk and Yuan 2009).
    """
    return 2 * (replicas - 1) / replicas * size


@dataclasses.dataclass(frozen=True)
class StepTime:
    """An estimate of one step; nothing is sent before the last gradient is there, so that the two times add up.

    Attributes:
        compute: float, seconds of the forward and backward passes on one replica.
        all_reduce: float, seconds.
    """

    compute: float
    all_reduce: float

    @property
    def seconds(self):
        """Of the whole step."""
        return self.compute + self.all_reduce

    @property
    def efficiency(self):
        """Tokens per second, over those of as many replicas that exchange nothing."""
        return self.compute / self.seconds


def step_time(flops, size, replicas, rate, link):
    """Estimates one step.

    Args:
        flops: float, operations of one replica's batches.
        size: int, bytes, see `all_reduced_bytes`.
        replicas: int.
        rate: float, operations per second that training reaches.
        link: float, bytes per second, each way.

    Returns:
        StepTime.
    """
    return StepTime(flops / rate, sent_bytes(size, replicas) / link)


def largest_batch_size(memory, batch_size, limit):
    """Returns the largest batch size that a limit allows; 0 where not even one token fits.

    Args:
        memory: dict of bytes for `batch_size`, see `training_memory`: "activations" and "logits" grow with it.
        batch_size: int, tokens.
        limit: float, bytes.
    """
    growing = memory["activations"] + memory["logits"]
    return max(0, int((limit - sum(memory.values()) + growing) * batch_size // growing))
