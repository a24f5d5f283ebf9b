"""Statistics of training batches: fill, rows, widths, number of shapes."""

import dataclasses

import numpy as np

from t2t_lite.data import batching, records

_MOST_BATCHES = 500


@dataclasses.dataclass(frozen=True)
class BatchShapes:
    """The shapes of some batches.

    Attributes:
        shapes: int [batches, 3]: rows, width of inputs, width of targets.
        tokens: int [batches, 2]: ids that are not padding, of inputs and of targets.
    """

    shapes: np.ndarray
    tokens: np.ndarray

    @property
    def fill(self):
        """Share of cells that are not padding, from 0 to 1, in inputs, targets and both."""
        cells = self.shapes[:, :1] * self.shapes[:, 1:]
        return [*(self.tokens.sum(0) / cells.sum(0)), self.tokens.sum() / cells.sum()]

    @property
    def mean_rows(self):
        """Examples per batch."""
        return self.shapes[:, 0].mean()

    @property
    def distinct(self):
        """Number of distinct shapes: (rows, width of inputs, width of targets)."""
        return len(np.unique(self.shapes, axis=0))


def measure_batches(problem, paths, hparams, encoders, examples=None):
    """Reads the first batches of a training run on one replica, and returns their `BatchShapes`.

    Args:
        problem: Problem; `_rev` and `_copy` count.
        paths: of the shards.
        hparams: HParams.
        encoders: {"inputs", "targets"}, as `Problem.get_feature_encoders` returns them.
        examples: int, those of a pass; after as many the reading ends, and after 500 batches.

    Raises:
        UserError: a file is damaged, or no example is within the limits of length.
    """
    batches = batching.problem_batches(problem, hparams, paths, encoders)
    shapes, tokens, rows = [], [], 0
    for batch in records.naming(batches.take(_MOST_BATCHES).as_numpy_iterator(), paths):
        inputs, targets = batch["inputs"], batch["targets"]
        shapes.append((len(inputs), inputs.shape[1], targets.shape[1]))
        tokens.append((np.count_nonzero(inputs), np.count_nonzero(targets)))
        rows += len(inputs)
        if examples and rows >= examples:
            break
    return BatchShapes(np.array(shapes), np.array(tokens))
