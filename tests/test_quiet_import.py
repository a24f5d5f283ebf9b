"""TensorFlow as commands import it."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from t2t_lite.bin import _app
def run(flags):
    print("keras" in sys.modules, *sorted({"IPython", "matplotlib", "sklearn"} & set(sys.modules)))
    import tensorflow as tf, tensorflow_text, keras, matplotlib
    print(tf.constant(1).numpy(), keras.Sequential.__name__, matplotlib.get_data_path() != "")
sys.exit(_app.main('t2t-x', lambda flags: None, run, []))
"""


@pytest.mark.slow
def test_it_starts_silently_and_what_keras_does_not_need_is_imported_by_those_who_do():
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n1 Sequential True\n", "")
