import keras
import numpy as np
import pytest

from t2t_lite.layers.checks import shape_of
from tests.layers.backend import BACKEND


def test_what_is_known_is_of_ints():
    x = keras.ops.ones((2, 0, 3))
    for shape in (shape_of(x), shape_of(np.ones((2, 0, 3)))):
        assert shape == (2, 0, 3) and all(type(size) is int for size in shape)
    assert shape_of(keras.Input((None, 3))) == (None, None, 3)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="other backends know all sizes")
def test_two_operations_of_a_graph_are_enough_for_all_that_is_not_known():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None, 0, None, 3])], autograph=False)
    def function(x):
        first, *known, last, size = shape_of(x)
        assert (known, size) == ([0], 3)
        return first, last

    assert [int(size) for size in function(tf.zeros((4, 0, 5, 3)))] == [4, 5]
    operations = [operation.type for operation in function.get_concrete_function().graph.get_operations()]
    assert operations[:3] == ["Placeholder", "Shape", "Unpack"] and {*operations[3:]} == {"Identity"}
