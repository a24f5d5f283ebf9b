"""What the exports of a task's models answer: one class of signatures per task.

Each is called with (Translator, Generator or Predictor; max_input_length; **settings) and has

    SETTINGS            names of the settings of searches that an export keeps
    HAS_FEATURES        whether it takes the settings of `Predictor.features`
    NAME                an example of a model's name on a server
    INPUTS, OUTPUT      the inputs of `serving_default`, and its main output
    HUB_TASK            the task's name on Hugging Face's Hub
    settings            {name: value} of this export
    max_input_length    int, checked
    functions()         {name of a signature: tf.function}
    warmup()            list of (signature, {name: array}): calls with which a server warms the model up
    card()              ({title: text}, table of the signatures in Markdown), for the model card
"""

import t2t_lite
from t2t_lite import tasks
from t2t_lite.errors import UserError
from t2t_lite.export.class_signatures import ClassSignatures, ValueSignatures
from t2t_lite.export.generation_signatures import GenerationSignatures
from t2t_lite.export.mask_signatures import MaskSignatures
from t2t_lite.export.signatures import TextSignatures
from t2t_lite.export.span_signatures import SpanSignatures
from t2t_lite.export.tag_signatures import TagSignatures
from t2t_lite.runs.opening import find_run

SIGNATURES = {
    "sequence_to_sequence": TextSignatures,
    "language_model": GenerationSignatures,
    "classification": ClassSignatures,
    "regression": ValueSignatures,
    "tagging": TagSignatures,
    "spans": SpanSignatures,
    "masked_language_model": MaskSignatures,
}


def check(problem, where):
    """Raises `UserError`, whose message begins with `where`, unless a SavedModel can answer for a problem's task."""
    if problem.task not in SIGNATURES:
        raise UserError(
            f"{where}: a run of {problem.full_name}, whose task is {problem.task}. Expected one of "
            f"{', '.join(SIGNATURES)}; this one answers in Python: t2t_lite.load(path)."
        )


def load(paths, data_dir=None, compute_dtype=None):
    """Returns the Translator, Generator or Predictor of a run, or of several, as an export needs it.

    Args:
        paths: list of str, or of results of `find_run`.
        data_dir, compute_dtype: see `Translator.load`. Whether this machine is fast in the dtype does not matter.

    Raises:
        UserError: nothing there, or no model of which there are exports.
    """
    found = find_run(paths[0])
    check(found.problem, found.checkpoint)
    # Not `answering_class`, which a problem may choose: the signatures are those of the package's own classes.
    answering = getattr(t2t_lite, tasks.task_of(found.problem).answered_by)
    return answering.load(paths, data_dir, compute_dtype, check_device=False)


def signatures_of(answerer):
    """Returns the class of signatures of a Translator, Generator or Predictor."""
    return SIGNATURES[answerer.task]
