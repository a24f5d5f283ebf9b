"""Exports the best model of a run when it ends."""

import logging
import os
import shlex

import tensorflow as tf

from t2t_lite.export.by_task import load
from t2t_lite.export.saved_model import export_saved_model
from t2t_lite.files import list_files
from t2t_lite.training.best_checkpoint import best_checkpoint

_LOGGER = logging.getLogger("t2t_lite")


def export_best(output_dir):
    """Exports the best model of a run, or its newest, to the next number in `<output_dir>/export/best`.

    Returns:
        The path of the export; None if this model has already been exported, or if this is one of several machines.
    """
    if os.environ.get("TF_CONFIG"):
        _LOGGER.warning(
            "--export_saved_model does not work on several machines. Run "
            f"t2t-exporter --output_dir={shlex.quote(f'{output_dir}/best')}"
        )
        return None
    path = best_checkpoint(output_dir) or output_dir
    answerer = load([path])
    folder = os.path.join(output_dir, "export", "best")
    exports = [path for number in list_files(folder, "[0-9]{1,18}") for path in list_files(number, r"saved_model\.pb")]
    saved_at = tf.io.gfile.stat(f"{answerer.runs[0].path}.index").mtime_nsec
    if any(tf.io.gfile.stat(export).mtime_nsec >= saved_at for export in exports):
        _LOGGER.info(f"{folder}: holds this model already")
        return None
    which = "best" if path != output_dir else "newest, since there were no evaluations"
    _LOGGER.info(f"exporting the model of step {answerer.runs[0].step:,} ({which})")
    return export_saved_model(answerer, folder)
