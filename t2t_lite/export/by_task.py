"""Selects the signatures of an export for its task, and collects the files that extras add to an export.

Translator, Generator and Predictor each have a class of signatures. The arguments of its constructor are an instance of
Translator, Generator or Predictor, max_input_length and **settings. The class has these attributes and methods:

    SETTINGS            names of the search settings that an export stores
    HAS_FEATURES        whether the class accepts the settings of `Predictor.features`
    settings            {name: value}, the settings of this export
    max_input_length    int, after its range has been checked
    functions()         {name of a signature: tf.function}
    warmup()            list of (signature, {name: array}), the calls with which a server warms up the model
    card()              ({title: text}, table of the signatures in Markdown), for the model card
"""

import t2t_lite
from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.registry import Registries
from t2t_lite.runs.locating import find_run

_ANSWERERS = "Translator", "Generator", "Predictor"


def check(problem, where):
    """Raises `UserError`, whose message begins with `where`, unless SavedModels support a problem's task."""
    if registry.task_of(problem).answered_by not in _ANSWERERS:
        tasks = [name for name in registry.list_tasks() if registry.task(name).answered_by in _ANSWERERS]
        raise UserError(
            f"{where}: {problem.full_name} has the task {problem.task}. Expected one of {', '.join(tasks)}. To use "
            "this run in Python, call t2t_lite.load(path)."
        )


def load(paths, data_dir=None, compute_dtype=None):
    """Loads a run, or several runs as an ensemble, for an export; returns a Translator, Generator or Predictor.

    Args:
        paths: list, in which each entry is a str or a result of `find_run`.
        data_dir, compute_dtype: see `Translator.load`. `compute_dtype` is used even if it is slow on this machine.

    Raises:
        UserError: the model is missing or cannot be exported.
    """
    run = find_run(paths[0])
    check(run.problem, run.checkpoint)
    # Do not use `answering_class`, which a problem may override: signatures exist only for the package's own classes.
    answering = getattr(t2t_lite, registry.task_of(run.problem).answered_by)
    return answering.load(paths, data_dir, compute_dtype, check_device=False)


def signatures_of(task, problem=None):
    """Returns the class that defines an export's signatures: the problem's own class, or else its task's class."""
    # These imports need TensorFlow, but `check` must work without it.
    from t2t_lite.export.encoder_signatures import EncoderSignatures
    from t2t_lite.export.generation_signatures import GenerationSignatures
    from t2t_lite.export.signatures import TextSignatures

    classes = dict(zip(_ANSWERERS, (TextSignatures, GenerationSignatures, EncoderSignatures), strict=True))
    return problem.substitution.signatures if problem and problem.substitution else classes[task.answered_by]


def added_files(answerer, **facts):
    """Returns the files that the installed extras add to an export, as {name: bytes}.

    Args:
        answerer: Translator, Generator or Predictor.
        **facts: `license` and `command`, str, "" if unknown. A SavedModel also needs `signatures` (see
            `t2t_lite.export.by_task`), `path` (the numbered folder) and `weights_dtype`. The format of another toolkit
            also needs `title`, `library` (the toolkit's name on Hugging Face's Hub), `body` (Markdown that explains how
            to call the model) and `rows` ({title: text}, further facts).
    """
    registered = Registries.export_files
    return {name: registered.get(name)(answerer, **facts).encode() for name in registered.names()}
