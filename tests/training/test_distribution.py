"""Which devices a run uses, and what it says of them. (The machines that run these tests have no GPU.)"""

import contextlib
import os
import re
import types

import pytest
import tensorflow as tf

from t2t_lite.errors import Failure, UserError
from t2t_lite.training.cluster import Cluster
from t2t_lite.training.distribution import (
    Replicas,
    choose_devices,
    choose_replicas,
    gpus_as_needed,
    set_threads,
    set_xla_flags,
)


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


def gpus(monkeypatch, count):
    """Makes so many GPUs visible, whose settings do not matter."""
    names = [types.SimpleNamespace(name=f"/physical_device:GPU:{i}") for i in range(count)]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: names if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda *given: None)
    hidden = []
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda *given: hidden.append(given))
    return hidden


@pytest.mark.parametrize(
    ("count", "worker_gpu", "devices", "words"),
    [
        (0, 1, [], "devices: CPU: no GPU is visible"),
        (3, 0, [], r"devices: CPU \(--worker_gpu=0; 3 GPUs visible\)"),
        (1, 1, ["/GPU:0"], "devices: GPU:0$"),
        (3, 2, ["/GPU:0", "/GPU:1"], r"devices: GPU:0, GPU:1; 1 more visible \(see --worker_gpu\)"),
    ],
)
def test_the_devices_of_a_machine(monkeypatch, count, worker_gpu, devices, words):
    hidden = gpus(monkeypatch, count)
    found, said = choose_devices(worker_gpu)
    assert found == devices and re.match(words, said)
    assert hidden == ([([], "GPU")] if worker_gpu == 0 else [])


REFUSED = {  # {what: (GPUs, TF_CONFIG, arguments, what is said)}
    "no GPU": (0, "", {"worker_gpu": 2}, "--worker_gpu=2: 0 GPUs are visible. .* or --logical_cpus=2"),
    "too few GPUs": (1, "", {"worker_gpu": 2}, "--worker_gpu=2: 1 GPU is visible. Expected at most 1"),
    "CPUs that TensorFlow lacks": (None, "", {"logical_cpus": 64}, "--logical_cpus=64: .* with 8"),
    "a cluster that is none": (0, "{", {}, "TF_CONFIG cannot be read"),
    "CPUs of a cluster": (0, '{"cluster": {"worker": ["a:1", "b:2"]}}', {"logical_cpus": 2}, "--logical_cpus=2: "),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_chosen(monkeypatch, what):
    count, cluster, arguments, words = REFUSED[what]
    if count is not None:
        gpus(monkeypatch, count)
    monkeypatch.setenv("TF_CONFIG", cluster)
    with pytest.raises(UserError, match=words):
        choose_replicas(**arguments)


CLUSTER = Cluster(("a:1", "b:2", "c:3"), 2)


def test_places_among_machines():
    alone, third = Replicas(None, 1, ""), Replicas(None, 3, "", CLUSTER)
    assert (alone.is_chief, alone.first_replica, alone.devices) == (True, 0, ["CPU:0"])
    assert (third.is_chief, third.first_replica) == (False, 2)
    assert alone.run(lambda a, b: a - b, 7, 4) == 3 and alone.first(5) == alone.all_reduce(5) == 5
    assert alone.in_turn([1, 2]) == [1, 2]
    replicas = choose_replicas(0, 2)
    assert Replicas(replicas.strategy, 6, "", CLUSTER).first_replica == 4
    ids = replicas.run(lambda: [tf.distribute.get_replica_context().replica_id_in_sync_group + i for i in (10, 20)])
    assert [int(each) for each in replicas.in_turn(ids)] == [10, 20, 11, 21]


@pytest.mark.parametrize(
    ("value", "others", "words"),
    [
        ({"b": 1, "a": 2}, {"b": 1, "a": 2}, None),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}, None),
        ({"b": 1, "a": 2}, {"b": 1, "a": 2, "c": 3}, r"different settings\. "),
        ({"b": 1, "a": 2}, {"b": 1, "a": 3}, r"different settings \(a\)\. "),
        ({"b": 1, "a": 2}, {"b": 1, "c": 2}, r"different settings\. "),
        ([3, "x"], [3, "y"], r"different settings\. "),
        (7, 7, None),
    ],
)
def test_machines_are_compared_by_what_each_has(monkeypatch, value, others, words):
    """The other ones have `others`. The numbers of values that are compared at once must be the same."""
    names = sorted(others) if isinstance(others, dict) else []
    theirs, asked = [[names or others], [others[name] for name in names]], []

    def have_same(self, values):
        asked.append(values)
        return [one == other for one, other in zip(values, theirs[len(asked) - 1], strict=True)]

    monkeypatch.setattr(Replicas, "_have_same", have_same)
    Replicas(None, 1, "").check_same(value, "settings")
    assert not asked, "one machine has nobody to ask"
    with pytest.raises(UserError, match=f"TF_CONFIG: .*{words}") if words else contextlib.nullcontext():
        Replicas(None, 3, "", CLUSTER).check_same(value, "settings")


@pytest.mark.parametrize("name", ["Unavailable", "Aborted", "Cancelled", "Internal", "DeadlineExceeded"])
def test_a_machine_that_is_gone_is_named(name):
    kind, alone, third = getattr(tf.errors, f"{name}Error"), Replicas(None, 1, ""), Replicas(None, 3, "", CLUSTER)
    for text, said in (("/job:worker/replica:0/task:1 is down", "b:2"), ("no name", "another worker")):
        with pytest.raises(Failure, match=rf"^{said} is gone; this is worker 2\. "), third.naming_lost_worker():
            raise kind(None, None, text)
    with pytest.raises(kind), alone.naming_lost_worker():
        raise kind(None, None, "no name")


def test_threads_are_set_as_many_as_asked_for(monkeypatch):
    asked = []
    for name in ("inter", "intra"):
        patched = f"set_{name}_op_parallelism_threads"
        monkeypatch.setattr(tf.config.threading, patched, lambda count, name=name: asked.append((name, count)))
    set_threads(3, 5), set_threads(0, 2), set_threads()
    assert asked == [("inter", 3), ("intra", 5), ("intra", 2)]


def test_xla_flags_of_the_user_go_first(monkeypatch):
    buffers, products = "--xla_gpu_enable_command_buffer=", "--xla_gpu_enable_triton_gemm=false"
    for before, after in {
        "": f"{buffers} {products}",
        "--xla_dump_to=x": f"--xla_dump_to=x {buffers} {products}",
        f"{buffers}FUSION": f"{buffers}FUSION {products}",
        "--xla_gpu_enable_triton_gemm=true": f"--xla_gpu_enable_triton_gemm=true {buffers}",
    }.items():
        monkeypatch.setenv("XLA_FLAGS", before)
        set_xla_flags()
        assert os.environ["XLA_FLAGS"] == after


@pytest.mark.parametrize("error", [RuntimeError("initialized"), ValueError("virtual devices are configured")])
def test_a_gpu_keeps_its_setting_where_it_is_in_use_or_cut_into_several(monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", refuse)
    assert gpus_as_needed() == ["GPU:0"]
