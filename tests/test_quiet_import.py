"""TensorFlow as commands import it."""

import subprocess
import sys

PROGRAM = """
import sys
from t2t_lite.quiet_import import import_tensorflow
import_tensorflow()
print("keras" in sys.modules, *sorted({"IPython", "matplotlib", "sklearn"} & set(sys.modules)))
import keras, matplotlib.pyplot, sklearn.metrics
print(keras.Sequential.__name__, sklearn.metrics.f1_score([0, 1], [0, 1]))
"""


def test_what_keras_does_not_need_is_imported_by_those_who_do():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("True\nSequential 1.0\n", "")
