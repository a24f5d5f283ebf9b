"""t2t-make-tf-configs prints a line per machine that the trainer reads."""

# Nearest tests of: bin/t2t_make_tf_configs.py

import json

import pytest

from t2t_lite.bin import t2t_make_tf_configs
from t2t_lite.training.cluster import read_cluster


@pytest.mark.parametrize("name", ["workers", "masters"])  # the second one is tensor2tensor's
def test_one_line_a_worker(name, capsys):
    assert t2t_make_tf_configs.main([f"--{name}=a:2222,b:2222,c:1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[0] + line[-1] for line in lines] == ["''"] * 3, "quoted for the shell"
    clusters = [read_cluster(line.strip("'")) for line in lines]
    assert [cluster.index for cluster in clusters] == [0, 1, 2]
    assert {cluster.workers for cluster in clusters} == {("a:2222", "b:2222", "c:1")}
    assert json.loads(lines[0].strip("'"))["task"] == {"type": "worker", "index": 0}


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--workers=a:1", "--ps=b:1"], "--ps=b:1: parameter servers"),
        (["--workers=a:1", "--masters=b:1"], "another name"),
        (["--workers=a:1,b"], "error: --workers: 'b' is not host:port, with a port from 1 to 65535.\n"),
        (["--masters=a:1,a:1"], "error: --masters: an address occurs twice in a:1, a:1.\n"),
    ],
)
def test_mistakes(flags, words, capsys):
    assert t2t_make_tf_configs.main(flags) == 2
    assert words in capsys.readouterr().err
