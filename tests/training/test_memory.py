"""What is said when a step does not fit into memory."""

import pytest
import tensorflow as tf

from t2t_lite.errors import Failure
from t2t_lite.settings.config import HParams
from t2t_lite.training.loop import explaining_out_of_memory


def no_room():
    tf.zeros((2**30, 2**24))  # 72 PB; TensorFlow tries for ten seconds


def no_room_at_once():
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")


def failure(hparams, *shapes, cause=no_room_at_once):
    batches = [
        {"inputs": tf.ones((rows, s), tf.int32), "targets": tf.ones((rows, t), tf.int32)} for rows, s, t in shapes
    ]
    with pytest.raises(Failure) as caught, explaining_out_of_memory(1200, batches, hparams):
        cause()
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.long
def test_the_largest_batch_and_what_to_lower_are_named():
    said = failure(HParams(), (3, 4, 5), (10, 90, 100), (7, 8, 9), cause=no_room)
    assert "step 1,200" in said and "inputs 10 x 90 and targets 10 x 100" in said and "1,900 tokens" in said
    for setting in ("batch_size=4096", "max_length=256", "set recompute_grad=True", "set dtype_policy=mixed_bfloat16"):
        assert setting in said
    assert "OOM" in said  # TensorFlow's own words


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_what_is_set_or_no_help_is_not_recommended(policy):
    said = failure(HParams().parse(f"recompute_grad=True,dtype_policy={policy}"), (10, 9, 9))
    assert "set " not in said and "max_length" not in said


def test_other_errors_pass():
    with pytest.raises(tf.errors.InvalidArgumentError), explaining_out_of_memory(1, [], HParams()):
        tf.linalg.matmul(tf.ones((2, 3)), tf.ones((2, 3)))
