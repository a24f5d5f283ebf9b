"""A benchmark from end to end, in this process: sizes of --quick."""

import json

import pytest

from benchmarks import encoder
from benchmarks.harness import command


@pytest.mark.long  # starts two processes that import TensorFlow
def test_a_quick_benchmark_measures(capsys):
    assert command.main(encoder, ["--quick", "--sides=ours", "--rounds=1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    figures = {(m["case"].split(",")[0], m["figure"]): m["sides"]["ours"]["median"] for m in found["measurements"]}
    for work in ("training step", "features"):
        for name in ("tokens_per_second", "tokens_per_cpu_second", "peak_mb", "ready_seconds"):
            assert figures[work, name] > 0
