"""What all tests share: a quiet TensorFlow on the CPU, with eight logical devices for the tests of distribution."""

import os
import sys

# Read when TensorFlow is imported; subprocesses inherit them.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

LOGICAL_CPUS = 8


def pytest_collection_finish():
    """Splits the CPU into logical devices, which is only possible before TensorFlow runs its first operation.

    Where no collected test module has imported TensorFlow it is not imported here either: that takes ten seconds.
    """
    if "tensorflow" in sys.modules:
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * LOGICAL_CPUS)
