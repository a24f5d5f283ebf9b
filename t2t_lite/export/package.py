"""Files for this package in an export, beside the server's graph; `t2t_lite.runs.exported` reads them."""

import os

import tensorflow as tf

from t2t_lite.files import copy_files, write_bytes
from t2t_lite.runs.exported import FACTS, FOLDER, facts_json, model_names
from t2t_lite.runs.lora import merged_config
from t2t_lite.runs.run_config import write_run_config


def write_package(export, answerer, **facts):
    """Writes `assets.extra/t2t_lite`: settings and vocabulary of the models, so that `t2t_lite.load` opens an export.

    Args:
        export: str, the export's folder.
        answerer: Translator, Generator or Predictor; nothing is written for one without a run.
        **facts: JSON values for `export.json`.
    """
    runs = answerer.runs
    if not runs:
        return
    folder = os.path.join(export, FOLDER)
    for name, run in zip(model_names(len(runs)), runs, strict=True):
        of_model = folder if run is runs[0] else os.path.join(folder, name)
        tf.io.gfile.makedirs(of_model)
        write_run_config(of_model, merged_config(run.config))
    copy_files(runs[0].encoder_files, folder)
    steps = [run.step for run in runs]
    write_bytes(os.path.join(folder, FACTS), facts_json(models=len(runs), steps=steps, **facts))
