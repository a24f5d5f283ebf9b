"""Counters and histograms as Prometheus reads them."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from t2t_lite.extras.serving.server_metrics import ServerMetrics


def samples(metrics):
    """Returns {(name without the common prefix, frozenset of the values of its labels): number}."""
    families = text_string_to_metric_families(metrics.page())
    return {
        (sample.name.removeprefix(":tensorflow:serving:"), frozenset(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_names_and_types_are_tensorflow_serving_s():
    metrics = ServerMetrics()
    metrics.add_request("m", "OK")
    lines = metrics.page().splitlines()
    assert [line.removeprefix("# TYPE :tensorflow:serving:") for line in lines if line.startswith("# TYPE")] == [
        "request_count counter",
        "request_latency histogram",
        "runtime_latency histogram",
        "batching_session:queuing_latency histogram",
        "batching_session:processed_batch_size histogram",
    ]
    assert ':tensorflow:serving:request_count{model_name="m",status="OK"} 1.0' in lines
    assert "_created" not in "".join(lines) and "_total" not in "".join(lines)


def test_times_are_in_microseconds_and_a_batch_counts_its_rows():
    metrics = ServerMetrics()
    metrics.add_batch("m", 3, waits=[0.5, 0.25], seconds=0.125)
    numbers = samples(metrics)
    assert numbers["batching_session:queuing_latency_sum", frozenset({"batch_threads"})] == 750_000
    assert numbers["batching_session:queuing_latency_count", frozenset({"batch_threads"})] == 2
    assert numbers["runtime_latency_sum", frozenset({"m", "Predict", "TF2"})] == 125_000
    assert numbers["batching_session:processed_batch_size_sum", frozenset({"m"})] == 3
    rows, limits = "batching_session:processed_batch_size_bucket", ("1.0", "2.0", "4.0", "16384.0", "+Inf")
    assert [numbers[rows, frozenset({"m", limit})] for limit in limits] == [0, 0, 1, 1, 1]


def test_limits_are_those_of_tensorflow_serving():
    """Exponential buckets of 10 * 1.8^n microseconds, n < 33, and 2^n rows, n < 15; and an infinite one each."""
    metrics = ServerMetrics()
    metrics.add_batch("m", 1, waits=[1.0], seconds=1.0)
    limits = re.findall(r'queuing_latency_bucket{le="([^"]+)"', metrics.page())
    assert [float(limit) for limit in limits[:-1]] == pytest.approx([10 * 1.8**n for n in range(33)], rel=1e-5)
    rows = re.findall(r'processed_batch_size_bucket{le="([^"]+)"', metrics.page())
    assert [*map(float, rows)] == [*(2**n for n in range(15)), float("inf")] and limits[-1] == "+Inf"


def test_limits_of_times_have_six_digits_and_sums_have_all():
    metrics = ServerMetrics()
    for microseconds in (123_456_789.25, 0.5, 188.9569):  # 10 * 1.8^5 is 188.9568
        metrics.add_latency("m", "predict", microseconds / 1e6)
    numbers, labels = samples(metrics), {"m", "predict", "REST"}
    expected = pytest.approx(123_456_789.25 + 0.5 + 188.9569, rel=1e-14)
    assert numbers["request_latency_sum", frozenset(labels)] == expected
    assert numbers["request_latency_bucket", frozenset(labels | {"188.957"})] == 2
