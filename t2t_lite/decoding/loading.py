"""`load`: loads any trained model as a `Translator`, `Generator` or `Predictor`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from t2t_lite.runs.locating import find_run
from t2t_lite.tasks.task import answering_class

if TYPE_CHECKING:
    from t2t_lite.decoding.generator import Generator
    from t2t_lite.decoding.predictor import Predictor
    from t2t_lite.decoding.translator import Translator


def load(path: str | os.PathLike | Sequence, **arguments) -> Translator | Generator | Predictor:
    """Loads a trained model as a `Translator`, `Generator` or `Predictor`, depending on its problem.

    Args:
        path: an output_dir, a checkpoint, a folder of averages or an export; or a list of such paths, for an ensemble
            of models that translate or generate.
        **arguments: arguments of that class's `load`, such as `data_dir`.

    Raises:
        UserError: no model was found, or its files do not match.

    Example:
        >>> t2t_lite.load("train/sentiment").predict(["What a film!"])[0].label              # doctest: +SKIP
        'positive'
    """
    several = isinstance(path, list | tuple) and path
    return answering_class(find_run(path[0] if several else path).problem).load(path, **arguments)
