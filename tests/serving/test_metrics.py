"""Counters and histograms as Prometheus reads them."""

import pytest

from t2t_lite.serving.metrics import Histogram, ServerMetrics


@pytest.mark.parametrize("number", [1, 1.5, 2, 3, 4, 5])
def test_a_bucket_counts_what_is_at_most_its_limit(number):
    """So says Prometheus: `le` is "less than or equal"."""
    histogram = Histogram("h", first=1, growth=2, count=3)
    histogram.add(number=number)
    found = {line.split('"')[1]: int(line.split()[-1]) for line in histogram.lines() if "_bucket" in line}
    assert found == {bound: int(number <= float(bound)) for bound in ("1", "2", "4", "+Inf")}


def test_a_sum_has_all_its_digits_and_a_limit_counts_what_it_says():
    histogram = Histogram("h", first=10, growth=1.8, count=33)
    for _ in range(3):
        histogram.add(number=123_456_789.25)
    histogram.add(number=0.5)
    histogram.add(number=188.957)  # 10 * 1.8^5 is 188.9568
    found = dict(line.rsplit(" ", 1) for line in histogram.lines())
    assert float(found["h_sum{}"]) == 3 * 123_456_789.25 + 0.5 + 188.957
    assert found['h_bucket{le="188.957"}'] == "2"


def test_times_are_in_microseconds_and_a_batch_counts_its_rows():
    made = ServerMetrics()
    made.add_batch("m", 3, waits=[0.5, 0.25], seconds=0.125)
    lines = made.page().splitlines()
    for line in (
        'batching_session:queuing_latency_sum{thread_pool_name="batch_threads"} 750000',
        'batching_session:queuing_latency_count{thread_pool_name="batch_threads"} 2',
        'runtime_latency_sum{model_name="m",API="Predict",runtime="TF2"} 125000',
        'batching_session:processed_batch_size_sum{model_name="m"} 3',
    ):
        assert f":tensorflow:serving:{line}" in lines
