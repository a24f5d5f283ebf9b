"""Counters and histograms of a server in Prometheus' text format, named as TensorFlow Serving's are."""

import bisect
import threading


class Counter:
    """Numbers that only grow, by label values.

    Args:
        name: str.
        labels: tuple of str, the names of the labels.
    """

    kind = "counter"

    def __init__(self, name, *labels):
        self.name, self._labels, self._cells, self._lock = name, labels, {}, threading.Lock()

    def add(self, *values, number=1):
        """Adds to the number with these label values."""
        with self._lock:
            self._cells[values] = self._cells.get(values, 0) + number

    def lines(self):
        """Yields the lines of the page."""
        yield f"# TYPE {self.name} {self.kind}"
        with self._lock:
            cells = {values: self._snapshot(cell) for values, cell in self._cells.items()}
        for values, cell in cells.items():
            yield from self._of_cell(",".join(map('{}="{}"'.format, self._labels, map(_escaped, values))), cell)

    def _snapshot(self, cell):
        return cell

    def _of_cell(self, labels, cell):
        yield f"{self.name}{{{labels}}} {cell}"


class Histogram(Counter):
    """Distributions, by label values; the buckets' limits are first, first · growth, first · growth² …

    Limits are rounded to six digits, as TensorFlow Serving writes them; sums have all of theirs, because a rounded one
    stands still while it is still growing.
    """

    kind = "histogram"

    def __init__(self, name, *labels, first, growth, count):
        super().__init__(name, *labels)
        self._limits = [float(f"{first * growth**number:g}") for number in range(count)]

    def add(self, *values, number=1):
        """Counts `number` in the bucket that it belongs to."""
        with self._lock:
            cell = self._cells.setdefault(values, [0.0, [0] * (len(self._limits) + 1)])
            cell[0] += number
            cell[1][bisect.bisect_left(self._limits, number)] += 1

    def _snapshot(self, cell):
        return cell[0], tuple(cell[1])

    def _of_cell(self, labels, cell):
        total, counts = cell
        below, comma = 0, "," if labels else ""
        for limit, count in zip([*self._limits, float("inf")], counts, strict=True):
            below += count
            bound = "+Inf" if limit == float("inf") else f"{limit:g}"
            yield f'{self.name}_bucket{{{labels}{comma}le="{bound}"}} {below}'
        yield f"{self.name}_sum{{{labels}}} {total:.17g}"
        yield f"{self.name}_count{{{labels}}} {below}"


class ServerMetrics:
    """What a server measures. Times are in microseconds, as TensorFlow Serving's."""

    def __init__(self):
        prefix, times = ":tensorflow:serving:", {"first": 10, "growth": 1.8, "count": 33}
        self.requests = Counter(f"{prefix}request_count", "model_name", "status")
        self.latency = Histogram(f"{prefix}request_latency", "model_name", "API", "entrypoint", **times)
        self.runtime = Histogram(f"{prefix}runtime_latency", "model_name", "API", "runtime", **times)
        self.queuing = Histogram(f"{prefix}batching_session:queuing_latency", "thread_pool_name", **times)
        self.batch_size = Histogram(
            f"{prefix}batching_session:processed_batch_size", "model_name", first=1, growth=2, count=15
        )

    def add_batch(self, name, rows, waits, seconds):
        """Counts a call for the model `name`: its rows, the seconds that its requests waited, and its own."""
        self.batch_size.add(name, number=rows)
        self.runtime.add(name, "Predict", "TF2", number=1e6 * seconds)
        for wait in waits:
            self.queuing.add("batch_threads", number=1e6 * wait)

    def page(self):
        """Returns the page that Prometheus reads."""
        families = (self.requests, self.latency, self.runtime, self.queuing, self.batch_size)
        return "".join(f"{line}\n" for family in families for line in family.lines())


def _escaped(value):
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
