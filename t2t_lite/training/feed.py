"""Reads the batches of a step and places them on their devices while the previous step is computed."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import time

import numpy as np

from t2t_lite.data import record_format
from t2t_lite.settings.reserved_names import BEFORE


@dataclasses.dataclass(frozen=True)
class StepBatches:
    """The batches of one step, over all machines, in host memory.

    Attributes:
        batches: list of dicts of int32 features, [rows, length] or [rows]: "targets" and others.
        first: int, index of the first of them in the stream.
    """

    batches: list
    first: int

    @property
    def end(self):
        """Index of the batch after the last one."""
        return self.first + len(self.batches)

    @property
    def sentences(self):
        """Number of examples."""
        return sum(len(batch["targets"]) for batch in self.batches)

    @functools.cached_property
    def counts(self):
        """{feature: int}, how many of its ids are not padding."""
        return {f: sum(int(np.count_nonzero(batch[f])) for batch in self.batches) for f in self.batches[0]}

    @property
    def cells(self):
        """Number of ids of all features, padding included."""
        return sum(np.size(ids) for batch in self.batches for f, ids in batch.items() if f != BEFORE)


class Feed(contextlib.AbstractContextManager):
    """Context manager that returns the batches of each step in turn.

    The stream is an iterator on the host, whose position a checkpoint saves. After `fetch_ahead` it is one step ahead,
    so no checkpoint may be saved before the next `take`.

    Args:
        iterator: iterator of the stream's batches.
        first: int, index of the next batch.
        train_step: TrainStep that takes the batches.
        paths, features: the record files and the features that they hold, for error messages.

    Attributes:
        seconds_waited: float, total time that `take` has waited for data.
    """

    def __init__(self, iterator, first, train_step, paths, features):
        self._iterator = iterator
        self._first = first
        self._train_step = train_step
        self._paths = paths
        self._features = features
        # A thread is needed, since a step's call returns only when the device knows whether the gradient is finite.
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._ahead = None
        self.seconds_waited = 0.0

    def fetch_ahead(self):
        """Starts to read and place the next step's batches in the background."""
        self._ahead = self._thread.submit(self._read)

    def take(self):
        """Returns the next step's (StepBatches, PlacedBatches).

        Raises:
            UserError: the data are damaged.
        """
        started = time.monotonic()
        taken = self._ahead.result() if self._ahead else self._read()
        self._ahead = None
        self.seconds_waited += time.monotonic() - started
        return taken

    def _read(self):
        with record_format.naming_damage(*self._paths, features=self._features):
            batches = StepBatches([next(self._iterator) for _ in range(self._train_step.batches_a_step)], self._first)
        self._first = batches.end
        return batches, self._train_step.place(batches)

    def __exit__(self, *_):
        self._thread.shutdown()
