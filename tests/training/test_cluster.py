import json

import pytest

from t2t_lite.errors import UserError
from t2t_lite.training.cluster import Cluster, lost_worker, read_cluster

BOTH = {"worker": ["a:1", "b:2"]}


def config(cluster, **task):
    return json.dumps({"cluster": cluster, "task": task})


def test_every_worker_knows_its_place():
    for index in (0, 1):
        cluster = read_cluster(config(BOTH, type="worker", index=index))
        assert (cluster.workers, cluster.index, cluster.is_chief) == (("a:1", "b:2"), index, index == 0)
        assert read_cluster(cluster.tf_config()) == cluster


def test_a_chief_is_the_first_worker():
    hosts = {"chief": ["a:1"], "worker": ["b:2", "c:3"]}
    assert read_cluster(config(hosts, type="chief", index=0)) == Cluster(("a:1", "b:2", "c:3"), 0)
    assert read_cluster(config(hosts, type="worker", index=1)) == Cluster(("a:1", "b:2", "c:3"), 2)


@pytest.mark.parametrize("text", ["", "{}", '{"task": {"type": "worker", "index": 0}}', config({"worker": ["a:1"]})])
def test_one_machine_is_no_cluster(text):
    assert read_cluster(text) is None


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "cannot be read"),
        ("[1]", "cannot be read"),
        (config({"worker": 3}), "cannot be read"),
        (config(BOTH, type="worker", index=2), "there is no worker 2"),
        (config(BOTH, type="worker", index=-1), "there is no worker -1"),
        (config({**BOTH, "ps": ["c:3"]}, index=0), "has ps: every machine is a worker"),
        (config(BOTH, type="evaluator", index=0), "has evaluator"),
        (config({"worker": ["a:1", "b"]}, index=0), "'b' is not host:port"),
        (config({"worker": ["a:1", "a:1"]}, index=0), "an address comes twice"),
    ],
)
def test_mistakes_are_named(text, words, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UserError, match=words) as error:
        read_cluster()
    assert "t2t-make-tf-configs" in str(error.value)


def test_the_worker_that_an_error_speaks_of():
    cluster = Cluster(("a:1", "b:2", "c:3"), 0)
    message = "/job:worker/replica:0/task:0: Collective ops is aborted by: /job:worker/replica:0/task:2 is down"
    assert lost_worker(message, cluster) == "c:3"
    assert lost_worker("something else", cluster) is None
    frozen = "Collective ops is aborted by: Deadline Exceeded RPC: /tensorflow.CoordinationService/Heartbeat"
    assert lost_worker(frozen, Cluster(("a:1", "b:2", "c:3"), 1)) == "a:1", "the first worker has that service"
    assert lost_worker("something else", Cluster(("a:1", "b:2"), 1)) == "a:1", "there is no other"
