"""TensorFlow as commands import it."""
# Nearest tests of: t2t_lite/process/lazy.py

import os

import pytest

from tests.processes import python

PROGRAM = """
import concurrent.futures, sys
from t2t_lite.bin import _app
def run(flags):
    import tensorflow as tf
    import tensorflow  # once more, which would make Python's own LazyLoader load it
    print("tensorflow.python" in sys.modules, "keras" in sys.modules)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        print(*threads.map(lambda number: tf.constant(number).numpy(), range(2)))  # none sees half of it
    print("keras" in sys.modules, type(tf), *sorted({"IPython", "matplotlib", "sklearn"} & set(sys.modules)))
    import tensorflow_text, keras, matplotlib
    print(tf.constant(1).numpy(), keras.Sequential.__name__, matplotlib.get_data_path() != "")
sys.exit(_app.main('t2t-x', lambda flags: None, run, []))
"""


@pytest.mark.slow
def test_it_starts_silently_and_what_keras_does_not_need_is_imported_by_those_who_do():
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = python(PROGRAM, env=environment)
    expected = ["False False", "0 1", "True <class 'module'>", "1 Sequential True"]
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, expected, "")


@pytest.mark.slow
@pytest.mark.parametrize("first", ["keras", "tensorflow_text", "tensorflow.python.framework.ops"])
def test_what_imports_tensorflow_does_it_silently(first):
    program = (
        PROGRAM.partition("    import")[0]
        + f"""    import {first}, tensorflow as tf
    print(tf.constant(1).numpy(), *sorted({{"IPython", "matplotlib", "sklearn"}} & set(sys.modules)))
sys.exit(_app.main('t2t-x', lambda flags: None, run, []))
"""
    )
    done = python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
