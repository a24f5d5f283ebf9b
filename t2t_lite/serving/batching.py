"""Computes concurrent requests together: one call of a signature for the rows of several requests."""

import collections
import threading
import time

import numpy as np

from t2t_lite.serving.refusals import Refusal


class Batcher:
    """Calls signatures from a few threads of its own.

    A free thread takes the oldest request at once, and with it the requests of the same signature and shapes that have
    come meanwhile. Under load, while others wait, it first gives the callers that have just been answered `wait`
    seconds to ask again: otherwise two groups of callers would take turns with half-full batches.

    Args:
        most_rows: int, rows of a call. A request of more is split, if its rows are independent.
        num_threads: int.
        wait: float, seconds without a new request after which a batch is full enough.
        on_batch: None, or a function called with (rows, seconds that each request waited, seconds of the call).
    """

    def __init__(self, most_rows, num_threads, wait=0.003, on_batch=None):
        self._most_rows, self._wait = most_rows, wait
        self._on_batch = on_batch or (lambda rows, waits, seconds: None)
        self._requests = collections.deque()  # those that nobody has taken, oldest first
        self._changed = threading.Condition()
        for _ in range(num_threads):
            threading.Thread(target=self._work, daemon=True).start()

    @property
    def waiting(self):
        """The number of requests that no thread has taken yet."""
        return len(self._requests)

    def run(self, signature, inputs):
        """Returns the outputs of a signature, {name: array}, when they are computed.

        Raises what the call raises, and `Refusal` for a request that is too long and cannot be split.

        Args:
            signature: Signature.
            inputs: {name: array}.
        """
        request = _Request(signature, inputs)
        requests = [request]
        if request.key is not None:
            starts = range(0, max(request.rows, 1), self._most_rows)
            parts = [{name: value[at : at + self._most_rows] for name, value in inputs.items()} for at in starts]
            requests = [_Request(signature, part) for part in parts]
        elif request.rows > self._most_rows:
            raise Refusal(f"Task size {request.rows} is larger than maximum input batch size {self._most_rows}")
        with self._changed:
            self._requests.extend(requests)
            self._changed.notify_all()
        for request in requests:
            request.is_done.wait()
            if request.error is not None:
                raise request.error
        return _joined([request.outputs for request in requests])

    def _work(self):
        while True:
            batch = self._take()
            try:
                self._answer(batch)
            finally:
                for request in batch:
                    request.is_done.set()
            del batch, request  # an export that is no longer served is kept by nothing

    def _take(self):
        """Waits for requests and removes those of one call from the waiting ones."""
        with self._changed:
            if self._requests:
                self._await_more()
            while not self._requests:
                self._changed.wait()
            batch, rows = [], 0
            for request in list(self._requests):
                fits = not batch or (request.key == batch[0].key and rows + request.rows <= self._most_rows)
                if fits and (not batch or request.key is not None):
                    batch.append(request)
                    self._requests.remove(request)
                    rows += request.rows
            return batch

    def _await_more(self):
        """Returns when a full batch waits, or nobody has asked for a while."""
        while (count := len(self._requests)) and sum(one.rows for one in self._requests) < self._most_rows:
            if not self._changed.wait(self._wait) and len(self._requests) == count:
                return

    def _answer(self, batch):
        start = time.monotonic()
        try:
            outputs = batch[0].signature(_joined([request.inputs for request in batch]))
            first = 0
            for request in batch:
                rows = slice(first, first + request.rows) if len(batch) > 1 else slice(None)
                request.outputs = {name: value[rows] for name, value in outputs.items()}
                first += request.rows
        except Exception as error:
            if len(batch) == 1:
                batch[0].error = error
                return
            for request in batch:  # the others have a right to their answers
                self._answer([request])
            return
        waits = [start - request.start for request in batch]
        self._on_batch(sum(request.rows for request in batch), waits, time.monotonic() - start)


class _Request:
    """A request that waits.

    Attributes:
        rows: int, its share of a batch.
        key: requests with equal keys can be joined; None: it is computed alone.
    """

    def __init__(self, signature, inputs):
        self.signature, self.inputs, self.start = signature, inputs, time.monotonic()
        self.is_done, self.outputs, self.error = threading.Event(), None, None
        lengths = {value.shape[0] if value.ndim else None for value in inputs.values()}
        self.rows = max((length for length in lengths if length is not None), default=1)
        can_be_joined = signature.rows_are_independent and lengths == {self.rows}
        shapes = tuple(sorted((name, value.shape[1:]) for name, value in inputs.items()))
        self.key = (id(signature), shapes) if can_be_joined else None


def _joined(parts):
    """[{name: array}] -> {name: array}, along the first axis."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
