"""What `Translator` and `Generator` share: the loaded model, its vocabularies and its search."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from t2t_lite.backend import check_tensorflow
from t2t_lite.decoding.compute_dtype import usable_dtype
from t2t_lite.decoding.search.adapters import Ensemble, check_ensemble
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.decoding.search.stop_strings import before_stop
from t2t_lite.decoding.texts import check_options
from t2t_lite.errors import UserError
from t2t_lite.search_options import SearchOptions
from t2t_lite.tasks import check_task
from t2t_lite.text.vocabulary import EOS_ID

if TYPE_CHECKING:
    import keras

    from t2t_lite.config import HParams
    from t2t_lite.data.base_problem import Problem

_OPTIONS = tuple(field.name for field in dataclasses.fields(SearchOptions))
_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One possible output.

    Attributes:
        text: str.
        score: float, log-probability (nats) / length penalty; 0 for a blank sentence's translation.
        tokens: list of str, the vocabulary's pieces, of a stop string, too.
        ids: list of int, without EOS.
        ended: bool, False if the output was truncated at its maximum length.
        token_scores: list of float, each id's log-probability (nats), including EOS if it ended so; None unless
            requested.
        attention: float32 array [ids, pieces of the source + EOS], of the same ids as token_scores: how much each
            decoder step attends to each source position (see `t2t_lite.decoding.alignment`). Rows sum up to 1. None
            unless requested.
        spans: list of (start, end), the characters of `text` that each id stands for, an end being that of a slice.
            None unless attention is requested.
    """

    text: str = ""
    score: float = 0.0
    tokens: list[str] = dataclasses.field(default_factory=list)
    ids: list[int] = dataclasses.field(default_factory=list)
    ended: bool = True
    token_scores: list[float] | None = None
    attention: np.ndarray | None = dataclasses.field(default=None, compare=False, repr=False)
    spans: list[tuple[int, int]] | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class Hypotheses:
    """The possible outputs for one input.

    Attributes:
        hypotheses: tuple of `Hypothesis`, at least one.
        truncated: bool, whether part of the input was not read, because it was too long.
        text, score, tokens: those of the first hypothesis.
    """

    hypotheses: tuple[Hypothesis, ...] = (Hypothesis(),)
    truncated: bool = False

    @property
    def text(self) -> str:
        """The first hypothesis's, as are the next two."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """Log-probability (nats) / length penalty."""
        return self.hypotheses[0].score

    @property
    def tokens(self) -> list[str]:
        """The vocabulary's pieces."""
        return self.hypotheses[0].tokens


class TextModel:
    """A model that makes texts. Subclasses name the `task` whose runs they load, and their `method` for error messages.

    The model's weights are read at every call, so that the trainer can use one with the model in training.

    Args:
        model: a model, see `t2t_lite.decoding.search.beam_search` for the methods it may have.
        encoders: {feature: TextEncoder}; that of "targets" reads the outputs.
        hparams: HParams of the model.
        problem: the Problem, or None.
        **of_search: further arguments of the `Searcher`.
    """

    task = method = None

    def __init__(
        self, model: keras.Model, encoders: dict, hparams: HParams, problem: Problem | None = None, **of_search
    ):
        check_tensorflow(type(self).__name__)
        self.model = model
        self.encoders = encoders
        self.hparams = hparams
        self.problem = problem
        self.runs = []
        self.searcher = Searcher(model, encoder=encoders["targets"], **of_search)

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
                export of t2t-exporter; or a list of them, of the same problem and vocabulary.
            data_dir: folder of the vocabulary, if it is not beside the checkpoint.
            compute_dtype: "bfloat16": weights, cached keys and values, and matrix products have 8 significant bits;
                softmax, normalization and scores are float32. Or "float32"; None: as the model was trained.
            check_device: bool, whether "bfloat16" becomes "float32", with a warning, if this machine would be slow
                in it; False for an export, which other machines serve.

        Raises:
            UserError: there is no model, or its files do not belong together.
        """
        from t2t_lite.runs.opening import open_runs

        dtype = usable_dtype(compute_dtype, check_device)

        paths = path if isinstance(path, list | tuple) else [path]
        if not paths:
            raise UserError("No checkpoint to load: expected one, or several for an ensemble.")
        runs = [run for path in paths for run in open_runs(path, data_dir, dtype)]
        check_task(runs[0].problem, cls.task, runs[0].path)
        check_ensemble(runs)
        first = runs[0]
        model = first.model if len(runs) == 1 else Ensemble([run.model for run in runs])
        made = cls(model, first.encoders, first.hparams, first.problem)
        made.runs = runs
        return made

    @property
    def run(self):
        """The loaded `t2t_lite.runs.opening.Run`, the first one of an ensemble, or None."""
        return self.runs[0] if self.runs else None

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
        """Returns the Hypothesis of a `SearchResult`.

        Args:
            text: str, the input.
            result: SearchResult.
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
        return Hypothesis(shown, result.score, encoder.pieces(result.ids), result.ids, ended, **fields)


def continuation(encoder, before, ids):
    """Returns the text of ids after other ids, which may begin with a space."""
    if EOS_ID in before:  # a new text has begun behind it
        before = before[len(before) - before[::-1].index(EOS_ID) :]
    if not before:
        return encoder.decode(ids)
    text, whole = encoder.decode(before), encoder.decode([*before, *ids])
    # A character may be split between both; then its first bytes alone are a U+FFFD, which is no part of the whole.
    return whole[len(text) :] if whole.startswith(text) else whole[len(text.rstrip("\ufffd")) :]
