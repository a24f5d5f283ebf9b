"""What `Translator`, `Generator` and `Predictor` share: a trained model, its vocabularies, and how they are loaded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from t2t_lite.decoding.compute_dtype import usable_dtype
from t2t_lite.errors import UserError
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.tasks.task import Task, check_answered_by
from t2t_lite.text.stray_characters import reading_plain

if TYPE_CHECKING:
    import keras

    from t2t_lite.data.base_problem import Problem


class Answerer:
    """A trained model that answers for texts. Subclasses have the `task`, or the base of the tasks, that they answer.

    Args:
        model: the model.
        encoders: {feature: encoder of its texts or labels}; see `reading_plain` for the inputs' one.
        problem: the Problem, or None.
    """

    task: type[Task]

    def __init__(self, model: keras.Model, encoders: dict, problem: Problem | None = None):
        check_tensorflow(type(self).__name__)
        self.model = model
        # The one place where texts to be answered get their ids, in Python and in exports. What is scored or continued
        # (targets) is read as it stands.
        self.encoders = {
            side: reading_plain(encoder) if side == "inputs" else encoder for side, encoder in encoders.items()
        }
        self.problem = problem
        self.runs = []

    @classmethod
    def load(
        cls,
        path: str | os.PathLike | Sequence,
        data_dir: str | None = None,
        compute_dtype: str | None = None,
        check_device: bool = True,
    ) -> Self:
        """Loads a trained model, or several as an ensemble, which averages their probabilities.

        Args:
            path: an output_dir (for its newest checkpoint), a checkpoint `…/model.ckpt-N`, a folder of averages, or an
                export of t2t-exporter; or a list of them, of the same problem and vocabulary. A `Predictor` has one.
            data_dir: folder of the vocabulary, if it is not beside the checkpoint.
            compute_dtype: "bfloat16": weights, cached keys and values, and matrix products have 8 significant bits;
                softmax, normalization and scores are float32. Or "float32"; None: as the model was trained.
            check_device: bool, whether "bfloat16" becomes "float32", with a warning, if this machine would be slow
                in it; False for an export, which other machines serve.

        Raises:
            UserError: there is no model, its files do not belong together, or it has another task.
        """
        from t2t_lite.runs.opening import open_runs

        dtype = usable_dtype(compute_dtype, check_device)

        paths = path if isinstance(path, list | tuple) else [path]
        if not paths:
            raise UserError("No checkpoint to load: expected one, or several for an ensemble.")
        runs = [run for path in paths for run in open_runs(path, data_dir, dtype)]
        check_answered_by(runs[0].problem, cls.task.answered_by, runs[0].path)
        answerer = cls.of_runs(runs)
        answerer.runs = runs
        return answerer

    @classmethod
    def of_runs(cls, runs: list) -> Self:
        """Returns what answers with the models of one or more `t2t_lite.runs.opening.Run`."""
        raise NotImplementedError

    @property
    def run(self):
        """The loaded `t2t_lite.runs.opening.Run`, the first one of an ensemble, or None."""
        return self.runs[0] if self.runs else None
