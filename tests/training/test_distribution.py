"""Which devices a run uses, and what it says of them. (The machines that run these tests have no GPU.)"""

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.training.distribution import choose_replicas, gpus_as_needed


def test_without_a_gpu_the_cpu_is_used_and_the_reason_given():
    replicas = choose_replicas(worker_gpu=1)
    assert (replicas.strategy, replicas.count) == (None, 1)
    assert "no GPU is visible" in replicas.description and "t2t_lite[cuda]" in replicas.description


def test_tensors_of_several_dtypes_are_summed_over_the_replicas():
    """As gradients of weights in float64 or bfloat16 are, beside sums in float32."""
    replicas = choose_replicas(0, 2)

    def on_replica():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group + 1
        return [tf.cast([number, 2 * number], dtype) for dtype in ("float32", "bfloat16", "float32", "float64")]

    sums = tf.function(lambda: replicas.all_reduce(replicas.run(on_replica)), autograph=False)()
    assert [each.dtype for each in map(replicas.first, sums)] == ["float32", "bfloat16", "float32", "float64"]
    for each in sums:
        for of_replica in replicas.strategy.experimental_local_results(each):
            assert of_replica.numpy().tolist() == [3, 6]


def test_logical_cpus_are_replicas():
    replicas = choose_replicas(worker_gpu=1, logical_cpus=8)
    assert replicas.count == replicas.strategy.num_replicas_in_sync == 8


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            {"worker_gpu": 2},
            "--worker_gpu=2: 0 GPUs are visible. Expected 1, which falls back to the CPU, or --logical_cpus=2",
        ),
        ({"worker_gpu": -1}, "worker_gpu=-1: expected a whole number from 0"),
        ({"logical_cpus": 65}, "logical_cpus=65: expected a whole number from 0 to 64"),
        ({"logical_cpus": 64}, "--logical_cpus=64: TensorFlow was started with 8"),
    ],
)
def test_more_than_there_are(arguments, words):
    with pytest.raises(UserError, match=words):
        choose_replicas(**arguments)


@pytest.mark.parametrize("error", [RuntimeError("initialized"), ValueError("virtual devices are configured")])
def test_a_gpu_keeps_its_setting_where_it_is_in_use_or_cut_into_several(monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", refuse)
    assert gpus_as_needed() == ["GPU:0"]


def test_several_machines(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(UserError, match="TF_CONFIG: cannot be read"):
        choose_replicas()
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:2"]}}')
    with pytest.raises(UserError, match="--logical_cpus=2: only without TF_CONFIG"):
        choose_replicas(logical_cpus=2)
