"""Writes SavedModels that stock TensorFlow Serving can serve and that this package can load again."""

import os
import shlex

import tensorflow as tf

from t2t_lite.decoding.generator import Generator
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import LOGGER
from t2t_lite.export.by_task import added_files, load, signatures_of
from t2t_lite.export.signatures import write_warmup
from t2t_lite.files import copy_files, is_pattern, list_files, write_bytes
from t2t_lite.files.folders import new_folder
from t2t_lite.layers.quantization import check_plain_weights
from t2t_lite.runs.locating import EXPORT_FACTS, EXPORT_FOLDER, facts_json, model_names
from t2t_lite.runs.run_config import merged_config, write_run_config
from t2t_lite.runs.weights import named_weights, nested
from t2t_lite.training.monitor import best_checkpoint


def export_saved_model(
    answerer: Translator | Generator | Predictor,
    export_dir: str,
    *,
    max_input_length: int | None = None,
    license: str = "",
    command: str = "",
    **settings,
) -> str:
    """Writes a SavedModel into the next numbered folder of `export_dir`: 1, 2, 3, …

    Its signatures depend on the model's task, see `t2t_lite.export.by_task`. `serving_default` of a translation model
    maps `inputs` string [batch] to `outputs` string [batch], `scores` float32 [batch] (log-probability in nats / length
    penalty) and `truncated` bool [batch] (the text was truncated to `max_input_length`). `serving_default` of a
    language model is the same, but its outputs continue the inputs. Inputs may be any bytes, and rows do not influence
    one another.

    The export also contains warm-up requests in `assets.extra/tf_serving_warmup_requests`. The settings and the
    vocabulary in `assets.extra/t2t_lite` allow `t2t_lite.load` to open the export. Extras add further files, such as a
    README.md: see `added_files`.

    Args:
        answerer: Translator, Generator (of one model or an ensemble) or Predictor. The export has the same dtypes for
            weights and computations: see compute_dtype in `Translator.load`.
        export_dir: str, a folder, which is created if needed.
        max_input_length: int, the maximum length of an input in ids, EOS included. The default is 512, or the model's
            maximum if it is smaller.
        license: str, the model's license, for the model card.
        command: str, the command that writes this export, for the model card.
        **settings: settings of the task. For a Translator these are beam_size, alpha, extra_length, length_penalty and
            ends; a Generator also has settings that control sampling and repetition: see `SearchOptions`. These
            settings are fixed in the export, except for the inputs of `with_options`.

    Returns:
        The path of the numbered folder, which appears only when it is complete.

    Raises:
        TypeError: `answerer` is a path.
        UserError: a setting is out of range, or the folder cannot be written.
        Failure: writing failed; nothing is left behind.
    """
    if isinstance(answerer, str | os.PathLike):
        raise TypeError(
            f"answerer={answerer!r} is a path. Expected a model that is loaded: t2t_lite.load({answerer!r})."
        )
    models = getattr(answerer.model, "models", [answerer.model])
    check_plain_weights(models, "export_saved_model")
    signatures = signatures_of(answerer.task, answerer.problem)(answerer, max_input_length, **settings)
    weights_dtype = models[0].variable_dtype
    functions = signatures.functions()

    numbers = [int(os.path.basename(number)) for number in list_files(export_dir, "[0-9]{1,18}")]
    path = os.path.join(export_dir, str(max(numbers, default=0) + 1))
    with new_folder(path) as folder:  # the temporary name is not a number, so servers ignore the folder
        tf.saved_model.save(_Tracked(answerer, models), folder, signatures=functions)
        facts = {"max_input_length": signatures.max_input_length, "search": signatures.settings}
        write_package(folder, answerer, weights_dtype=weights_dtype, **facts)
        write_warmup(folder, signatures.warmup(), os.path.basename(os.path.abspath(export_dir)))
        facts = {"signatures": signatures, "path": path, "weights_dtype": weights_dtype}
        for name, content in added_files(answerer, license=license, command=command, **facts).items():
            write_bytes(os.path.join(folder, name), content)
    if is_pattern(path):
        LOGGER.warning(
            f"{path}: TensorFlow and TensorFlow Serving treat *, ?, [ and \\ in a folder's name as a pattern and may "
            "load another model or none. Copy the export to a folder without these characters before serving it."
        )
    return path


class _Tracked(tf.Module):
    """Holds the weights and lookup tables that the exported functions use, but not the models' Python code."""

    def __init__(self, answerer, models):
        super().__init__()
        for name, model in zip(model_names(len(models)), models, strict=True):
            setattr(self, name, nested({path: weight.value for path, weight in named_weights(model).items()}))
        encoders = answerer.encoders.values()
        self.resources = [table for encoder in encoders for table in getattr(encoder, "tf_resources", ())]


def write_package(export, answerer, **facts):
    """Writes `assets.extra/t2t_lite`: settings and vocabulary of the models, so that `t2t_lite.load` opens an export.

    Args:
        export: str, the export's folder.
        answerer: Translator, Generator or Predictor. If it was not loaded from a run, nothing is written.
        **facts: JSON values for `export.json`.
    """
    runs = answerer.runs
    if not runs:
        return
    folder = os.path.join(export, EXPORT_FOLDER)
    for name, run in zip(model_names(len(runs)), runs, strict=True):
        model_folder = folder if run is runs[0] else os.path.join(folder, name)
        tf.io.gfile.makedirs(model_folder)
        write_run_config(model_folder, merged_config(run.config))
    copy_files(runs[0].encoder_files, folder)
    steps = [run.step for run in runs]
    write_bytes(os.path.join(folder, EXPORT_FACTS), facts_json(models=len(runs), steps=steps, **facts))


def export_best(output_dir):
    """Exports a run's best model, or else its newest model, to the next numbered folder in `<output_dir>/export/best`.

    Returns:
        The path of the export, or None if this model has already been exported or the run uses several machines.
    """
    if os.environ.get("TF_CONFIG"):
        LOGGER.warning(
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
        LOGGER.info(f"{folder}: already contains an export of this model")
        return None
    which = "the best" if path != output_dir else "the newest, since the run has no evaluations"
    LOGGER.info(f"exporting the model of step {answerer.runs[0].step:,} ({which})")
    return export_saved_model(answerer, folder)
