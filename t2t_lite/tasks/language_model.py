"""The task of predicting each id of a text from those before it."""

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
