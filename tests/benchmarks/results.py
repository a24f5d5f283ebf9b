"""A result of a benchmark."""

from benchmarks.harness import record


def result(**changes):
    """Returns a Result with one measurement, some of whose fields are changed."""
    fields = {
        "name": "decoding",
        "title": "Beam search",
        "command": "python -m benchmarks.decoding",
        "commit": "abc1234",
        "date": "2026-01-02",
        "machine": {"cpu": "Intel(R) Xeon(R) Processor @ 2.50GHz", "cores": 2, "memory_gb": 24, "load": 0.1},
        "labels": {"ours": "t2t_lite", "peer": "Peer"},
    }
    found = record.Result(**{**fields, **changes})
    found.add("batch 8", "tokens_per_second", {"ours": [100, 110, 240], "peer": [50, 100, 60]})
    return found
