"""Statistics of training batches: fill, rows, widths, number of shapes."""

import dataclasses

import numpy as np

from t2t_lite import registry
from t2t_lite.data import batching, record_format

_MOST_BATCHES = 500


@dataclasses.dataclass(frozen=True)
class BatchShapes:
    """The shapes of some batches.

    Attributes:
        shapes: int [batches, 1 + features]: rows, width of each feature.
        tokens: int [batches, features]: ids that are not padding.
    """

    shapes: np.ndarray
    tokens: np.ndarray

    @property
    def fill(self):
        """Share of cells that are not padding, from 0 to 1: of each feature, then of all."""
        cells = self.shapes[:, :1] * self.shapes[:, 1:]
        return [*(self.tokens.sum(0) / cells.sum(0)), self.tokens.sum() / cells.sum()]

    @property
    def mean_rows(self):
        """Examples per batch."""
        return self.shapes[:, 0].mean()

    @property
    def distinct(self):
        """Number of distinct shapes."""
        return len(np.unique(self.shapes, axis=0))


def measure_batches(problem, hparams, paths, encoders, examples=None):
    """Reads the first batches of a training run on one replica, and returns their `BatchShapes`.

    Args:
        problem, hparams, paths, encoders: see `batching.training_batches`.
        examples: int, the number of examples in a pass; reading stops after as many, or after 500 batches.

    Raises:
        UserError: a file is damaged, or no example is within the length limits.
    """
    batches = batching.training_batches(problem, hparams, paths, encoders)
    shapes, tokens, rows = [], [], 0
    for batch in record_format.naming(batches.take(_MOST_BATCHES).as_numpy_iterator(), paths, problem.record_features):
        features = [ids.reshape(len(ids), -1) for ids in batch.values()]
        shapes.append((len(features[0]), *(ids.shape[1] for ids in features)))
        filled = {**batch, "targets": batch["inputs"]} if registry.task_of(problem).sparse_targets else batch
        tokens.append([np.count_nonzero(ids) for ids in filled.values()])
        rows += len(features[0])
        if examples and rows >= examples:
            break
    return BatchShapes(np.array(shapes), np.array(tokens))
