"""The metrics of a server in Prometheus format, with TensorFlow Serving's names."""

from t2t_lite.errors import needs

with needs("prometheus-client", "web", "a server"):
    import prometheus_client

_PREFIX = ":tensorflow:serving:"
_MICROSECONDS = [float(f"{10 * 1.8**number:g}") for number in range(33)]  # limits rounded as in TensorFlow Serving
_ROWS = [2**number for number in range(15)]

prometheus_client.disable_created_metrics()  # TensorFlow Serving does not export creation times


class ServerMetrics:
    """Counters and histograms of a server. Times are exported in microseconds, as in TensorFlow Serving."""

    def __init__(self):
        self._registry = prometheus_client.CollectorRegistry()
        self._requests = prometheus_client.Counter(
            f"{_PREFIX}request_count", "Requests.", ["model_name", "status"], registry=self._registry
        )
        self._latency = self._histogram("request_latency", "Time of a request.", ["model_name", "API", "entrypoint"])
        self._runtime = self._histogram("runtime_latency", "Time of a batch.", ["model_name", "API", "runtime"])
        self._queuing = self._histogram(
            "batching_session:queuing_latency", "Time that a request waited.", ["thread_pool_name"]
        )
        self._batch_size = self._histogram(
            "batching_session:processed_batch_size", "Rows of a batch.", ["model_name"], _ROWS
        )

    def add_request(self, name, code):
        """Counts a request to the model `name`, by the gRPC code of its result."""
        self._requests.labels(name, code).inc()

    def add_latency(self, name, call, seconds):
        """Records the duration of a request to the model `name`."""
        self._latency.labels(name, call, "REST").observe(1e6 * seconds)

    def add_batch(self, name, rows, waits, seconds):
        """Records a call of the model `name`: its rows, the seconds that each request waited, and its duration."""
        self._batch_size.labels(name).observe(rows)
        self._runtime.labels(name, "Predict", "TF2").observe(1e6 * seconds)
        for wait in waits:
            self._queuing.labels("batch_threads").observe(1e6 * wait)

    def page(self):
        """Returns the page of metrics for Prometheus, a str."""
        page = prometheus_client.generate_latest(self._registry).decode()
        return page.replace(":request_count_total", ":request_count")  # without a suffix, as in TensorFlow Serving

    def _histogram(self, name, meaning, labels, limits=_MICROSECONDS):
        return prometheus_client.Histogram(f"{_PREFIX}{name}", meaning, labels, buckets=limits, registry=self._registry)
