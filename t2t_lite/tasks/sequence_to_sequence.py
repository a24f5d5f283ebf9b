"""The task of making one text of another, such as its translation."""

from t2t_lite import registry
from t2t_lite.tasks.task import Task


@registry.register_task("sequence_to_sequence")
class SequenceToSequenceTask(Task):
    """Texts of texts."""

    answered_by = "Translator"
    hub_task, export_name = "translation", "translate"
