"""What all tests share: a quiet backend on the CPU; of TensorFlow, eight logical devices for tests of distribution."""

import os
import sys

# Read when TensorFlow is imported; subprocesses inherit them.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # compiles much here, and computes little

LOGICAL_CPUS = 8


def pytest_collection_finish():
    """Splits the CPU into logical devices, which is only possible before TensorFlow runs its first operation.

    Where no collected test module has imported TensorFlow it is not imported here either: that takes ten seconds.
    """
    if "tensorflow" in sys.modules and os.environ["KERAS_BACKEND"] == "tensorflow":
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * LOGICAL_CPUS)


def pytest_collection_modifyitems(items):
    """The dearest folders first, so that two processes end together."""
    items.sort(key=lambda item: not item.nodeid.startswith(("tests/training/", "tests/integration/")))
