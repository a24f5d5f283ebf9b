"""The signatures of exports, one class per class of answerer, and the files that extras add to an export.

Each class is called with (Translator, Generator or Predictor; max_input_length; **settings) and has

    SETTINGS            names of the settings of searches that an export keeps
    HAS_FEATURES        whether it takes the settings of `Predictor.features`
    settings            {name: value} of this export
    max_input_length    int, checked
    functions()         {name of a signature: tf.function}
    warmup()            list of (signature, {name: array}): calls with which a server warms the model up
    card()              ({title: text}, table of the signatures in Markdown), for the model card
"""

import t2t_lite
from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.registry import Registries
from t2t_lite.runs.locating import find_run

_ANSWERERS = "Translator", "Generator", "Predictor"


def check(problem, where):
    """Raises `UserError`, whose message begins with `where`, unless a SavedModel can answer for a problem's task."""
    if registry.task_of(problem).answered_by not in _ANSWERERS:
        tasks = [name for name in registry.list_tasks() if registry.task(name).answered_by in _ANSWERERS]
        raise UserError(
            f"{where}: a run of {problem.full_name}, whose task is {problem.task}. Expected one of "
            f"{', '.join(tasks)}; this one answers in Python: t2t_lite.load(path)."
        )


def load(paths, data_dir=None, compute_dtype=None):
    """Returns the Translator, Generator or Predictor of a run, or of several, for an export.

    Args:
        paths: list of str, or of results of `find_run`.
        data_dir, compute_dtype: see `Translator.load`. The dtype may be slow on this machine.

    Raises:
        UserError: the model is missing or cannot be exported.
    """
    run = find_run(paths[0])
    check(run.problem, run.checkpoint)
    # Not `answering_class`, which a problem may choose: the signatures are those of the package's own classes.
    answering = getattr(t2t_lite, registry.task_of(run.problem).answered_by)
    return answering.load(paths, data_dir, compute_dtype, check_device=False)


def signatures_of(task, problem=None):
    """Returns the class of signatures of a task, or of a problem that has its own."""
    # Here, since `check` needs no TensorFlow.
    from t2t_lite.export.encoder_signatures import EncoderSignatures
    from t2t_lite.export.generation_signatures import GenerationSignatures
    from t2t_lite.export.signatures import TextSignatures

    classes = dict(zip(_ANSWERERS, (TextSignatures, GenerationSignatures, EncoderSignatures), strict=True))
    return problem.substitution.signatures if problem and problem.substitution else classes[task.answered_by]


def added_files(answerer, **facts):
    """Returns {name: bytes} of the files that extras register.

    Args:
        answerer: Translator, Generator or Predictor.
        **facts: `license` and `command`, str, "" if not stated. A SavedModel also has `signatures` (see
            `t2t_lite.export.by_task`), `path` of its numbered folder and `weights_dtype`; a folder for another
            toolkit has `title`, `library` (the toolkit's name on Hugging Face's Hub), `body` (Markdown: how to call it)
            and `rows` ({title: text}, further facts).
    """
    registered = Registries.export_files
    return {name: registered.get(name)(answerer, **facts).encode() for name in registered.names()}
