"""The model that a set of hyperparameters is for: the one it is registered for, or that alone knows its settings."""

import contextlib

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import own_settings


def model_of_set(name):
    """Returns the name of the model that a set is for; None where it suits the model of any task.

    Of several models that have all its settings it is the one that the others derive from.

    Args:
        name: str, of the set.
    """
    if declared := registry.model_of_hparams(name):
        return declared
    hparams, models = registry.hparams(name), {each: registry.model(each) for each in registry.list_models()}
    known = {each: own_settings(model, **hparams.kinds()).keys() for each, model in models.items()}
    own = (hparams.values().keys() - HParams().values().keys()) & set().union(*known.values())
    fitting = [each for each in models if own <= known[each]]
    general = (each for each in fitting if all(issubclass(models[other], models[each]) for other in fitting))
    return next(general, None)


def model_for_task(name, task_model):
    """Returns the name of the model for a set and a task: the task's own, unless the set is for another.

    A set for the model of one task suits the models of the others, as far as they know its hyperparameters.

    Args:
        name: str, of the set.
        task_model: str, name of the task's model.
    """
    model = model_of_set(name)
    if model in (None, *(registry.task(task).model for task in registry.list_tasks())):
        with contextlib.suppress(UserError):
            check_set(name, registry.hparams(name), registry.model(task_model))
            return task_model
    return model or task_model


def check_set(name, hparams, model_class):
    """Raises `UserError` if a set has a hyperparameter of another model, which it therefore is for.

    A set of Universal Transformers, for one, leaves positions to their steps: a Transformer would learn without any. A
    model with a `from_hparams` of its own reads what it likes, and a name that no model declares may be a problem's.

    Args:
        name: str, of the set.
        hparams: HParams, as the set's function returns them.
        model_class: class of the model.
    """
    from t2t_lite.models.sequence_model import SequenceModel  # here, since names are looked up without Keras

    if not issubclass(model_class, SequenceModel) or model_class.reads_any():
        return
    known = {**HParams().values(), **own_settings(model_class, **hparams.kinds())}
    for found in (found for found in hparams.values() if found not in known):
        others = (other for other in registry.list_models() if found in own_settings(registry.model(other)))
        if model := next(others, None):
            raise UserError(
                f"--hparams_set={name}: is for --model={model}: its {found} means nothing to the model "
                f"{model_class.__name__}. Expected that model, or another set."
            )
