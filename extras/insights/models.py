"""The trained models of t2t-insights-server: dispatches requests, and describes each model for the page."""

import itertools
import os
import threading

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.decoding.loading import load
from t2t_lite.decoding.search.adapters import searches
from t2t_lite.errors import Failure, UserError, shown
from t2t_lite.extras.insights.answers import Predictions
from t2t_lite.extras.insights.generations import Generations
from t2t_lite.extras.insights.media import endings_read, types_written
from t2t_lite.extras.insights.text_answers import Translations
from t2t_lite.files.safe_json import check_schema
from t2t_lite.models.outputs import KINDS, attention_weights
from t2t_lite.runs.locating import find_checkpoint, find_run
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization.sentence_attention import attending_features, text_features, without_text

_MOST_EXAMPLES = 100  # maximum number of dev records that are tried to find an example
_LENGTHS = range(4, 31)  # numbers of ids for an example, which should be neither trivial nor slow
_MOST_WORDS = 5  # maximum number of words in an example prompt
_MOST_FOLDERS = 3  # levels above a run's folder to search for `data`, enough for export/1/variables/variables
# {answerer: class of its answers}. The `calls` of a class are the names of the methods that answer requests.
_ANSWERS = {"Translator": Translations, "Predictor": Predictions, "Generator": Generations}
CALLS = sorted({call for answers in _ANSWERS.values() for call in answers.calls})


class Models:
    """Named models that answer requests. The class is thread-safe, because requests are answered one at a time.

    Args:
        answerers: {name: Translator, Generator or Predictor}. The name of a loaded model is its path (an output_dir, a
            checkpoint or an export). The first model answers requests that do not name a model.
        data_dir: str, folder of the records from which the page takes an example, or None (see `example_text`).
    """

    def __init__(self, answerers, data_dir=None):
        self._models = {name: _Model(name, answerer, data_dir) for name, answerer in answerers.items()}
        self._lock = threading.Lock()

    @classmethod
    def load(cls, paths, data_dir=None):
        """Loads trained models. Raises `UserError` if a model is missing, repeated, or not supported."""
        for at, path in enumerate(paths):
            if path in paths[:at]:
                raise UserError(f"{path}: is listed twice. Expected different models.")
            run = find_run(path)
            if searches(registry.model(run.config["model"])):
                raise UserError(f"{path}: cannot show the search of a {run.config['model']}: it is not autoregressive.")
            problem = run.problem
            if problem.answered_by is not None or registry.task_of(problem).answered_by not in _ANSWERS:
                raise UserError(
                    f"{path}: cannot show models of {problem.full_name} (task {problem.task}). Expected a model for "
                    f"{', '.join(_ANSWERS)}."
                )
        return cls({path: load(path, data_dir=data_dir) for path in paths}, data_dir)

    def list(self):
        """Returns facts about each model, a list of dicts, which docs/extras/insights.md describes."""
        return [{**model.about, "notice": model.notice()} for model in self._models.values()]

    def answer(self, call, request, is_abandoned=lambda: False):
        """Returns the answer of the model that a request names.

        Args:
            call: str, one of `CALLS`.
            request: a JSON value.
            is_abandoned: function that returns whether the client has disconnected; called before the model is run.

        Raises:
            UserError: the request is invalid or not supported by the model, or the client has disconnected.
        """
        check_schema(request, {"model?": str}, "request")
        name = request.get("model", next(iter(self._models)))
        if name not in self._models:
            raise UserError(f"model={shown(name)}: unknown model. Expected one of {', '.join(self._models)}.")
        answers = self._models[name].answers
        if call not in answers.calls:
            raise UserError(f"{name}: does not support {call}. Expected one of {', '.join(answers.calls)}.")
        with self._lock:
            if is_abandoned():
                raise UserError("The client has disconnected.")
            return getattr(answers, call)({key: value for key, value in request.items() if key != "model"})


class _Model:
    """A loaded model with its answers, and facts about its files."""

    def __init__(self, name, answerer, data_dir):
        run = next(iter(answerer.runs), None)  # for an ensemble, the run of its first model
        self.answers = _ANSWERS[answerer.task.answered_by](answerer)
        self._name, self._loaded = name, run and (run.path, _time_of(run.path))
        config = run.config if run else {}
        problem, makes_text = answerer.problem, "steps" in self.answers.calls
        reads = endings_read(problem) if "file?" in getattr(self.answers, "asked", {}) else []
        writes = types_written(problem) if "files" in self.answers.calls else {}
        self.about = {
            "name": name,
            "task": answerer.task.name,
            "inputs": list(answerer.task.inputs),
            **{key: config.get(key) for key in ("problem", "model", "hparams_set")},
            "step": run and run.step,
            "languages": problem and problem.languages,
            "vocabulary": answerer.encoders["targets"].fingerprint if makes_text else None,
            "parameters": sum(model.count_params() for model in getattr(answerer.model, "models", [answerer.model])),
            "attention": _heads(answerer) if "attention" in self.answers.calls else None,
            "calls": list(self.answers.calls),
            "reads": reads,
            "writes": writes,
            "samples": makes_text and answerer.search_options({}).sampling,
            "example": "" if reads or writes else example_text(answerer, data_dir),
        }

    def notice(self):
        """Returns a message if the model's files have changed since they were loaded, or None."""
        if self._loaded is None:
            return None
        here = "This server still uses the model that it has loaded"
        try:
            newest = find_checkpoint(self._name)
            if newest != self._loaded[0]:
                return f"{newest} is newer. {here}, {self._loaded[0]}; restart it to load the newer model."
            if _time_of(newest) != self._loaded[1]:
                return f"{newest} was written again. {here}; restart it to load the new file."
        except (UserError, tf.errors.OpError) as error:
            return f"{error} {here}."
        return None


def _time_of(checkpoint):
    """Returns (time, size) of a checkpoint. The time is not enough, because TensorFlow rounds it to seconds."""
    status = tf.io.gfile.stat(checkpoint + ".index")
    return status.mtime_nsec, status.length


def _heads(answerer):
    """Returns {kind of attention: list with the number of heads per layer}; None if there are no attention weights."""
    try:
        weights = attention_weights(answerer.model, without_text(attending_features(answerer.problem), 1))
    except UserError:
        return None
    texts = {*text_features(answerer.problem)}
    return {
        kind: [layer.shape[1] for layer in layers] for kind, layers in weights.items() if texts.issuperset(KINDS[kind])
    }


def example_text(answerer, data_dir=None):
    """Returns a text from the dev set as an example for a model, or "".

    Args:
        answerer: Translator, Generator or Predictor.
        data_dir: str, the folder of the records. If None, a folder named `data` beside the run's folder, or
            beside a folder above it, is used.
    """
    run = next(iter(answerer.runs), None)
    if run is None or answerer.task.inputs != ("inputs",) or answerer.task.output == "candidates":
        return ""  # records contain neither text pairs nor masks
    try:
        problem = registry.problem(run.config["problem"])  # reads the settings of a folder, which may be of other data
        for folder in [data_dir] if data_dir else _folders(run.path):
            records = Records(problem, folder, DatasetSplit.EVAL)
            if records.exist() and _has_vocabulary(answerer, problem.get_feature_encoders(folder)):
                examples = itertools.islice(records.examples(run.hparams), _MOST_EXAMPLES)
                return next(filter(None, (_text(answerer, example) for example in examples)), "")
    except (UserError, Failure, OSError, tf.errors.OpError):
        pass  # errors are ignored, since an example is optional
    return ""


def _folders(checkpoint):
    folders = [os.path.dirname(os.path.abspath(checkpoint) if "://" not in checkpoint else checkpoint)]
    for _ in range(_MOST_FOLDERS):
        folders.append(os.path.dirname(folders[-1]))
    return [os.path.join(folder, "data") for folder in folders[1:]]


def _has_vocabulary(answerer, encoders):
    return all(encoder.fingerprint == answerer.encoders[side].fingerprint for side, encoder in encoders.items())


def _text(answerer, example):
    """Returns an example's input text, or a prompt from its targets, or "" if the text is not suitable."""
    if "inputs" not in example:
        words = answerer.encoders["targets"].decode(example["targets"]).split()
        return " ".join(words[1 : 1 + _MOST_WORDS])  # the first word may be incomplete
    ids = [i for i in example["inputs"] if i != EOS_ID]
    text = answerer.encoders["inputs"].decode(ids)
    is_whole = len(ids) in _LENGTHS and answerer.encoders["inputs"].encode(answerer.problem.encoded_text(text)) == ids
    return text if is_whole else ""
