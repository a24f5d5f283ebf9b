"""What `Translator` and `Generator` share: the loaded model, its vocabularies and its search."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING, Self

from t2t_lite import registry
from t2t_lite.decoding.answerer import Answerer
from t2t_lite.decoding.search.adapters import Ensemble, check_ensemble
from t2t_lite.decoding.search.rules import before_stop
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.decoding.texts import check_options
from t2t_lite.errors import UserError
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.vocabulary import EOS_ID

if TYPE_CHECKING:
    import keras

    from t2t_lite.data.base_problem import Problem
    from t2t_lite.settings.config import HParams

_OPTIONS = tuple(field.name for field in dataclasses.fields(SearchOptions))
_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")


class TextModel(Answerer):
    """A model that makes texts. Subclasses have its `task`, and their `method` for error messages.

    The model's weights are read at every call, so that the trainer can use one with the model in training.

    Args:
        model: a model, see `t2t_lite.decoding.search.beam_search` for the methods it may have.
        encoders: {feature: TextEncoder}; that of "targets" reads the outputs.
        hparams: HParams of the model, or the name of a set.
        problem: the Problem, or None.
        **of_search: further arguments of the `Searcher`.
    """

    method = None

    def __init__(
        self, model: keras.Model, encoders: dict, hparams: HParams | str, problem: Problem | None = None, **of_search
    ):
        super().__init__(model, encoders, problem)
        self.hparams = registry.hparams(hparams) if isinstance(hparams, str) else hparams
        self._make_searcher = functools.partial(Searcher, model, encoder=encoders["targets"], **of_search)
        self.searcher = self._make_searcher()

    def renew_searcher(self):
        """Forgets all traced and compiled functions, which else are kept for every combination of settings."""
        history, self.searcher = self.search_history, self._make_searcher()
        self.search_history = history

    @classmethod
    def of_runs(cls, runs: list) -> Self:
        """See `Answerer`: several runs are an ensemble."""
        check_ensemble(runs)
        first = runs[0]
        model = first.model if len(runs) == 1 else Ensemble([run.model for run in runs])
        return cls(model, first.encoders, first.hparams, first.problem)

    @property
    def search_history(self):
        """See `Searcher.history`."""
        return self.searcher.history

    @search_history.setter
    def search_history(self, history):
        self.searcher.history = history

    def search_options(self, given):
        """Returns a dict as SearchOptions, with the problem's defaults.

        Raises:
            TypeError: there is no such option.
            UserError: a value is out of range, or one is for sampling and nothing is said of that.
        """
        if unknown := [name for name in given if name not in _OPTIONS]:
            known = inspect.getfullargspec(getattr(type(self), self.method)).kwonlyargs
            known += [name for name in _OPTIONS if name != "extra_length" or "max_new_tokens" not in known]
            check_options(unknown, known, self.method)
        options = SearchOptions(**{**(self.problem.decode_defaults if self.problem else {}), **given})
        lost = [name for name in _OF_SAMPLING if getattr(options, name) != getattr(SearchOptions, name)]
        if lost and not options.sampling and "sampling" not in given:
            raise UserError(f"{', '.join(lost)}: only of sampling. Add sampling=True, or leave it out.")
        return options

    def hypothesis(self, text, result, stop, before=(), output=None, **fields):
        """Returns a Hypothesis of a search with its text and pieces.

        Args:
            text: str, the input.
            result: Hypothesis, whose ids, score and end are known.
            stop: strings before which the text is cut.
            before: ids that the result continues, whose text is not part of it.
            output: str, what to give the problem's `output_text`; None: what is before the first stop string.
            **fields: further fields of `Hypothesis`.
        """
        encoder = self.encoders["targets"]
        whole = continuation(encoder, before, result.ids)
        found = before_stop(whole, stop)
        ended = result.ended or found != whole
        output = found if output is None else output
        shown = self.problem.output_text(text, output, self.encoders) if self.problem else output
        return dataclasses.replace(result, text=shown, tokens=encoder.pieces(result.ids), ended=ended, **fields)


def continuation(encoder, before, ids):
    """Returns the text of ids after other ids, which may begin with a space."""
    if EOS_ID in before:  # a new text has begun behind it
        before = before[len(before) - before[::-1].index(EOS_ID) :]
    if not before:
        return encoder.decode(ids)
    text, whole = encoder.decode(before), encoder.decode([*before, *ids])
    # A character may be split between both; then its first bytes alone are a U+FFFD, which is no part of the whole.
    return whole[len(text) :] if whole.startswith(text) else whole[len(text.rstrip("\ufffd")) :]
