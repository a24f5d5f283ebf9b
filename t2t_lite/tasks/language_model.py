"""The tasks of predicting each id of a text: from those before it, and from another text."""

from t2t_lite import registry
from t2t_lite.tasks.task import Task


@registry.register_task("language_model")
class LanguageModelTask(Task):
    """Texts, which a model continues."""

    answered_by = "Generator"
    model = "transformer_lm"
    head = "lm"
    is_text = True
    unit = "text"
    hub_task, export_name = "text-generation", "generate"


@registry.register_task("sequence_to_sequence")
class SequenceToSequenceTask(Task):
    """Texts of texts."""

    answered_by = "Translator"
    hub_task, export_name = "translation", "translate"
