"""Batches concurrent requests into one call of a signature, and splits texts into sentences."""

import collections
import math
import threading
import time
import typing

import numpy as np

from t2t_lite.corpora.sentences import join_texts, sentence_parts
from t2t_lite.extras.serving.refusals import Refusal

# For each setting, a function of a `served_export.Signature` that returns whether texts are split.
_SPLITS = {
    "auto": lambda signature: signature.wants_sentences,
    "always": lambda signature: signature.is_of_texts,
    "never": lambda signature: False,
}
PATIENCE = 0.5  # seconds between checks of whether the client of a waiting request has disconnected


class Batcher:
    """Calls signatures from a few worker threads.

    A free thread immediately takes the oldest request, together with all waiting requests that have the same signature
    and shapes. A request with more rows than fit into a call is split: after each call, its remaining rows go to the
    end of the queue, so that short requests need not wait for long ones. Under load, a thread first waits `wait`
    seconds for new requests from the callers that have just been answered. Otherwise two groups of callers would
    alternate with half-full batches.

    Args:
        most_rows: int, maximum number of rows in a call. A larger request is split if its rows are independent.
        num_threads: int.
        wait: float, seconds without a new request after which a partly filled batch is computed.
        on_batch: function called after each call with (number of rows, list of the seconds that each request waited,
            duration of the call in seconds).
        most_waiting: int, maximum number of waiting rows; a single request may have more.
    """

    def __init__(self, most_rows, num_threads, wait=0.003, on_batch=lambda *_: None, most_waiting=math.inf):
        self._most_rows, self._wait, self._on_batch, self._most_waiting = most_rows, wait, on_batch, most_waiting
        self._requests = collections.deque()  # requests with rows that no thread has taken, in order of their turns
        self._changed = threading.Condition()
        for _ in range(num_threads):
            threading.Thread(target=self._work, daemon=True).start()

    @property
    def waiting(self):
        """The number of requests with rows that no thread has taken yet."""
        return len(self._requests)

    def run(self, signature, inputs, is_abandoned=lambda: False):
        """Waits until the outputs of a signature are computed, and returns them as {name: array}.

        Args:
            signature: Signature.
            inputs: {name: array}.
            is_abandoned: function that returns whether the client has disconnected, called while the request waits.
                Rows that no thread has taken by then are not computed.

        Raises:
            Refusal: the request is too long and cannot be split, too many rows are waiting, or the client has
                disconnected.
            Exception: the call raised it.
        """
        request = _Request(signature, inputs)
        if request.key is None and request.rows > self._most_rows:
            raise Refusal(f"Task size {request.rows} is larger than maximum input batch size {self._most_rows}")
        with self._changed:
            if self._requests and request.rows + sum(waiting.left for waiting in self._requests) > self._most_waiting:
                raise Refusal("The batch scheduling queue to which this task was submitted is full", "UNAVAILABLE")
            self._requests.append(request)
            self._changed.notify_all()
        while not request.is_done.wait(PATIENCE):
            if is_abandoned():
                self._drop(request)
        if request.error is not None:
            raise request.error
        return request.outputs()

    def _drop(self, request):
        """Cancels a request if it still has rows in the queue."""
        with self._changed:
            if request in self._requests:
                self._requests.remove(request)
                request.fail(Refusal("the client has disconnected", "CANCELLED"))

    def _work(self):
        while True:
            batch = self._take()
            self._answer(batch)
            del batch  # a reference would keep a replaced export in memory

    def _take(self):
        """Waits for requests, and returns the parts for the next call, a list of `_Part`."""
        with self._changed:
            if self._requests:
                self._await_more()
            while not self._requests:
                self._changed.wait()
            batch, rows = [], 0
            for request in list(self._requests):
                is_joined = batch and request.key is not None and request.key == batch[0].request.key
                if not batch or (is_joined and rows + request.left <= self._most_rows):
                    self._requests.remove(request)
                    batch.append(request.take(self._most_rows))
                    rows += batch[-1].rows
                    if request.left:
                        self._requests.append(request)
            return batch

    def _await_more(self):
        """Waits until a full batch of rows is queued, or no request has arrived for a while."""
        while (count := len(self._requests)) and sum(request.left for request in self._requests) < self._most_rows:
            if not self._changed.wait(self._wait) and len(self._requests) == count:
                return

    def _answer(self, batch):
        start = time.monotonic()
        try:
            outputs = batch[0].request.signature(_joined([part.inputs for part in batch]))
        except Exception as error:
            if len(batch) > 1:
                for part in batch:  # computes parts separately, so that one error does not affect other requests
                    self._answer([part])
                return
            with self._changed:
                if batch[0].request in self._requests:
                    self._requests.remove(batch[0].request)
            batch[0].request.fail(error)
            return
        waits = [start - part.request.start for part in batch]
        self._on_batch(sum(part.rows for part in batch), waits, time.monotonic() - start)
        first = 0
        for part in batch:
            rows = slice(first, first + part.rows) if len(batch) > 1 else slice(None)
            part.request.add(part, {name: value[rows] for name, value in outputs.items()})
            first += part.rows


class _Part(typing.NamedTuple):
    """The rows of a request that are computed in one call; `first` is the index of the first row."""

    request: "_Request"
    first: int
    rows: int
    inputs: dict


class _Request:
    """A waiting request.

    Attributes:
        rows: int, the number of its rows.
        left: int, the number of rows that no thread has taken yet.
        key: requests with equal keys can share a call. If None, the request is computed alone.
    """

    def __init__(self, signature, inputs):
        self.signature, self.start, self.error = signature, time.monotonic(), None
        self.is_done = threading.Event()
        lengths = {value.shape[0] if value.ndim else None for value in inputs.values()}
        self.rows = self.left = max((length for length in lengths if length is not None), default=1)
        can_be_joined = signature.rows_are_independent and lengths == {self.rows}
        shapes = tuple(sorted((name, value.shape[1:]) for name, value in inputs.items()))
        self.key = (id(signature), shapes) if can_be_joined else None
        self._inputs, self._outputs = inputs, {}
        self._unanswered, self._lock = self.rows, threading.Lock()

    def take(self, most_rows):
        """Returns the next rows as a `_Part`, or all rows if the request is computed alone."""
        first, rows = self.rows - self.left, self.left if self.key is None else min(self.left, most_rows)
        self.left -= rows
        inputs = self._inputs
        if rows < self.rows:
            inputs = {name: value[first : first + rows] for name, value in inputs.items()}
        return _Part(self, first, rows, inputs)

    def add(self, part, outputs):
        """Stores the outputs of a part."""
        with self._lock:
            self._outputs[part.first] = outputs
            self._unanswered -= part.rows
            if not self._unanswered:
                self.is_done.set()

    def fail(self, error):
        """Ends the request with an error."""
        self.error = error
        self.is_done.set()

    def outputs(self):
        """Returns the outputs of all rows."""
        return _joined([self._outputs[first] for first in sorted(self._outputs)])


def _joined(parts):
    """Concatenates dicts {name: array} along the first axis."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class SentenceBatcher:
    """A `Batcher` that computes each sentence of a text as a separate row.

    Args:
        batcher: Batcher.
        split_sentences: one of `SPLIT_SENTENCES`. None means "auto": texts are split if the model was trained on single
            sentences.
        most_rows: int, maximum number of sentences in a request.
    """

    def __init__(self, batcher, split_sentences, most_rows):
        self._batcher, self._most_rows = batcher, most_rows
        self._splits = _SPLITS[split_sentences or "auto"]

    def run(self, signature, inputs, **options):
        """Returns the outputs of a signature, {name: array}; arguments and errors are those of `Batcher.run`.

        The score of a text is the sum of its sentences' scores. A text counts as truncated if one of its sentences is.
        Raises `Refusal` for too many sentences.
        """
        texts = inputs.get("inputs")
        if not self._splits(signature) or texts.ndim != 1:
            return self._batcher.run(signature, inputs, **options)
        # The model refuses a wrong number of options, but this number could be right for the sentences.
        if any(value.ndim and len(value) not in (1, len(texts)) for value in inputs.values()):
            return self._batcher.run(signature, inputs, **options)
        parts = [sentence_parts(bytes(text).decode("utf-8", "replace")) for text in texts]
        counts = [len(group) for group in parts]
        if (rows := sum(counts)) == len(texts):
            return self._batcher.run(signature, inputs, **options)
        if rows > self._most_rows:
            raise Refusal(f"Task size {rows} sentences is larger than maximum input batch size {self._most_rows}")
        at = np.repeat(np.arange(len(texts)), counts)
        many = {name: value[at] if value.shape[:1] == texts.shape else value for name, value in inputs.items()}
        many["inputs"] = np.array([part.encode() for group in parts for part in group], object)
        outputs = self._batcher.run(signature, many, **options)
        starts = np.cumsum([0, *counts[:-1]])
        translations = iter(outputs["outputs"])
        texts_joined = [join_texts([next(translations).decode() for _ in group])[0].encode() for group in parts]
        return {
            "outputs": np.array(texts_joined, object),
            "scores": np.add.reduceat(outputs["scores"], starts),
            "truncated": np.logical_or.reduceat(outputs["truncated"], starts),
        }
