"""Answerer, the base of `Translator`, `Generator` and `Predictor`: loads a trained model with its vocabularies."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from t2t_lite import registry
from t2t_lite.decoding.bfloat16 import usable_dtype
from t2t_lite.decoding.search.adapters import Ensemble, check_ensemble
from t2t_lite.decoding.search.rules import before_stop
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.decoding.texts import check_list, check_options, check_text, each_located
from t2t_lite.errors import UserError
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.settings.ranges import LONG_INPUTS, Choices, settings_of, typed_value
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.tasks.task import Task, check_answered_by
from t2t_lite.text.stray_characters import reading_plain
from t2t_lite.text.vocabulary import EOS_ID

if TYPE_CHECKING:
    import keras

    from t2t_lite.data.base_problem import Problem
    from t2t_lite.settings.config import HParams


_OPTIONS = tuple(field.name for field in dataclasses.fields(SearchOptions))
_SAMPLING_OPTIONS = [name for name, declared in settings_of(SearchOptions).items() if "may_sample" in declared.needs]


class Answerer:
    """A trained model that answers texts. `reader` returns a `Reader`, which converts texts to readings; `answer`
    answers these readings.

    Subclasses define `task`, the class of the supported tasks, and `method`, the name of their method that users call.

    Args:
        model: the model.
        encoders: {feature: encoder of its texts or labels}; the encoder of the inputs is wrapped in `reading_plain`.
        problem: the Problem, or None.
    """

    task: type[Task]
    method: str

    def __init__(self, model: keras.Model, encoders: dict, problem: Problem | None = None):
        check_tensorflow(type(self).__name__)
        self.model = model
        # The wrapped encoder is used only for texts to be answered, both in Python and in exports. Texts to be scored
        # or continued (targets) are encoded unchanged.
        self.encoders = {
            side: reading_plain(encoder) if side == "inputs" else encoder for side, encoder in encoders.items()
        }
        self.problem = problem
        self.runs = []

    @classmethod
    def load(
        cls,
        path: str | os.PathLike | Sequence,
        data_dir: str | None = None,
        compute_dtype: str | None = None,
        check_device: bool = True,
    ) -> Self:
        """Loads a trained model, or several as an ensemble, which averages their probabilities.

        Args:
            path: an output_dir (for its newest checkpoint), a checkpoint `…/model.ckpt-N`, a folder of averages, or an
                export of t2t-exporter; or a list of such paths, if all models share a problem and a vocabulary. A
                `Predictor` takes only one model.
            data_dir: folder that contains the vocabulary, needed only if the checkpoint's folder does not contain it.
            compute_dtype: "float32", "bfloat16", or None for the dtype in which the model was trained. With "bfloat16",
                weights, cached keys and values, and matrix products have 8 significant bits, while softmax,
                normalization and scores are computed in float32.
            check_device: bool, whether to use "float32" instead of "bfloat16", with a warning, on a machine where
                bfloat16 is slow. It is False for exports, which are served on other machines.

        Raises:
            UserError: no model was found, the model's files do not match, or the class does not support the model's
                task.
        """
        from t2t_lite.runs.opening import open_runs

        dtype = usable_dtype(compute_dtype, check_device)

        paths = path if isinstance(path, list | tuple) else [path]
        if not paths:
            raise UserError("no checkpoint to load. Expected one checkpoint, or several for an ensemble.")
        runs = [run for path in paths for run in open_runs(path, data_dir, dtype)]
        check_answered_by(runs[0].problem, cls.task.answered_by, runs[0].path)
        answerer = cls.of_runs(runs)
        answerer.runs = runs
        return answerer

    @classmethod
    def of_runs(cls, runs: list) -> Self:
        """Creates an instance from one or more `t2t_lite.runs.opening.Run`."""
        raise NotImplementedError

    @property
    def run(self):
        """The loaded `t2t_lite.runs.opening.Run` (for an ensemble, the first run), or None."""
        return self.runs[0] if self.runs else None

    def reader(self, max_length: int | None = None, *, long_input: str | None = None, as_flags: bool = False) -> Reader:
        """Returns a `Reader` of texts to be answered.

        Args:
            max_length: int, the maximum number of ids per text, or None for the model's maximum.
            long_input: one of `LONG_INPUTS`, what to do with longer texts, or None for the subclass's default.
            as_flags: see `Reader`.

        Raises:
            UserError: the length is out of range, or this kind of text does not support the given `long_input`.
        """
        raise NotImplementedError

    def answer(self, readings: Sequence, **options) -> list:
        """Answers the readings that a `Reader` returned. For options and errors see the method named `method`."""
        return getattr(self, self.method)(readings, **options)


class Reader:
    """Preprocesses texts into readings, which an Answerer accepts in place of the texts. Subclasses define `read`.

    Args:
        answerer: the Answerer.
        limit: int, the number of ids above which a text is too long, or None for no limit.
        long_input: one of `choices`, what to do with longer texts.
        as_flags: bool, whether messages name the flags of t2t-decoder instead of the arguments of Python functions.
        choices: tuple, the values of `long_input` that this kind of text supports.

    Attributes:
        taken: tuple of the types that `read` accepts in addition to str. These types include readings, which are
            returned unchanged.

    Raises:
        UserError: `long_input` is not one of the choices.
    """

    taken: tuple

    def __init__(self, answerer: Answerer, limit: int | None, long_input: str, as_flags=False, choices=LONG_INPUTS):
        self.answerer, self.limit = answerer, limit
        self.argument = "--long_input" if as_flags else "long_input"
        self.long_input = typed_value(self.argument, long_input, str, Choices(choices))

    def read(self, text):
        """Returns the reading of a text. Raises `UserError` if the text cannot be read or is too long."""
        raise NotImplementedError

    def read_all(self, texts: Iterable, what: str = "text") -> list:
        """Calls `read` for each text of a list. Error messages begin with `what` and the number of the text.

        Raises:
            TypeError: an item is not a text; this is checked before any text is read.
        """
        check_list(texts)
        texts = [self.checked(text, at) for at, text in enumerate(texts)]
        return each_located(what, self.read, texts)

    def checked(self, text, at):
        """Returns item `at` of a list as valid Unicode. Raises `TypeError` for an unsupported type."""
        return text if isinstance(text, self.taken) else check_text(text, at)


class TextModel(Answerer):
    """A model that writes texts.

    The model's weights are read at every call, so the trainer can use an instance while it trains the model.

    Args:
        model: a model, see `t2t_lite.decoding.search.beam_search` for the methods it may have.
        encoders: {feature: TextEncoder}; the encoder of "targets" decodes the outputs.
        hparams: HParams of the model, or the name of a hyperparameter set.
        problem: the Problem, or None.
        **of_search: additional arguments of the `Searcher`.
    """

    def __init__(
        self, model: keras.Model, encoders: dict, hparams: HParams | str, problem: Problem | None = None, **of_search
    ):
        super().__init__(model, encoders, problem)
        self.hparams = registry.hparams(hparams) if isinstance(hparams, str) else hparams
        self.searcher = Searcher(model, encoder=encoders["targets"], **of_search)

    @classmethod
    def of_runs(cls, runs: list) -> Self:
        """Creates an instance from runs: see `Answerer`. Several runs become an ensemble."""
        check_ensemble(runs)
        first = runs[0]
        model = first.model if len(runs) == 1 else Ensemble([run.model for run in runs])
        return cls(model, first.encoders, first.hparams, first.problem)

    @property
    def search_history(self):
        """See `Searcher.history`."""
        return dict(self.searcher.history)

    @search_history.setter
    def search_history(self, history):
        self.searcher.history = dict(history)

    def search_options(self, given):
        """Converts a dict of options to SearchOptions; options that it lacks get the problem's defaults.

        Raises:
            TypeError: an unknown option.
            UserError: an option is out of range, or a sampling option is given without `sampling`.
        """
        if unknown := [name for name in given if name not in _OPTIONS]:
            known = inspect.getfullargspec(getattr(type(self), self.method)).kwonlyargs
            known += [name for name in _OPTIONS if name != "extra_length" or "max_new_tokens" not in known]
            check_options(unknown, known, self.method)
        options = SearchOptions(**{**(self.problem.decode_defaults if self.problem else {}), **given})
        lost = [name for name in _SAMPLING_OPTIONS if getattr(options, name) != getattr(SearchOptions, name)]
        if lost and not options.sampling and "sampling" not in given:
            raise UserError(f"{', '.join(lost)}: only for sampling. Add sampling=True, or remove the option.")
        return options

    def hypothesis(self, text, result, stop, before=(), whole=None, output=None, **fields):
        """Adds the text and the pieces to a Hypothesis that a search returned.

        Args:
            text: str, the input.
            result: Hypothesis with ids, score and end.
            stop: stop strings; the text is cut off before the first of them that occurs.
            before: ids that the hypothesis continues, such as those of a prompt. Their text is not part of the output.
            whole: str, the text that the result's ids add, or None if they are not decoded yet.
            output: str, the text to pass to the problem's `output_text`. The default is the text before the first stop
                string.
            **fields: further fields of `Hypothesis`.
        """
        encoder = self.encoders["targets"]
        whole = continuation(encoder, before, result.ids) if whole is None else whole
        beginning = before_stop(whole, stop)
        ended = result.ended or beginning != whole
        output = beginning if output is None else output
        shown = self.problem.output_text(text, output, self.encoders) if self.problem else output
        return dataclasses.replace(result, text=shown, tokens=encoder.pieces(result.ids), ended=ended, **fields)


def continuation(encoder, before, ids):
    """Returns the text that ids add to the text of the preceding ids; it may begin with a space."""
    if EOS_ID in before:  # a new text begins after EOS
        before = before[len(before) - before[::-1].index(EOS_ID) :]
    if not before:
        return encoder.decode(ids)
    text, whole = encoder.decode(before), encoder.decode([*before, *ids])
    # A character may be split between the two lists. Its first bytes alone decode to U+FFFD, which does not
    # occur in the whole text.
    return whole[len(text) :] if whole.startswith(text) else whole[len(text.rstrip("\ufffd")) :]
