"""Counters and histograms as Prometheus reads them."""

import pytest

from t2t_lite.serving.metrics import Histogram


@pytest.mark.parametrize("number", [1, 1.5, 2, 3, 4, 5])
def test_a_bucket_counts_what_is_at_most_its_limit(number):
    """So says Prometheus: `le` is "less than or equal"."""
    histogram = Histogram("h", first=1, growth=2, count=3)
    histogram.add(number=number)
    found = {line.split('"')[1]: int(line.split()[-1]) for line in histogram.lines() if "_bucket" in line}
    assert found == {bound: int(number <= float(bound)) for bound in ("1", "2", "4", "+Inf")}
