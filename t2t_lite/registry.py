"""Registers problems, models, hyperparameter sets, metrics and so on by name (mirrors tensor2tensor's registry.py).

Built-in entries are imported when an entry of their kind is first looked up. Therefore `import t2t_lite.registry` is
fast, and looking up a model or a hyperparameter set never imports TensorFlow's data pipeline.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
from collections.abc import Callable

import t2t_lite
from t2t_lite.cli.registers import Registry, default_name
from t2t_lite.cli.usr_dirs import import_usr_dir as import_usr_dir
from t2t_lite.cli.usr_dirs import is_package_name as is_package_name
from t2t_lite.cli.usr_dirs import usr_dir_of as usr_dir_of
from t2t_lite.errors import LOGGER, UnknownName, UserError, located, nearest, shown
from t2t_lite.settings.config import COPIES, HParams
from t2t_lite.settings.tensor2tensor_names import PROBLEM_HOOKS


def _check_problem(name, cls):
    if name.endswith(("_rev", "_copy")):
        raise UnknownName(f"problems: {name!r} cannot be registered: the suffixes _rev and _copy are reserved.")
    # Definitions in registered base classes have already been reported.
    bases = [*itertools.takewhile(lambda base: base is cls or "name" not in vars(base), cls.__mro__)]
    if unread := [hook for hook in PROBLEM_HOOKS if any(hook in vars(base) for base in bases)]:
        LOGGER.warning(
            f"problems: {name}: defines {' and '.join(unread)}, which only tensor2tensor uses. Remove the "
            "definition, or rename it if your own methods use it."
        )
    cls.name = name


def _check_model(name, cls):
    cls.REGISTERED_NAME = name


def _check_ranged_hparams(name, function):
    parameters = inspect.signature(function).parameters.values()
    if len(parameters) != 1 or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
        raise UserError(f"ranged hparams: {name!r} must be a function of one argument, a RangedHParams.")


@dataclasses.dataclass(frozen=True)
class Metric:
    """A registered evaluation metric; see `register_metric` for the fields."""

    __wrapped__: Callable
    of: str
    feature: str
    lower_is_better: bool
    result: Callable
    decides: bool = False

    def __call__(self, *arguments, **facts):
        """Calls the metric's function with its arguments."""
        return self.__wrapped__(*arguments, **facts)


def _mean(sums):
    scores, weights = sums
    return scores / weights


# Fields of an evaluation in a run's log that are not metrics.
LOG_FIELDS = ("time", "event", "step", "seconds", "split", "checkpoint_time", "settings")


def is_loss(name):
    """Returns whether a metric is a loss or derived from one; evaluations compute these even if unregistered."""
    return name in ("loss", "perplexity") or name.startswith(
        ("loss_", "cost_", "nats_per_", "perplexity_per_", "bits_per_")
    )


def _check_metric(name, metric):
    if name in LOG_FIELDS or is_loss(name):
        raise UnknownName(
            f"metrics: {name!r} cannot be registered, because evaluations use this name for something else."
        )
    if metric.of not in ("logits", "answers", "texts", "ids"):
        raise UserError(f"metrics: {name!r}: of={metric.of!r}: expected 'logits', 'answers', 'texts' or 'ids'.")


def _check_task(name, cls):
    cls.name = name
    for metric, function in cls.metrics.items():
        if function.is_registered:
            Registries.metrics.register(metric)(Metric(function, "answers", "targets", False, _mean))


class Registries:
    """All registries. In a notebook, `Registries.problems.remove("mine")` allows a name to be registered again."""

    problems = Registry("problems", "register_problem", "t2t_lite.problems", check=_check_problem)
    tasks = Registry("tasks", "register_task", "t2t_lite.tasks", check=_check_task)
    models = Registry("models", "register_model", "t2t_lite.models", check=_check_model, one_per_module=True)
    hparams = Registry("hparams", "register_hparams", "t2t_lite.hparams")
    ranged_hparams = Registry(
        "ranged hparams", "register_ranged_hparams", "t2t_lite.hparams", check=_check_ranged_hparams
    )
    metrics = Registry("metrics", "register_metric", "t2t_lite.evaluation", check=_check_metric)
    scores = Registry("scores", "register_score", "t2t_lite.layers")
    patterns = Registry("patterns", "register_pattern", "t2t_lite.layers")
    feed_forwards = Registry("feed-forward layers", "register_feed_forward", "t2t_lite.layers")
    families = Registry("families", "register_family", one_per_module=True)
    vocabularies = Registry("vocabularies", "register_vocabulary", one_per_module=True)
    folder_parts = Registry("folder parts", "register_folder_part", one_per_module=True)
    encoders = Registry("encoders", "register_encoder", "t2t_lite.text.published", one_per_module=True)
    export_formats = Registry("export formats", "register_export_format", one_per_module=True)
    export_files = Registry("export files", "register_export_file", "t2t_lite.export", one_per_module=True)
    self_attentions = Registry("self-attention layers", "register_self_attention", "t2t_lite.layers")
    tellers = Registry("tellers", "register_teller", "t2t_lite.decoding")
    batches = Registry("batches", "register_batches", "t2t_lite.data")
    catalogs = Registry("catalogs", "register_catalog", one_per_module=True)


register_problem = Registries.problems.register
register_task = Registries.tasks.register
register_model = Registries.models.register
register_ranged_hparams = Registries.ranged_hparams.register
register_score = Registries.scores.register  # for attention layers: a `t2t_lite.layers.AttentionScore`
register_pattern = Registries.patterns.register  # for attention layers: a `t2t_lite.layers.Pattern`
register_feed_forward = Registries.feed_forwards.register  # a layer called like `t2t_lite.layers.FeedForward`
register_family = Registries.families.register  # a function that returns a `t2t_lite.extras.hugging_face.family.Family`
register_vocabulary = Registries.vocabularies.register  # see `t2t_lite.extras.hugging_face.published_vocabulary`
# additional files in a Hugging Face folder: see `t2t_lite.extras.hugging_face.encoders`
register_folder_part = Registries.folder_parts.register
# a TextEncoder, named after the kind of its vocabulary file: see `t2t_lite.text.vocabulary_files`
register_encoder = Registries.encoders.register
register_export_format = Registries.export_formats.register  # see `t2t_lite.export.formats`
register_export_file = Registries.export_files.register  # see `t2t_lite.export.by_task`
register_self_attention = Registries.self_attentions.register  # a subclass of `t2t_lite.layers.MultiHeadAttention`
register_teller = Registries.tellers.register  # a `Teller`, for values that a model reports in addition to its output
register_batches = Registries.batches.register  # the batches of a run: a `t2t_lite.data.example_batches.ExampleBatches`
register_catalog = Registries.catalogs.register  # by a file's extension: a `t2t_lite.corpora.catalogs.Catalog`
task = Registries.tasks.get  # returns the `Task` subclass registered under a name; raises `UnknownName`
teller = Registries.tellers.get  # returns the `Teller` subclass registered under a name
check_model = Registries.models.check  # raises `UnknownName`; does not import the model, which needs Keras
list_problems = Registries.problems.names
list_tasks = Registries.tasks.names
list_models = Registries.models.names
list_hparams = Registries.hparams.names
list_ranged_hparams = Registries.ranged_hparams.names
list_metrics = Registries.metrics.names
list_families = Registries.families.names
list_tellers = Registries.tellers.names


def register_metric(
    name_or_function=None, *, of="logits", feature="targets", lower_is_better=False, result=_mean, decides=False
):
    """Decorator that registers a metric and returns the function unchanged. It can be used bare, empty or with a name.

    A metric of "logits" is a TensorFlow function of one teacher-forced batch. Its arguments are logits (float32
    [..., V]) and labels (int32 [...], 0 where nothing is scored). It returns a tensor or a tuple of tensors, which are
    added up over all batches. A metric of "answers" is a function of two equally long lists for the whole evaluation
    set: the predicted and the expected answers. Both kinds are computed if `Problem.eval_metrics` contains their names.
    Depending on the problem's task, an answer is a label (str), a number (float), the tags of a sentence's words (list
    of str) or a part of a text (str).

    A metric of "texts" or "ids" is a function of two equally long lists, outputs and references: texts as users see
    them, or lists of ids without EOS. Such a metric is computed if `Problem.eval_decode_metric` or the hyperparameter
    eval_metrics contains its name. If the function has arguments called `tokenize` and `language`, it receives the
    tokenization for BLEU (str) and the target language (str or None). A metric of "answers", "texts" or "ids" returns a
    float, or a float and a dict of further fields for the log.

    Args:
        name_or_function: the name; default: the function's name.
        of: "logits", "answers", "texts" or "ids".
        feature: for "logits", the feature whose logits and labels the function receives.
        lower_is_better: bool.
        result: for "logits", a function of the sums (NumPy arrays) that returns a float; by default a weighted mean,
            the first sum divided by the second.
        decides: bool, whether the best checkpoint is chosen by this metric unless the user chooses another.

    Example:
        >>> @registry.register_metric
        ... def token_errors(logits, labels):
        ...     wrong = (tf.argmax(logits, -1, tf.int32) != labels) & (labels != 0)
        ...     return tf.math.count_nonzero(wrong), tf.math.count_nonzero(labels)
    """

    def add(function):
        name = default_name(function) if function is name_or_function else name_or_function or default_name(function)
        Registries.metrics.register(name)(Metric(function, of, feature, lower_is_better, result, decides))
        return function

    return add(name_or_function) if callable(name_or_function) else add


def register_hparams(name_or_function=None, *, model=None):
    """Decorator that registers a function that returns a set of hyperparameters; used bare, empty or with a name.

    Args:
        name_or_function: the name; default: the function's name.
        model: str, name of the model for which the set is intended, so that `--model` can be omitted. If None, the set
            is for the model that has all hyperparameters of the set or, failing that, for the model of the problem's
            task.
    """

    def add(function):
        if model:
            function.model = model
        return Registries.hparams.register(None if function is name_or_function else name_or_function)(function)

    return add(name_or_function) if callable(name_or_function) else add


def model_of_hparams(name: str) -> str | None:
    """Returns the name of the model for which a set was registered, or None. Raises `UnknownName`."""
    return getattr(Registries.hparams.get(name), "model", None)


def list_built_in_models() -> list[str]:
    """Returns the names of this package's models, without users' models; does not import any of them."""
    return sorted(Registries.models.built_in())


def problem(name: str, **kwargs) -> t2t_lite.data.Problem:
    """Returns a `Problem` instance. `<name>_rev` swaps inputs and targets, `<name>_copy` copies inputs to targets.

    Raises:
        UnknownName: the name is not registered; the message lists the nearest names.
    """
    base, suffixes = name, []
    while match := re.fullmatch("(.*)_(rev|copy)", base):
        base = match[1]
        suffixes.append(match[2])
    if len({*suffixes}) < len(suffixes):
        raise UserError(f"problem {shown(name)}: a suffix is given twice. Expected <problem>[_copy][_rev].")
    return Registries.problems.get(base)(was_reversed="rev" in suffixes, was_copy="copy" in suffixes, **kwargs)


def task_of(problem: t2t_lite.data.Problem) -> type:
    """Returns the `Task` subclass of a problem. Raises `UserError` if the problem's task is unknown."""
    if problem.task not in Registries.tasks:
        raise UserError(
            f"{problem.name}: task={problem.task!r} is unknown. {nearest(problem.task, list_tasks(), end=' ')}"
            f"Expected one of {', '.join(list_tasks())}."
        )
    return Registries.tasks.get(problem.task)


def model(name: str) -> type[t2t_lite.models.SequenceModel]:
    """Returns the registered model, a `keras.Model` subclass, with this name. Raises `UnknownName`."""
    return Registries.models.get(name)


def hparams(name: str | HParams) -> HParams:
    """Returns a new `HParams` for the set with this name; an `HParams` is returned unchanged.

    Functions that take hyperparameters call this function, so they also take the name of a set.

    Raises:
        UnknownName: the name is not registered; the message lists the nearest names.
        UserError: the argument is neither a name nor an `HParams`, or the set's function does not return an `HParams`.
    """
    if isinstance(name, HParams):
        return name
    if not isinstance(name, str):
        raise UserError(
            f"hparams: expected HParams, such as registry.hparams('transformer_base'), or the name of a set, found "
            f"{shown(name)}."
        )
    function, earlier = Registries.hparams.get(name), next(COPIES)
    with located(f"hparams set {name}"):
        settings = function()
    if not isinstance(settings, HParams):
        raise UserError(
            f"hparams set {name}: its function in the module {function.__module__} returned {shown(settings)}. "
            "Expected HParams: end the function with `return hparams`."
        )
    if settings.changed_copy > earlier:  # in tensor2tensor, these methods change the HParams themselves
        raise UserError(
            f"hparams set {name}: parse() and override_from_dict() return a changed copy, which its function in the "
            f"module {function.__module__} ignores. Expected hparams = hparams.parse(…)."
        )
    return settings


def ranged_hparams(name: str) -> Callable:
    """Returns the function with this name, which fills a `RangedHParams` with ranges of hyperparameters.

    Such functions are registered as in tensor2tensor. Raises `UnknownName`.
    """
    return Registries.ranged_hparams.get(name)


def family(model_type: str):
    """Returns the `Family` of Hugging Face models with this `model_type`. Raises `UnknownName`."""
    return Registries.families.get(model_type)()._replace(model_type=model_type)


def metric(name: str) -> Metric:
    """Returns the `Metric` with this name. Raises `UnknownName`."""
    return Registries.metrics.get(name)


def help_string() -> str:
    """Returns the text that `--registry_help` prints: all registered names, grouped by kind and first word."""
    lines = []
    for title, registry in (
        ("Models", Registries.models),
        ("HParams", Registries.hparams),
        ("RangedHParams", Registries.ranged_hparams),
        ("Problems", Registries.problems),
        ("Metrics", Registries.metrics),
    ):
        lines.append(f"{title}:")
        groups = {}
        for name in registry.names():
            groups.setdefault(name.split("_")[0], []).append(name)
        for prefix, names in groups.items():
            lines.append(f"  {prefix}:")
            lines.extend(f"    * {name}" for name in names)
        lines.append("")
    return "\n".join(lines)
